// The metrics of servers that can be asked for. A new one is an object here and an observer (lib/runner/observers) with its figure: result.json,
// InfluxDB, table, CSV, verdicts and gates follow.
import { short } from '../format.ts';
import { byName, present } from '../present.ts';

export interface ServerMetricFacts {
  /** A round's field in result.json, absent if unknown. */
  field: string;
  /** The name in CSV and InfluxDB. */
  column: string;
  columnUnit: 'bytes' | 'ms' | 'number';
  /** The table's, with the unit. */
  title: string;
  unit: string;
  perUnit: number;
  about: string;
  name: string;
  axis: string;
  text: (figure: number) => string;
  /** `same`: "as small". */
  verdicts: Readonly<Record<'faster' | 'slower' | 'same', string>>;
  /** What more and less of it is. */
  ends: readonly [worse: string, better: string];
  missing: string;
  /** Its name where a server ran already. */
  ofProcesses: string;
  /** Least figure, in `unit`, with which an unasked difference is told. */
  tells: number;
  /** "b uses 31 % less memory than a". @param change such as "31 % less" */
  sentence: (variant: string, baseline: string, change: string) => string;
  /** "b uses 4.5 times the memory of a". */
  timesSentence: (variant: string, baseline: string, times: string) => string;
}

/** In the order of print; less is better. */
const serverMetrics = {
  memory: {
    // Proportional set size, connections open.
    field: 'memoryBytes',
    column: 'memory_bytes',
    columnUnit: 'bytes',
    title: 'memory MB',
    unit: 'MB',
    perUnit: 1e6,
    about: 'the memory of all processes at the end of the load (shared pages by part: PSS)',
    name: 'memory',
    axis: 'memory at the end of the load, MB',
    text: short,
    verdicts: { faster: 'smaller', slower: 'larger', same: 'as small' },
    ends: ['more memory', 'less memory'],
    missing: 'its memory is not known in a whole round',
    ofProcesses: 'memory',
    tells: 1,
    sentence: (variant, baseline, change) => `${variant} uses ${change} memory than ${baseline}`,
    timesSentence: (variant, baseline, times) =>
      `${variant} uses ${times} the memory of ${baseline}`,
  },
  startup: {
    // Absent, too, in a run that was not asked for it.
    field: 'startupMs',
    column: 'startup_ms',
    columnUnit: 'ms',
    title: 'start-up ms',
    unit: 'ms',
    perUnit: 1,
    about: 'the time from exec to the first good answer',
    name: 'start-up',
    axis: 'start-up, ms',
    text: short,
    verdicts: { faster: 'quicker to start', slower: 'slower to start', same: 'as quick to start' },
    ends: ['slower to start', 'quicker to start'],
    missing: 'how long it takes to start is not known in a whole round',
    ofProcesses: 'start-up time',
    tells: 50,
    sentence: (variant, baseline, change) =>
      `${variant} takes ${change} time to start than ${baseline}`,
    timesSentence: (variant, baseline, times) =>
      `${variant} takes ${times} as long to start as ${baseline}`,
  },
} as const satisfies Record<string, ServerMetricFacts>;

export type ServerMetric = keyof typeof serverMetrics;
type ServerField = (typeof serverMetrics)[ServerMetric]['field'];
type ServerColumn = (typeof serverMetrics)[ServerMetric]['column'];

export const serverMetricNames = Object.keys(serverMetrics) as ServerMetric[];

export const serverFields = serverMetricNames.map((metric): ServerField => factsOf(metric).field);

/** By field; absent if unknown. */
export type ServerFigures = { [F in ServerField]?: number };

export function factsOf(
  metric: ServerMetric,
): ServerMetricFacts & { field: ServerField; column: ServerColumn } {
  return serverMetrics[metric];
}

export function serverFiguresOf(figures: ServerFigures): ServerFigures {
  return present(byName(serverFields, (field) => figures[field]));
}

export function serverColumns<T>(of: (metric: ServerMetric) => T): Record<ServerColumn, T> {
  const columns = serverMetricNames.map((metric) => [factsOf(metric).column, of(metric)]);
  return Object.fromEntries(columns) as Record<ServerColumn, T>;
}
