// Checks a scenario when its file is loaded, before anything is installed or started.
import { UserError, messageOf } from '../errors.ts';
import { present, repeated } from '../present.ts';
import { servers } from '../setup/servers.ts';
import { hasStreams, isHttp2 } from './load.ts';
import { isMethod, problemOfHeader } from './load/flags.ts';
import { shownUrl } from '../secrets.ts';
import { commandWords } from './load/shell-words.ts';
import {
  curveNames,
  problemOfMeasuring,
  problemsOfForm,
  type AddressServer,
  type CommandServer,
  type ConfiguredServer,
  type LoadProfile,
  type Page,
  type Protocol,
  type Scenario,
  type Variant,
} from './model.ts';
import { pathsOf, requestsOf } from './pages.ts';
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

const mostProblems = 10;

/** Checks a scenario and returns it unchanged. @throws UserError that names the wrong fields, a line each, at most ten */
export function defineScenario(scenario: Scenario): Scenario {
  const ofForm = problemsOfForm(scenario);
  const problems = ofForm.length > 0 ? ofForm : problemsOf(scenario);
  if (problems.length === 0) return scenario;
  const { name } = (scenario as Partial<Scenario> | null) ?? {};
  throw new UserError(
    problems.slice(0, mostProblems).map((problem) => `scenario ${name}: ${problem}`),
  );
}

function problemsOf(scenario: Scenario): string[] {
  const { variants, alsoCompare = [] } = scenario;
  const names = variants.map((variant) => variant.name);
  if (names.length === 0) return ['has no variants'];
  const twice = repeated(names);
  if (twice !== undefined) return [`two variants are named "${twice}"`];
  const shared = problemOfParts(scenario);
  if (shared !== undefined) return [shared];
  const problems: string[] = [];
  for (const variant of variants) {
    const problem = problemOfVariant(scenario, variant);
    if (problem !== undefined) problems.push(`variant "${variant.name}" ${problem}`);
  }
  if (!variants.some(isRunnable))
    problems.push('has published figures only: nothing of it can be run');
  const ofMeasuring = problemOfMeasuring(scenario);
  if (ofMeasuring !== undefined) problems.push(ofMeasuring);
  for (const { variant, against } of alsoCompare) {
    const problem = problemOfPair(scenario, variant, against);
    if (problem !== undefined) problems.push(`alsoCompare: "${variant}" ${problem}`);
  }
  return problems;
}

function problemOfParts({
  page,
  load,
  network,
}: Pick<Variant, 'page' | 'load' | 'network'>): string | undefined {
  const problems = {
    page: page && problemOfPage(page),
    load: load && problemOfLoad(load),
    network:
      network &&
      [...network.serverSettings, ...network.clientSettings].map(problemOfName).find(Boolean),
  };
  return Object.entries(present(problems))[0]?.join(': ');
}

/** Returns why a name is neither that of a shipped file or folder nor a path. */
function problemOfName(name: string): string | undefined {
  if (isPath(name) || /^[\w.-]+(?<!\.conf)$/.test(name)) return undefined;
  return `"${name}": write ./${name} if it is beside the scenario, or a shipped name without .conf`;
}

function problemOfPage(page: Page): string | undefined {
  const { docroot, path, host } = page;
  const unclear = docroot === undefined ? undefined : problemOfName(docroot);
  if (unclear !== undefined) return `docroot ${unclear}`;
  if (!pathsOf(page).includes(path)) return `path "${path}" has to be a target of requests`;
  for (const { target, method, headers = {}, body, bodyBase64 } of requestsOf(page)) {
    if (!/^\/[^\s#\0]*$/.test(target))
      return `path "${target}" has to begin with /, and has a blank as %20 and a # as %23`;
    const problem =
      problemOfMethod(method) ??
      (body !== undefined && bodyBase64 !== undefined ? 'give body or bodyBase64' : undefined) ??
      problemOfHeaders(headers, 'http/1.1');
    if (problem !== undefined) return `request ${target}: ${problem}`;
  }
  if (host !== undefined && !/^[^\s/\0]+$/.test(host))
    return `host "${host}" has to be a name such as www.example.com`;
  return undefined;
}

function problemOfMethod(method = 'GET'): string | undefined {
  if (isMethod(method)) return undefined;
  return `method "${method}" has to be one such as GET or POST`;
}

function problemOfHeaders(
  headers: Readonly<Record<string, string>>,
  protocol: Protocol,
): string | undefined {
  for (const [name, value] of Object.entries(headers)) {
    const problem = problemOfHeader(name, value, protocol);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemOfVariant(scenario: Scenario, variant: Variant): string | undefined {
  const { server, published } = variant;
  const problemOfOwn = problemOfParts(variant);
  if (problemOfOwn !== undefined) return problemOfOwn;
  const network = networkOf(scenario, variant);
  if (typeof server === 'string') {
    if (published === undefined) return 'is published only, and has no published figures';
  } else {
    const load = loadOf(scenario, variant);
    const page = pageOf(scenario, variant);
    if (isConfigured(server) && servers[server.name].http2Only && !isHttp2(load.protocol))
      return `asks ${server.name} for ${load.protocol}, and it speaks HTTP/2 only`;
    const problem = isConfigured(server)
      ? problemOfConfig(server, page)
      : (problemOfAny(server) ??
        (page.docroot && 'serves what is its own, so its page must not have a docroot'));
    if (problem !== undefined) return problem;
    if (network !== undefined && isOwn(server) && server.name !== 'command')
      return 'is your own (asIs or an address), and runs where it is: it must not have a network';
  }
  const phases = scenario.phases?.count ?? 1;
  if (phases > 1 && network !== undefined)
    return `has a network, and phases.count is ${phases}: in a network there is one load phase`;
  if (published?.phases !== undefined && published.phases.length !== phases)
    return `has published figures of ${published.phases.length} phases, not of ${phases}`;
  return problemOfPair(scenario, variant.name, baselineName(scenario, variant));
}

function problemOfConfig(
  { name, config, asIs }: ConfiguredServer,
  { docroot }: Page,
): string | undefined {
  if (asIs === undefined) {
    if (config.length === 0)
      return `has no config: name files of server-configs/${name}/, the base first`;
    const unclear = config.map(problemOfName).find(Boolean);
    if (unclear !== undefined) return `has the config ${unclear}`;
    if (docroot !== undefined) return undefined;
    return 'has a page without docroot: name a folder of server-configs/www/, or a path such as ./www';
  }
  if (config.length !== 1 || !config.every(isPath))
    return 'is asIs: its config has to be one file, named by its path such as ./nginx.conf';
  if (docroot === undefined) return undefined;
  return 'is asIs: what it serves is in its config, so its page must not have a docroot';
}

function problemOfAny(server: CommandServer | AddressServer): string | undefined {
  if (server.name === 'address') {
    const isOrigin = /^https?:\/\/[^/?#@]+$/i.test(server.origin) && URL.canParse(server.origin);
    const { cgroup } = server;
    if (isOrigin && cgroup !== undefined && !cgroup.startsWith('/'))
      return `has the control group "${cgroup}": write an absolute path, such as /sys/fs/cgroup/system.slice/nginx.service`;
    if (isOrigin) return undefined;
    return `has the address "${shownUrl(server.origin)}": write one such as http://127.0.0.1:8080, a path as the page's, an account as a header`;
  }
  try {
    commandWords(server.command, 0);
    return undefined;
  } catch (error) {
    return `has a command that cannot run: ${messageOf(error)}`;
  }
}

/** Returns why two variants cannot be compared. @param against undefined: the variant is a baseline */
function problemOfPair(
  { variants }: Scenario,
  name: string,
  against: string | undefined,
): string | undefined {
  if (name === against) return 'is against itself';
  if (against === undefined) return undefined;
  for (const side of [name, against]) {
    const variant = variants.find((other) => other.name === side);
    if (variant === undefined) return `is against "${against}", and "${side}" is not there`;
    if (side === against && !isRunnable(variant))
      return `is against "${against}", and "${side}" is published only: nothing here can be measured of it`;
  }
  return undefined;
}

/** The curves' names in lower case, with OpenSSL's other names. */
const knownCurves = [...curveNames, 'prime256v1', 'secp384r1', 'secp521r1'].map((name) =>
  name.toLowerCase(),
);

/** It can only be widened (RFC 9113, section 6.9.2). */
const leastConnectionWindow = 65_535;

/** The first contradiction of a load's fields. The engine refuses most of them too, but only once the servers run. */
export function problemOfLoad(load: LoadProfile): string | undefined {
  const { protocol, requests, secondsHere, durationSeconds, streams = 1 } = load;
  const { connections, threads, rate, arrivals, bucketSeconds, method, tls } = load;
  const { window } = load;
  const several = hasStreams(protocol);
  if ((requests === undefined) === (durationSeconds === undefined))
    return 'one of requests and durationSeconds has to be set';
  if (rate !== undefined && requests === undefined)
    return 'a rate goes with requests (rate times duration)';
  if (rate === undefined && requests !== undefined && requests < connections)
    return `requests ${requests} are fewer than connections ${connections}: each connection needs one, such as by -n ${connections * 100}`;
  if (connections < threads)
    return `connections ${connections} are fewer than threads ${threads}: each thread needs one`;
  if (arrivals !== undefined && rate === undefined) return 'arrivals are those of a rate';
  if (secondsHere !== undefined && (requests === undefined || rate !== undefined))
    return 'secondsHere take the place of requests, and go with neither a duration nor a rate';
  if (!several && streams !== 1) return `streams ${streams} need h2, h2c or h3, not ${protocol}`;
  if (load.together && (streams === 1 || rate !== undefined))
    return 'together needs several streams, and no rate';
  if (window !== undefined && !several)
    return `window: ${protocol} has no receive windows: leave it out, or take h2, h2c or h3`;
  if (isHttp2(protocol) && (window?.connection ?? Infinity) < leastConnectionWindow)
    return `window: connection has to be ${leastConnectionWindow} or more, with which every connection of HTTP/2 begins: set stream instead`;
  if (several && !load.keepAlive)
    return 'keepAlive is false, and HTTP/2 and 3 keep their connections';
  if (bucketSeconds?.every((end, index) => end > (bucketSeconds[index - 1] ?? 0)) === false)
    return 'bucketSeconds have to be ascending';
  const wrong = problemOfMethod(method) ?? problemOfHeaders(load.headers ?? {}, protocol);
  if (wrong !== undefined) return wrong;
  if (tls !== undefined && protocol === 'h2c') return 'h2c is HTTP/2 without TLS: leave tls out';
  if (tls?.minVersion === 'TLSv1.3' && tls.maxVersion === 'TLSv1.2')
    return 'tls: minVersion is above maxVersion';
  const noCurve = tls?.curves?.find((curve) => !knownCurves.includes(curve.toLowerCase()));
  if (noCurve !== undefined)
    return `tls: there is no curve "${noCurve}"; there are: ${curveNames.join(', ')}`;
  if (tls?.resume && protocol === 'h3')
    return 'tls: resume is not for h3, which makes a whole handshake for each connection: leave it out';
  return undefined;
}
