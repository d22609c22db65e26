// The metrics of servers that a run can be asked for. A new one is an object here, and an observer (lib/runner/observers) that gives its
// figure. It then has a field of result.json, points and a column in InfluxDB, columns in the table and in CSV, a verdict, and a gate.
import { short } from '../format.ts';
import { byName, present, keysOf } from '../present.ts';

export interface ServerMetricFacts {
  /** Its field of a round in result.json, absent there if it is not known. */
  field: string;
  /** Its column in CSV and its field in InfluxDB. */
  column: string;
  columnUnit: 'bytes' | 'ms' | 'number';
  /** The title of its column in the table, with the unit. */
  title: string;
  /** The unit in texts. One `unit` is `perUnit` times the unit of `field`. */
  unit: string;
  perUnit: number;
  /** What it is, such as "the memory of all processes". */
  about: string;
  /** The metric's name in sentences. */
  name: string;
  /** The title of an axis, with the unit. */
  axis: string;
  text: (figure: number) => string;
  /** What its verdicts are called: words that follow "is". `same` is what equal sides are: "as small". */
  verdicts: Readonly<Record<'faster' | 'slower' | 'same', string>>;
  /** What more of it is called, then less. */
  ends: readonly [worse: string, better: string];
  /** Why there is no verdict without figures. */
  missing: string;
  /** Its name in the message that it is unknown for a server that runs already. */
  ofProcesses: string;
  /** A difference that nobody asked for is reported only if it is at least this much in each round, in `unit`. */
  tells: number;
  /** "b uses 31 % less memory than a". @param change such as "31 % less" */
  sentence: (variant: string, baseline: string, change: string) => string;
  /** "b uses 4.5 times the memory of a". */
  timesSentence: (variant: string, baseline: string, times: string) => string;
}

/** In the order in which they are named and printed; less of each is better. */
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
    // A run that was not asked for it has none: its servers start at once.
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

export const serverMetricNames = keysOf(serverMetrics);

/** The metrics' fields of a round. */
export const serverFields = serverMetricNames.map((metric): ServerField => factsOf(metric).field);

/** The figures of a round's server, by field; absent where they are not known. */
export type ServerFigures = { [F in ServerField]?: number };

/** A metric, without the type of its own values. */
export function factsOf(
  metric: ServerMetric,
): ServerMetricFacts & { field: ServerField; column: ServerColumn } {
  return serverMetrics[metric];
}

/** The figures alone, of an object that has more. */
export function serverFiguresOf(figures: ServerFigures): ServerFigures {
  return present(byName(serverFields, (field) => figures[field]));
}

/** A value for each metric's column. */
export function serverColumns<T>(of: (metric: ServerMetric) => T): Record<ServerColumn, T> {
  const columns = serverMetricNames.map((metric) => [factsOf(metric).column, of(metric)]);
  return Object.fromEntries(columns) as Record<ServerColumn, T>;
}
