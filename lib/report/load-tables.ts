// Each load in detail, as its tool prints it: published beside measured.
import {
  clientErrorsOf,
  perRequestOf,
  phasePairs,
  summed,
  type PerRequest,
} from '../analysis/phases.ts';
import { alphaOf, meanInterval, median } from '../analysis/statistics.ts';
import {
  effect,
  exactPercent,
  fiveDigits,
  hundredths,
  scaledBytesPerSecond,
  scaledTime,
  short,
  success,
  whole,
} from '../format.ts';
import { present, keysOf } from '../present.ts';
import type { ErrorCause, StatusClass } from '../result/load-result.ts';
import type { Result, VariantResult } from '../result/result.ts';
import type { Published, PublishedDistribution } from '../scenario/published.ts';
import { timesFrom } from './charts.ts';
import type { Contribution } from './contribution.ts';
import { curvesOf } from './found.ts';
import {
  figure,
  leftColumn,
  measuredGroup,
  rightColumn,
  tableOf,
  type Column,
  type Part,
  type Table,
} from './table.ts';

/** Returns whether a load has several phases, here or in the article. */
export function hasPhases({ variants }: Result): boolean {
  return variants.some(
    ({ phases, published }) => phases.length > 1 || published?.phases !== undefined,
  );
}

/** `singles`: figures that are of one connection or thread, so they are a value and no distribution. */
type Load = Published & { name: string; singles: readonly string[] };

function loadTable({ variants }: Result, title: string, columns: readonly Column<Load>[]): Table {
  const width = Math.max(...variants.map(({ name }) => name.length));
  const several = variants.some((variant) => phasePairs(variant).length > 1);
  const loads: Load[] = [];
  for (const variant of variants) {
    const { connections, keepAlive, threads } = variant.load;
    const singles: string[] = [];
    if (connections === 1 && keepAlive !== false) singles.push(...ofConnections);
    if (threads === 1) singles.push('perThreadRps');
    for (const { phase, published, asPublished } of phasePairs(variant)) {
      const name = `${variant.name.padEnd(width)}  ${several ? `${phase}  ` : ''}`;
      if (published !== undefined)
        loads.push({ ...published, name: `${name}published`, singles: [] });
      if (asPublished !== undefined) loads.push({ ...asPublished, name: `${name}here`, singles });
    }
  }
  return tableOf(loads, [leftColumn(title, ({ name }) => name), ...columns]);
}

type FigureOfLoad = {
  [Key in keyof Published]-?: NonNullable<Published[Key]> extends number ? Key : never;
}[keyof Published];

const loadColumn = (title: string, key: FigureOfLoad, format: (value: number) => string) =>
  rightColumn(title, (load: Load) => figure(load[key], format));

/**
 * Returns the line "finished in" of h2load. With several phases it also has the success rate to five digits, as articles have it, and
 * the responses by status class.
 */
export function finishTable(result: Result, title: string): Table {
  const phases = hasPhases(result);
  const columns = [
    loadColumn('time', 'seconds', (value) => scaledTime(value * 1000)),
    loadColumn('requests/s', 'rps', hundredths),
    loadColumn('success', 'successRatio', phases ? fiveDigits : success),
  ];
  if (phases) columns.push(...statusColumns(classesIn(result)));
  columns.push(loadColumn('bytes/s', 'transferBytesPerSecond', scaledBytesPerSecond));
  return loadTable(result, title, columns);
}

/** 2xx and 4xx, and what else was answered. */
function classesIn({ variants }: Result): StatusClass[] {
  const seen = summed(variants.flatMap(({ phases }) => phases.map(({ responses }) => responses)));
  const classes = ['2xx', '3xx', '4xx', '5xx'] as const;
  return classes.filter((name) => name === '2xx' || name === '4xx' || seen[name] > 0);
}

const statusColumns = (classes: readonly StatusClass[]) =>
  classes.map((name) =>
    rightColumn(name, ({ responses }: Load) => figure(responses && (responses[name] ?? 0), whole)),
  );

const outcomeNames = [
  'total',
  'started',
  'done',
  'succeeded',
  'failed',
  'errored',
  'timeout',
] as const;

const distributions = [
  ['time of a request', 'latencyMs', scaledTime],
  ['time to connect', 'connectMs', scaledTime],
  ['time to first byte', 'firstByteMs', scaledTime],
  ['requests/s of a connection', 'perConnectionRps', hundredths],
  ['requests/s of a thread', 'perThreadRps', hundredths],
] as const;

const ofConnections: readonly string[] = ['connectMs', 'firstByteMs', 'perConnectionRps'];

/** Returns the rows of a distribution: the least and the greatest figure, the mean, and the spread. Empty if no load has a figure. */
function distributionTable(
  result: Result,
  [title, key, format]: (typeof distributions)[number],
): Table {
  // All figures are 0 if nothing was measured, such as times to connect of connections that were there before.
  const isMeasured = (load: Published | undefined) => (load?.[key]?.max ?? 0) > 0;
  const pairs = result.variants.flatMap(phasePairs);
  if (!pairs.some((pair) => isMeasured(pair.asPublished) || isMeasured(pair.published)))
    return loadTable(result, title, []);
  const distributionOf = (load: Load): Partial<PublishedDistribution> => {
    if (!isMeasured(load)) return {};
    const { mean, ...others } = load[key] as PublishedDistribution;
    return load.singles.includes(key) ? { mean } : { mean, ...others };
  };
  const parts = (['min', 'max', 'mean', 'sd'] as const).map((part) =>
    rightColumn(part, (load: Load) => {
      if (part === 'mean' && load[key]?.max === 0) return 'none';
      return figure(distributionOf(load)[part], format);
    }),
  );
  const within = rightColumn('±sd', (load: Load) =>
    figure(distributionOf(load).withinSdPercent, exactPercent),
  );
  return loadTable(result, title, [...parts, within]);
}

/** The details of each load, like the output of wrk and h2load. Empty for a curve of many loads. */
export function loadPart(result: Result, contributions: readonly Contribution[]): Part[] {
  if (curvesOf(result).length > 0) return [];
  const tables = allTables(result, contributions).filter(({ rows }) => rows.length > 0);
  if (tables.length === 0) return [];
  const below = [
    `Time, rates and bytes are medians of the rounds, counts of requests, status codes and errors sums of all rounds, times of requests and connections those of all rounds. ${timesFrom(result.variants)}`,
    ...underWayLines(result),
    ...savingsLines(result),
  ];
  return [{ title: 'Each load in detail:', tables, below }];
}

/** Returns all tables on loads. Tables that do not apply have no rows. */
function allTables(result: Result, contributions: readonly Contribution[]): Table[] {
  const tables = [
    loadTable(
      result,
      'requests',
      outcomeNames.map((name) =>
        rightColumn(name, ({ outcomes }: Load) => figure(outcomes?.[name], whole)),
      ),
    ),
    loadTable(result, 'status codes', statusColumns(['2xx', '3xx', '4xx', '5xx'])),
    loadTable(result, 'TLS', [
      leftColumn('version', ({ tls }) => tls?.version ?? ''),
      leftColumn('cipher', ({ tls }) => tls?.cipher ?? ''),
      leftColumn('key exchange', ({ tls }) => tls?.keyExchange ?? ''),
    ]),
    loadTable(result, 'traffic', [
      loadColumn('requests', 'requests', whole),
      loadColumn('total B', 'receivedBytes', whole),
      loadColumn('headers B', 'headerBytes', whole),
      loadColumn('savings', 'headerSavingsPercent', exactPercent),
      loadColumn('data B', 'bodyBytes', whole),
    ]),
    ...distributions.map((distribution) => distributionTable(result, distribution)),
    perRequestTable(result, 'per request', {
      userCpuUs: 'user CPU µs',
      systemCpuUs: 'system CPU µs',
      voluntarySwitches: 'voluntary switches',
      involuntarySwitches: 'involuntary',
      pageFaults: 'page faults',
      readBytes: 'B read',
      writtenBytes: 'B written',
    }),
    perRequestTable(
      result,
      'wire per request',
      present({
        connections: 'connections',
        handshakes: 'TLS handshakes',
        resumed: hasResumed(result) ? 'resumed' : undefined,
        segmentsOut: 'segments to server',
        segmentsIn: 'from it',
        resentSegments: 'sent again',
        wireBytesOut: 'B to server',
        wireBytesIn: 'B from it',
      }),
    ),
  ];
  if (!hasPhases(result)) tables.unshift(finishTable(result, 'load'));
  // If an article shows errors by kind, they are beside the article's table instead (errorsPart).
  if (errorsPart(result).length === 0) tables.push(...errorTables(result));
  const ofFeatures = contributions.flatMap(({ loadTables = [] }) => loadTables);
  tables.push(...ofFeatures, memoryTable(result), turnsTable(result));
  return tables;
}

/** Returns whether a load asked for resumed TLS sessions, or had some. */
function hasResumed({ variants }: Result): boolean {
  return variants.some(
    (variant) =>
      (variant.load.tls?.resume ?? 0) > 0 ||
      perRequestOf(variant, 'resumed').some((count) => count > 0),
  );
}

/** Explains requests that were started and not done: a load of a set length ends while requests are under way. They are no failures. */
function underWayLines({ variants }: Result): string[] {
  const outcomes = variants.flatMap((variant) =>
    phasePairs(variant).flatMap(({ asPublished: load }) => load?.outcomes ?? []),
  );
  if (!outcomes.some(({ started, done }) => started > done)) return [];
  return ['Requests that were started and are not done were under way when a round ended.'];
}

/**
 * Explains smaller header savings of a short run: HPACK saves little in a connection's first requests, and a short run has relatively
 * more of these.
 */
function savingsLines({ variants }: Result): string[] {
  const fewer = variants.find(
    ({ traffic, published }) =>
      traffic !== null &&
      published?.headerSavingsPercent !== undefined &&
      published.requests !== undefined &&
      traffic.requests < published.requests,
  );
  const [measured, inArticle] = [fewer?.traffic?.requests, fewer?.published?.requests];
  if (measured === undefined || inArticle === undefined) return [];
  return [
    `Header savings here are those of ${whole(measured)} requests, the published ones of ${whole(inArticle)}: the first requests of a connection save less.`,
  ];
}

const errorTables = (result: Result): Table[] => [errorsTable(result), clientErrorsTable(result)];

/** Returns errors by kind if an article shows kinds; otherwise they are in the details of each load. */
export function errorsPart(result: Result): Part[] {
  if (result.variants.every(({ published }) => published?.clientErrors === undefined)) return [];
  return [{ title: 'Errors by kind:', tables: errorTables(result), below: [] }];
}

/** Attempts that ended without a response, by cause. */
function errorsTable({ variants }: Result): Table {
  const titles = {
    refused: 'refused',
    reset: 'reset',
    timedOut: 'timed out',
    short: 'ended early',
    addressNotAvailable: 'no free port',
    other: 'other',
  } as const satisfies Record<ErrorCause, string>;
  const rows = variants.map(({ name, phases }) => ({
    name,
    causes: summed(phases.map(({ errorCauses }) => errorCauses)),
  }));
  return tableOf(rows, [
    leftColumn('errors', ({ name }) => name),
    ...keysOf(titles).map((cause) =>
      rightColumn(titles[cause], ({ causes }: (typeof rows)[number]) =>
        figure(causes[cause] || null, whole),
      ),
    ),
  ]);
}

/** Kinds of trouble with clients in nginx's log: which the article shows, and how often each variant had them here. */
function clientErrorsTable({ variants }: Result): Table {
  const inArticle = new Set(variants.flatMap(({ published }) => published?.clientErrors ?? []));
  const columns = variants.map((variant) => ({
    name: variant.name,
    counts: clientErrorsOf(variant),
  }));
  const kinds = new Set([...inArticle, ...columns.flatMap(({ counts }) => Object.keys(counts))]);
  return tableOf(
    [...kinds],
    [
      leftColumn("nginx's log", (kind) => kind),
      leftColumn('published', (kind) => (inArticle.has(kind) ? 'shown' : '')),
      ...columns.map(({ name, counts }) =>
        rightColumn(name, (kind: string) => figure(counts[kind], whole), measuredGroup),
      ),
    ],
  );
}

function memoryTable({ variants }: Result): Table {
  const rows = variants.flatMap(({ name, load, rounds }) => {
    const bytes = rounds.flatMap(({ phases: [first] }) => first?.serverRssBytes ?? []);
    if (bytes.length === 0) return [];
    return [{ name, kB: median(bytes) / 1000, connections: load.connections }];
  });
  return tableOf(rows, [
    leftColumn('memory', ({ name }) => name),
    rightColumn('MB', ({ kB }) => short(kB / 1000)),
    rightColumn('kB per connection', ({ kB, connections }) =>
      connections === undefined ? '' : short(kB / connections),
    ),
  ]);
}

function turnsTable({ variants }: Result): Table {
  const rows = variants.flatMap(({ name, turnsAgainstContinuous: check }) =>
    check === undefined ? [] : [{ name, against: effect(check.ratio, check.ci95) }],
  );
  return tableOf(rows, [
    leftColumn('turns', ({ name }) => name),
    rightColumn('requests/s against continuous load', ({ against }) => against),
  ]);
}

/** An interval is too wide if half of its width is more than this many times its middle. */
const mostHalves = 10;

/**
 * Returns whether an interval is only the rounding error of sums of equal values.
 * @param half of the interval's width
 */
function isRounding(half: number, middle: number): boolean {
  return half <= Math.abs(middle) * 1e-9;
}

function perRequestTable(
  { variants }: Result,
  title: string,
  columns: Partial<Record<PerRequest, string>>,
): Table {
  const column = (key: PerRequest) =>
    rightColumn(columns[key] ?? '', (variant: VariantResult) => {
      const values = perRequestOf(variant, key);
      // A short load takes less CPU time than a tick of the kernel's count.
      const isUncounted = key.endsWith('CpuUs') && values.every((value) => value === 0);
      if (values.length === 0 || isUncounted) return '';
      const { middle, half } = meanInterval(values, alphaOf());
      const text = (value: number) => String(Number(value.toPrecision(3)));
      if (values.length === 1) return text(middle);
      // Two rounds far apart say nothing of a third.
      if (half > mostHalves * middle) return `${text(middle)} [too wide]`;
      return `${text(middle)} ± ${isRounding(half, middle) ? 0 : Number(half.toPrecision(1))}`;
    });
  return tableOf(variants, [leftColumn(title, ({ name }) => name), ...keysOf(columns).map(column)]);
}
