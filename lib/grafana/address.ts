// Where the dashboards of a run are.
import { dashboardNames, type DashboardName } from '../../dashboards/names.ts';
import type { Store } from '../store/index.ts';
import { quoteString } from '../store/line-protocol.ts';
import { benchComparison, benchRun } from '../store/schema.ts';

/** A run that has a table; times are milliseconds since 1970, `endedMs` null while it goes on. */
interface ShownRun { run: string; scenario: string; startedMs: number; endedMs: number | null }

/** The newest run with a table; null when there is none. Throws an InfluxError. */
export async function newestRun(store: Store): Promise<ShownRun | null> {
  const tables = await store.query(`SHOW TAG VALUES FROM "${benchComparison.measurement}" WITH KEY = "run"`);
  // A run's name starts with its time.
  const runs = tables.flatMap(({ values }) => values.map(([, run]) => String(run))).toSorted().toReversed();
  for (const run of runs) {
    const [series] = await store.query(`SELECT "scenario", "started", "ended" FROM "${benchRun.measurement}" WHERE "run" = ${quoteString(run)}`);
    const [, scenario, started, ended] = series?.values[0] ?? [];
    if (typeof scenario === 'string' && typeof started === 'number') {
      return { run, scenario, startedMs: started, endedMs: typeof ended === 'number' ? ended : null };
    }
  }
  return null;
}

/** The address of a dashboard, at a run and its time where one is given. */
export function dashboardUrl(origin: string, name: DashboardName, shown: ShownRun | null = null): string {
  const address = `${origin}/d/${dashboardNames[name].uid}`;
  if (shown === null) return address;
  const { run, scenario, startedMs, endedMs } = shown;
  return `${address}?${new URLSearchParams({
    'var-scenario': scenario, 'var-run': run, 'from': String(startedMs), 'to': endedMs === null ? 'now' : String(endedMs),
  })}`;
}
