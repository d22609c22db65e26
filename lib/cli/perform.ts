// From a plan to its report: what the commands that run a comparison share.
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { requireSpace } from '../files.ts';
import { UserError } from '../errors.ts';
import { requireNetworks, thisCaller } from '../network/namespaces.ts';
import { createRunProgress } from '../report/terminal.ts';
import { headingLines } from '../report/heading.ts';
import { byText } from '../report/sentences.ts';
import { wrapLines } from '../report/table.ts';
import { readEnvironment, coresOfTwo, divideCores, type Cores } from '../machine/cores.ts';
import { pin, underSignals, type Interrupt } from '../process.ts';
import { estimatedSeconds, type Plan, type PlanDraft } from '../runner/plan.ts';
import { oneRunAtATime } from '../machine/one-run.ts';
import { runName, serversOf } from '../runner/make-plan.ts';
import { readProcessors } from '../machine/processors.ts';
import { checkResultsFolder, createRunFolder, explainFailure } from '../runner/results-folder.ts';
import type { Environment, Result } from '../result/result.ts';
import type { BegunServer, RunContext } from '../runner/round-types.ts';
import { runRounds } from '../runner/run.ts';
import { writePageFiles } from '../runner/k6-plan.ts';
import { compileScript } from '../runner/k6.ts';
import { isLoopback } from '../servers/index.ts';
import { versionsOf } from '../servers/build.ts';
import { networkOf } from '../scenario/variants.ts';
import type { ServerSpec, Scenario } from '../scenario/model.ts';
import { delaylinkBeside } from '../setup/k6.ts';
import { thisMachine } from '../setup/machine.ts';
import { bakeoffFolder } from '../setup/paths.ts';
import { ensureTools, toolVariable } from '../setup/tools.ts';
import { openStore } from '../store/store.ts';
import {
  checkExports,
  headingOf,
  outputWidth,
  progressEvents,
  report,
  shorterLine,
} from './run-output.ts';
import type { RunOptions } from './run-options.ts';
import { enumeration } from '../format.ts';
import { openGeneratorHosts, type GeneratorHost } from '../hosts/generator-host.ts';
import { openServerHost, type ServerHost } from '../hosts/server-host.ts';

/** Paths of the servers' binaries. */
export type ServerBinaries = RunContext['tools']['servers'];

/** A run whose servers may be started before there is a plan: its name and folder, and its running servers by variant. */
export interface Begun {
  startedAt: Date;
  run: string;
  folder: string;
  servers: Map<string, BegunServer>;
}

/** Makes the folder in `out`. @param scenario its name */
export async function begin(out: string, scenario: string): Promise<Begun> {
  const startedAt = new Date();
  return {
    startedAt,
    ...(await createRunFolder(out, runName(scenario, startedAt))),
    servers: new Map(),
  };
}

/** Ends the servers that no round has taken over, and removes the folder if nothing was measured. May be called twice. */
export async function endBegun({ folder, servers }: Begun): Promise<void> {
  await Promise.all([...servers.values()].map(({ server }) => server.stop()));
  // That it stays is no reason to hide why the run ended.
  if (!existsSync(join(folder, 'result.json')))
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
}

export interface Work extends Hosts {
  /** Of all sides. */
  servers: readonly ServerSpec[];
  cores: Cores;
  /** What else makes a run of this command shorter: "fewer --variants". */
  shorterBy?: readonly string[];
  /** Makes the plan, once the servers' binaries are there and this process runs on the generator's cores. What it has begun is ended here. */
  prepare(
    binaries: ServerBinaries,
    interrupt: Interrupt,
  ): Promise<{ draft: PlanDraft; begun?: Begun }>;
  /** As report's. */
  show?(result: Result): string[];
  /** What is run after a run that ended with 0; undefined: nothing. */
  next?(): PlanDraft | undefined;
}

/** Gets the tools, runs the plan and prints its report. Returns 0, or 3 when `--fail-if` held. Throws UserError and Interrupted. */
export async function perform(work: Work, options: RunOptions): Promise<number> {
  requirePermission(work.servers, options.hosts);
  await checkResultsFolder(options.out, leastBytes);
  await checkExports(options.exports);
  return underSignals('ending the run in order; again to end it at once', (interrupt) =>
    withTools(work, options, interrupt),
  );
}

async function withTools(work: Work, options: RunOptions, interrupt: Interrupt): Promise<number> {
  const { cores, prepare, host, generators } = work;
  const release = await oneRunAtATime(undefined, undefined, {
    seconds: options.waitSeconds ?? 0,
    signal: interrupt.signal,
    say: console.error,
  });
  let begun: Begun | undefined;
  try {
    const names = serversOf(work.servers);
    const { k6, influxd, ...here } = await ensureTools(
      [
        'k6',
        ...(host === undefined ? names : []),
        ...(options.store === 'local' ? ['influxd' as const] : []),
      ],
      thisMachine(),
      interrupt.signal,
    );
    const there = await host?.tools(names, options.install === true, interrupt.signal);
    await Promise.all(generators.map((one) => one.have(k6, interrupt.signal)));
    const servers = there?.binaries ?? here;
    interrupt.signal.throwIfAborted();
    // Pinned, this process no longer sees the others.
    const processors = readProcessors();
    // The server's cores are for the server alone.
    await pin(process.pid, cores.generatorCpus);
    const prepared = await prepare(servers, interrupt);
    const { draft } = prepared;
    begun = prepared.begun;
    interrupt.signal.throwIfAborted();
    const delaylink = await delaylinkBeside(k6);
    if (draft.variants.some(({ variant }) => networkOf(draft.scenario, variant) !== undefined)) {
      if (delaylink === undefined)
        throw new UserError(
          `there is no delaylink beside ${k6}, which holds the networks of ${draft.scenario.name}: unset ${toolVariable('k6')} to have both built`,
        );
      await requireNetworks(thisMachine(), thisCaller(), interrupt.signal);
    }
    await checkResultsFolder(options.out, neededBytes(draft));
    if (options.store === 'local')
      await requireSpace(
        bakeoffFolder,
        neededBytes(draft),
        'InfluxDB',
        'name another folder in BAKEOFF_HOME',
      );
    // Meanwhile the database starts.
    const asked = versionsOf({ k6, ...(host === undefined ? servers : {}) }, interrupt.signal);
    asked.catch(() => undefined);
    const store =
      options.store === 'none'
        ? null
        : await openStore({
            ...(options.store === 'local'
              ? { influxdBinary: influxd }
              : { url: options.store.url }),
            folder: join(bakeoffFolder, 'influxdb'),
            cpus: cores.generatorCpus,
            signal: interrupt.signal,
          });
    try {
      interrupt.signal.throwIfAborted();
      const context = { tools: { k6, delaylink, servers }, store, interrupt, host, generators };
      const versions = await asked;
      const serverHost = await host?.facts();
      const generatorHosts = await Promise.all(generators.map((one) => one.facts()));
      const environmentNow = (): Environment => {
        const here = readEnvironment(processors, cores, {
          ...versions,
          ...there?.versions,
          ...(store === null ? {} : { influxdb: store.version }),
        });
        return {
          ...here,
          coreNotes: [
            ...(here.coreNotes ?? []),
            ...sameMachineLines(here.bootId, { host, generators }),
          ],
          ...(serverHost === undefined ? {} : { serverHost }),
          ...(generatorHosts.length === 0 ? {} : { generatorHosts }),
        };
      };
      for (let plan: PlanDraft | undefined = draft; plan !== undefined; plan = work.next?.()) {
        const code = await measure(
          plan,
          environmentNow(),
          options,
          work,
          context,
          plan === draft ? begun : undefined,
        );
        if (code !== 0) return code;
      }
      return 0;
    } finally {
      await store?.close();
    }
  } finally {
    if (begun !== undefined) await endBegun(begun);
    release();
  }
}

/** The run itself, with everything there that it needs. */
async function measure(
  draft: PlanDraft,
  environment: Environment,
  options: RunOptions,
  work: Work,
  {
    tools,
    store,
    interrupt,
    host,
    generators,
  }: Pick<RunContext, 'tools' | 'store' | 'interrupt'> & Hosts,
  begun: Begun | undefined,
): Promise<number> {
  const print = options.json ? console.error : console.log;
  const { startedAt, run, folder, servers } =
    begun ?? (await begin(options.out, draft.scenario.name));
  const plan: Plan = { ...draft, run };
  try {
    const script = join(folder, 'script.js');
    await Promise.all([compileScript(script), writePageFiles(plan.scenario, folder)]);
    const heading = headingOf(plan, environment);
    print(
      wrapLines(
        [
          ...addressLines(plan),
          ...headingLines(heading),
          ...(environment.coreNotes ?? []),
          ...shorterLine(draft, options, work.shorterBy ?? []),
        ],
        outputWidth(options),
      ).join('\n'),
    );
    const progress = createRunProgress(process.stderr);
    const outcome = await runRounds(
      { plan, tools, folder, script, host, generators, store, interrupt, begun: servers },
      environment,
      progressEvents(plan, progress),
      startedAt,
    );
    progress.clear();
    return await report(outcome, folder, options, print, work.show);
  } catch (error) {
    throw await explainFailure(folder, error);
  }
}

/** Of a run's files, whatever its plan. */
const leastBytes = 1e6;

/** k6's record takes most: about 60 series a second, 300 B each. */
function neededBytes(plan: PlanDraft): number {
  return leastBytes + plan.rounds * plan.variants.length * 250e3 + estimatedSeconds(plan) * 20e3;
}

/** Throws UserError (exit code 2) for an address beyond this machine that is not among `hosts` (--host), and for an idle host there. */
export function requirePermission(servers: readonly ServerSpec[], hosts: readonly string[]): void {
  const others = servers
    .flatMap((server) =>
      server.name === 'address'
        ? [{ origin: server.origin, host: plain(new URL(server.origin).hostname) }]
        : [],
    )
    .filter(({ host }) => !isLoopback(host));
  const allowed = hosts.map(plain);
  const open = others.find(({ host }) => !allowed.includes(host));
  if (open !== undefined)
    throw new UserError(
      `${open.origin} is not on this machine: add --host ${open.host} if you may load it`,
      2,
    );
  const idle = hosts.find((host) => !others.some((other) => other.host === plain(host)));
  if (idle !== undefined)
    throw new UserError(`--host ${idle}: no side is an address there beyond this machine`, 2);
}

const plain = (host: string): string => host.toLowerCase().replace(/^\[|\]$/g, '');

/** One line for each address. */
export function addressLines({ variants }: Pick<PlanDraft, 'variants'>): string[] {
  return byText(
    variants.flatMap(({ variant: { name, server }, load: { connections } }) =>
      server.name === 'address'
        ? [
            {
              name,
              text: `what runs at ${server.origin} is loaded with ${connections} connections, and goes on running`,
            },
          ]
        : [],
    ),
  );
}

/** `host`: of the servers, undefined where they are here; `generators`: empty where the load is made here. */
export interface Hosts {
  host: ServerHost | undefined;
  generators: readonly GeneratorHost[];
}

/** Hosts that are one machine: it would be loaded from itself, and nothing says which cores each side has. @param bootId of this machine */
export function sameMachineLines(bootId: string, { host, generators }: Hosts): string[] {
  const all = [
    { name: 'this machine', bootId },
    ...(host === undefined ? [] : [host]),
    ...generators,
  ];
  return [...new Set(all.map((one) => one.bootId))]
    .map((id) => all.filter((one) => one.bootId === id))
    .filter((same) => same.length > 1)
    .map(
      (same) =>
        `${enumeration(same.map(({ name }) => name))} are one machine, by its kernel's boot: what each uses the others lack`,
    );
}

/**
 * Does the work with the hosts open that the options name, and with the cores of both sides.
 * @param kinds of the servers, or of the sides
 * @throws UserError for a host that cannot be reached or used, and for cores that are not there
 */
export async function onHosts<T>(
  {
    serverHost,
    generatorHosts = [],
    serverCpus,
    generatorCpus,
  }: Pick<RunOptions, 'serverHost' | 'generatorHosts' | 'serverCpus' | 'generatorCpus'>,
  scenario: Pick<Scenario, 'sharedCores'>,
  kinds: readonly string[],
  work: (cores: Cores, hosts: Hosts) => Promise<T>,
): Promise<T> {
  const asked = { server: serverCpus, generator: generatorCpus };
  if (
    generatorHosts.length > 0 &&
    serverHost === undefined &&
    kinds.some((kind) => kind !== 'address')
  ) {
    throw new UserError(
      '--generator-host: servers on this machine listen on loopback, where no other host comes to: name a --server-host for them, or compare addresses',
      2,
    );
  }
  if (generatorHosts.length > 0 && generatorCpus !== undefined)
    throw new UserError(
      '--generator-cpus are of this machine, and --generator-host makes the load elsewhere: leave one out',
      2,
    );
  const generators = await openGeneratorHosts(generatorHosts);
  let host: ServerHost | undefined;
  try {
    host = serverHost === undefined ? undefined : await openServerHost(serverHost);
    const both = generators.find(({ address }) => address === host?.address);
    if (both !== undefined)
      throw new UserError(
        `--generator-host ${both.name} is the server host: name another machine, or leave --generator-host out`,
        2,
      );
    const here = readProcessors();
    const cores =
      host === undefined ? divideCores(here, asked, scenario) : coresOfTwo(here, host, asked);
    const [fewestFiles] = generators.toSorted((a, b) => a.files - b.files);
    const generatorFacts =
      fewestFiles === undefined
        ? {}
        : {
            generatorHosts: {
              names: generators.map(({ name }) => name),
              coresEach: Math.min(...generators.map((one) => one.cores)),
            },
            generatorFiles: { host: fewestFiles.name, most: fewestFiles.files },
          };
    return await work({ ...cores, ...generatorFacts }, { host, generators });
  } finally {
    await Promise.all([host, ...generators].map((one) => one?.close()));
  }
}
