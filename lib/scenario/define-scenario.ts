// Checks a scenario when its file is loaded, before anything is installed or started.
import { UserError } from '../errors.ts';
import { present, repeated } from '../present.ts';
import { defaultTimeoutSeconds, hasStreams, isHttp2 } from './load.ts';
import { problemOfHeader } from './load/flags.ts';
import { commandWords } from './load/shell-words.ts';
import {
  problemOfForm,
  type LoadProfile,
  type NetworkSpec,
  type Page,
  type Scenario,
  type ServerSpec,
  type Variant,
} from './model.ts';
import {
  baselineName,
  isConfigured,
  isOwn,
  isPath,
  isRunnable,
  loadOf,
  networkOf,
  pageOf,
} from './variants.ts';

/** Checks a scenario and returns it unchanged. @throws UserError that names the wrong field */
export function defineScenario(scenario: Scenario): Scenario {
  const problem = problemOfForm(scenario) ?? problemOf(scenario);
  if (problem === undefined) return scenario;
  const name = String((scenario as Partial<Scenario> | null)?.name);
  const shown = /^[a-z0-9-]+$/.test(name) ? name : JSON.stringify(name);
  throw new UserError(`scenario ${shown}: ${problem}`);
}

/** The first contradiction of fields. */
function problemOf(scenario: Scenario): string | undefined {
  const { variants } = scenario;
  const names = variants.map((variant) => variant.name);
  if (names.length === 0) return 'has no variants';
  const twice = repeated(names);
  if (twice !== undefined) return `two variants are named "${twice}"`;
  const problem = problemOfParts(scenario);
  if (problem !== undefined) return problem;
  for (const variant of variants) {
    const found = problemOfVariant(scenario, variant);
    if (found !== undefined) return `variant "${variant.name}" ${found}`;
  }
  if (!variants.some(isRunnable)) return 'has published figures only: nothing of it can be run';
  if (scenario.within !== undefined && (scenario.phases?.count ?? 1) > 1)
    return 'has within, and phases.count: a search has load phases of its own';
  return problemOfFurtherComparisons(scenario);
}

/** Checks the fields that a variant may have instead of its scenario's. */
function problemOfParts({
  page,
  load,
  network,
}: Pick<Variant, 'page' | 'load' | 'network'>): string | undefined {
  const problems = {
    page: page && problemOfPage(page),
    load: load && problemOfLoad(load),
    network: network && problemOfNetwork(network),
  };
  return Object.entries(present(problems))[0]?.join(': ');
}

function problemOfPage({ docroot, path, host, requests }: Page): string | undefined {
  if (docroot === '')
    return 'docroot is empty: name a folder of server-configs/www/, or a path such as ./www';
  if (docroot !== undefined && !isPath(docroot) && docroot.includes('/'))
    return `docroot "${docroot}": write ./${docroot} for a folder beside the scenario`;
  const mix = requests ?? [{ target: path }];
  if (!mix.some(({ target }) => target === path))
    return `path "${path}" has to be a target of requests`;
  for (const { target, method, headers = {}, body, bodyBase64 } of mix) {
    if (!target.startsWith('/')) return `path "${target}" has to begin with /`;
    if (/[\s#\0]/.test(target))
      return `path "${target}" has a blank or a # in it: write it as %20 or %23`;
    const problem =
      problemOfMethod(method) ??
      (body !== undefined && bodyBase64 !== undefined ? 'give body or bodyBase64' : undefined) ??
      Object.entries(headers)
        .map(([name, value]) => problemOfHeader(name, value, 'http/1.1'))
        .find(Boolean);
    if (problem !== undefined) return `request ${target}: ${problem}`;
  }
  if (host !== undefined && !/^[^\s/\0]+$/.test(host))
    return `host "${host}" has to be a name such as www.example.com`;
  return undefined;
}

function problemOfMethod(method = 'GET'): string | undefined {
  return /^[A-Z]+$/.test(method) && method !== 'CONNECT'
    ? undefined
    : `method "${method}" has to be one such as GET or POST`;
}

function problemOfNetwork(network: NetworkSpec): string | undefined {
  for (const side of ['serverSettings', 'clientSettings'] as const) {
    const unclear = network[side].find(
      (file) => !isPath(file) && (file === '' || /\/|\.conf$/.test(file)),
    );
    if (unclear !== undefined)
      return `${side} "${unclear}": write ./${unclear} for a file beside the scenario, or a name of server-configs/sysctl/ without .conf`;
  }
  return undefined;
}

/** Why a variant cannot run in this network, to follow its name; undefined if it can. */
function problemInNetwork(
  { toServer, toClient }: NetworkSpec,
  server: ServerSpec,
  load: LoadProfile,
): string | undefined {
  if (isOwn(server) && server.name !== 'command')
    return 'is your own (asIs or an address), and runs where it is: it must not have a network';
  // The timeout covers both round trips of a first request: connect and answer.
  const needed = (2 * (toServer.delayMs + toClient.delayMs)) / 1000;
  const { timeoutSeconds = defaultTimeoutSeconds } = load;
  return needed < timeoutSeconds
    ? undefined
    : `has a network whose delays take ${needed} s of the first request, and its load gives up after ${timeoutSeconds} s (timeoutSeconds)`;
}

function problemOfVariant(scenario: Scenario, variant: Variant): string | undefined {
  const { server, published } = variant;
  const network = networkOf(scenario, variant);
  const problemOfOwn = problemOfParts(variant);
  if (problemOfOwn !== undefined) return problemOfOwn;
  if (typeof server === 'string') {
    if (server.trim() === '')
      return 'has an empty text as its server: write why nobody can run it here';
    if (published === undefined) return 'is published only, and has no published figures';
  } else {
    const load = loadOf(scenario, variant);
    const { requests = [] } = pageOf(scenario, variant);
    if ((load.arrivals === 'logged') !== requests.some(({ atMs }) => atMs !== undefined))
      return "has a load whose arrivals are 'logged', or requests with times (atMs): one needs the other";
    if (server.name === 'nghttpd' && !isHttp2(load.protocol))
      return `asks nghttpd for ${load.protocol}, and it speaks HTTP/2 only`;
    const problem =
      problemOfConfig(server, pageOf(scenario, variant)) ??
      (network && problemInNetwork(network, server, load));
    if (problem !== undefined) return problem;
  }
  const phases = scenario.phases?.count ?? 1;
  if (phases > 1 && network !== undefined)
    return `has a network, and phases.count is ${phases}: in a network there is one load phase`;
  if (published?.phases !== undefined && published.phases.length !== phases) {
    return `has published figures of ${published.phases.length} phases, not of ${phases}`;
  }
  return problemOfBaseline(scenario, variant);
}

function problemOfConfig(server: ServerSpec, { docroot }: Page): string | undefined {
  if (!isConfigured(server)) {
    if (docroot !== undefined)
      return `is ${server.name === 'command' ? 'a command' : 'an address'}: what it serves is its own, so its page must not have a docroot`;
    return server.name === 'command'
      ? problemOfCommand(server.command)
      : problemOfOrigin(server.origin);
  }
  const { name, config, asIs } = server;
  if (asIs === undefined) {
    if (config.length === 0)
      return `has no config: name files of server-configs/${name}/, the base first`;
    const unclear = config.find((file) => !isPath(file) && /\/|\.conf$/.test(file));
    if (unclear !== undefined)
      return `has the config "${unclear}": write ./${unclear} for a file beside the scenario, or a name of server-configs/${name}/ without .conf`;
    return docroot === undefined
      ? 'has a page without docroot: name a folder of server-configs/www/, or a path such as ./www'
      : undefined;
  }
  const [file, ...others] = config;
  if (file === undefined || others.length > 0 || !isPath(file))
    return 'is asIs: its config has to be one file, named by its path such as ./nginx.conf';
  if (docroot !== undefined)
    return 'is asIs: what it serves is in its config, so its page must not have a docroot';
  return undefined;
}

function problemOfCommand(line: string): string | undefined {
  try {
    commandWords(line, 0);
    return undefined;
  } catch (error) {
    return `has a command that cannot run: ${(error as Error).message}`;
  }
}

function problemOfOrigin(origin: string): string | undefined {
  const url =
    /^https?:\/\/[^/]/i.test(origin) && URL.canParse(origin) ? new URL(origin) : undefined;
  if (url === undefined)
    return `has the address "${origin}": write one such as http://127.0.0.1:8080`;
  if (url.port === '0')
    return `has the address "${origin}", whose port is 0: write the server's own`;
  if (url.username !== '' || url.password !== '')
    return 'has an address with a user name in it: give a header, Authorization: Basic …';
  return /^https?:\/\/[^/?#]+$/i.test(origin)
    ? undefined
    : `has the address "${origin}": write ${url.origin}, and what follows it as the page's path`;
}

function problemOfBaseline(scenario: Scenario, variant: Variant): string | undefined {
  const name = baselineName(scenario, variant);
  if (name === undefined) return undefined;
  if (name === variant.name) return 'is against itself';
  return whyNotMeasured(scenario, 'is against', [name]);
}

/** `says` and why a named variant cannot be measured; undefined if all can. */
function whyNotMeasured(
  { variants }: Scenario,
  says: string,
  names: readonly string[],
): string | undefined {
  for (const name of names) {
    const found = variants.find((one) => one.name === name);
    if (found === undefined) return `${says} "${name}", which is not there`;
    if (!isRunnable(found))
      return `${says} "${name}", which is published only: nothing here can be measured of it`;
  }
  return undefined;
}

function problemOfFurtherComparisons(scenario: Scenario): string | undefined {
  const { alsoCompare = [] } = scenario;
  for (const { variant, against } of alsoCompare) {
    const why = whyNotMeasured(scenario, 'alsoCompare names', [variant, against]);
    if (why !== undefined) return why;
    if (variant === against) return `alsoCompare compares "${variant}" with itself`;
    if (alsoCompare.filter((one) => one.variant === variant && one.against === against).length > 1)
      return `alsoCompare names "${variant}" against "${against}" twice`;
  }
  return undefined;
}

/** The first contradiction of a load's fields. */
export function problemOfLoad(load: LoadProfile): string | undefined {
  const { protocol, requests, secondsHere, durationSeconds, streams = 1 } = load;
  const { connections, threads, rate, arrivals, bucketSeconds, method, tls } = load;
  const several = hasStreams(protocol);
  if ((requests === undefined) === (durationSeconds === undefined))
    return 'one of requests and durationSeconds has to be set';
  if (rate !== undefined && requests === undefined)
    return 'a rate goes with requests (rate times duration)';
  if (rate === undefined && requests !== undefined && requests < connections)
    return `requests ${requests} are fewer than connections ${connections}: each connection needs one`;
  if (connections < threads)
    return `connections ${connections} are fewer than threads ${threads}: each thread needs one`;
  if (arrivals !== undefined && rate === undefined) return 'arrivals are those of a rate';
  if (secondsHere !== undefined && (requests === undefined || rate !== undefined))
    return 'secondsHere take the place of requests, and go with neither a duration nor a rate';
  if (!several && streams !== 1) return `streams ${streams} need h2, h2c or h3, not ${protocol}`;
  if (several && !load.keepAlive)
    return 'keepAlive is false, and HTTP/2 and 3 keep their connections';
  if (bucketSeconds !== undefined) {
    const ascending = bucketSeconds.every((end, index) => end > (bucketSeconds[index - 1] ?? 0));
    if (bucketSeconds.length === 0 || !ascending)
      return 'bucketSeconds have to be ascending, and at least one';
  }
  const wrongMethod = problemOfMethod(method);
  if (wrongMethod !== undefined) return wrongMethod;
  for (const [name, value] of Object.entries(load.headers ?? {})) {
    const problem = problemOfHeader(name, value, protocol);
    if (problem !== undefined) return `headers: ${problem}`;
  }
  if (tls !== undefined && protocol === 'h2c') return 'h2c is HTTP/2 without TLS: leave tls out';
  if (tls?.minVersion === 'TLSv1.3' && tls.maxVersion === 'TLSv1.2')
    return 'tls: minVersion is above maxVersion';
  return undefined;
}
