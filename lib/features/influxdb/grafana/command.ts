// npm run grafana: shows the dashboards in its own Grafana until Ctrl-C.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { dashboardNames, type DashboardName } from '../../../../dashboards/names.ts';
import { inOneLine, usageError, UserError } from '../../../errors.ts';
import { findGrafana, firstPort, startGrafana, type RunningGrafana } from './start.ts';
import { defaultCores } from '../../../machine/cores.ts';
import { underSignals } from '../../../signals.ts';
import { cpusOf, readProcessors } from '../../../machine/processors.ts';
import { thisMachine } from '../../../setup/machine.ts';
import { bakeoffFolder, typed } from '../../../setup/paths.ts';
import { ensureTools } from '../../../setup/tools.ts';
import { parseInfluxUrl } from '../../../influx/address.ts';
import { type Store, openStore } from '../store.ts';
import { quoteString } from '../../../influx/line-protocol.ts';
import { benchComparison } from '../comparison-points.ts';
import { benchRun } from '../schema.ts';
import { influxdbFlags, influxdbFolder } from '../flags.ts';
import { noInstall, printHelp, readArguments } from '../../../cli/arguments.ts';

const grafanaFlags = {
  influx: influxdbFlags.influx,
  ...noInstall,
  help: { group: 'help', help: 'this text' },
} as const;

/** Starts Grafana and prints the address of the newest run. Returns 0 after Ctrl-C. Throws UserError and Interrupted. */
export async function grafanaCommand(args: readonly string[]): Promise<number> {
  const {
    positionals: [word],
    flags,
  } = readArguments(args, grafanaFlags);
  if (word !== undefined)
    throw usageError(`grafana takes no name, and got ${word}: pick the run in the dashboards`);
  if (flags.has('help')) {
    printHelp([`${typed('grafana')} [flags]`], grafanaFlags);
    return 0;
  }
  const url = flags.get('influx');
  if (url !== undefined) parseInfluxUrl(url);
  await underSignals('ending Grafana; again to end it at once', (signal) => show(url, signal));
  return 0;
}

async function show(url: string | undefined, signal: AbortSignal): Promise<void> {
  const machine = thisMachine();
  const program = await findGrafana(machine, signal);
  const processors = readProcessors();
  // The server's cores stay free for a run that may begin meanwhile, unless there is only one core.
  const cpus = defaultCores(processors)?.generatorCpus ?? cpusOf(processors.cores);
  const store = await openStore({
    ...(url === undefined
      ? { influxdBinary: (await ensureTools(['influxd'], machine, signal)).influxd }
      : { url }),
    folder: influxdbFolder,
    cpus,
    purpose: 'view',
    signal,
  });
  try {
    const grafana = await machine.progress.step('Grafana', 'starting', () =>
      startGrafana({
        program,
        influx: store.influx,
        folder: join(bakeoffFolder, 'grafana'),
        cpus,
        env: machine.env,
        signal,
      }),
    );
    try {
      await announce(grafana, store);
      await watch(grafana, store, url === undefined, signal);
    } finally {
      await grafana.stop();
    }
  } finally {
    await store.close();
  }
}

async function announce({ origin, port, files }: RunningGrafana, store: Store): Promise<void> {
  const shown = await newestRun(store);
  if (port !== firstPort) console.log(`Port ${firstPort} is taken, this is ${port}.`);
  console.log(`Grafana: ${dashboardUrl(origin, 'comparison', shown)}`);
  console.log(
    shown === null
      ? `  No run has a table yet: ${typed('scenario')} NAME makes one.`
      : `  It shows ${inOneLine(shown.run)}, the newest run; the list at its end has the others.`,
  );
  console.log(
    `  What articles claim, and whether that holds here: ${dashboardUrl(origin, 'articles')}`,
  );
  console.log(`  A run while it goes on: ${dashboardUrl(origin, 'live')}`);
  console.log(
    inOneLine(`  Log in as admin with ${files.password} (kept in ${files.passwordFile})`),
  );
  console.log('Ctrl-C ends it.');
}

/** Returns at the signal. Until then it restarts a local influxd that a run has ended. Throws UserError if Grafana ends. */
async function watch(
  grafana: RunningGrafana,
  store: Store,
  isLocal: boolean,
  signal: AbortSignal,
): Promise<void> {
  let why: string | undefined;
  void grafana.ended.then((reason) => (why = reason));
  while (!signal.aborted) {
    await delay(500, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    if (why !== undefined) throw new UserError(`Grafana has ended: ${why}`);
    if (isLocal) await store.revive();
  }
}

type ShownRun = Awaited<ReturnType<typeof newestRun>>;

/** Returns the newest run that has a table; null without one. Times are milliseconds since 1970; `endedMs` is null during the run. */
async function newestRun(store: Store) {
  const tables = await store.query(
    `SHOW TAG VALUES FROM "${benchComparison.measurement}" WITH KEY = "run"`,
  );
  const runs = tables.flatMap(({ values }) => values.map(([, run]) => String(run)));
  // A run's name starts with its time.
  for (const run of runs.toSorted().toReversed()) {
    const [series] = await store.query(
      `SELECT "scenario", "started", "ended" FROM "${benchRun.measurement}" WHERE "run" = ${quoteString(run)}`,
    );
    const [, scenario, started, ended] = series?.values[0] ?? [];
    const endedMs = typeof ended === 'number' ? ended : null;
    if (typeof scenario === 'string' && typeof started === 'number')
      return { run, scenario, startedMs: started, endedMs };
  }
  return null;
}

export function dashboardUrl(origin: string, name: DashboardName, shown: ShownRun = null): string {
  const address = `${origin}/d/${dashboardNames[name].uid}`;
  if (shown === null) return address;
  const { run, scenario, startedMs, endedMs } = shown;
  return `${address}?${new URLSearchParams({
    'var-scenario': scenario,
    'var-run': run,
    from: String(startedMs),
    to: endedMs === null ? 'now' : String(endedMs),
  })}`;
}
