// The tables of a run: the article's table, the link, and each load in detail.
import {
  comparisonOf,
  measuredComparisons,
  roundRatiosOf,
  comparable,
  curvesOf,
} from '../analysis/comparisons.ts';
import {
  headerBytesPerRequest,
  perRequestOf,
  phasePairs,
  responsesOf,
  succeeded,
  summed,
  type PerRequest,
} from '../analysis/phases.ts';
import { alphaOf, meanInterval, median, total } from '../analysis/statistics.ts';
import {
  enumeration,
  exactPercent,
  fiveDigits,
  fraction,
  hundredths,
  kilobytes,
  perMillion,
  perSecond,
  scaledBytesPerSecond,
  scaledTime,
  short,
  success,
  effect,
  whole,
} from '../format.ts';
import type {
  Comparison,
  ErrorCause,
  Result,
  StatusClass,
  VariantResult,
} from '../result/result.ts';
import type { Published, PublishedDistribution } from '../scenario/model.ts';
import { chartsOf, publishedQuantile, timesFrom } from './charts.ts';
import { hasPublishedKinds, kindsTable, linkPart } from './network.ts';
import {
  figure,
  leftColumn,
  rightColumn,
  tableOf,
  type Column,
  type Part,
  type Table,
} from './table.ts';
import { verdictCell } from './verdict-words.ts';
import { queueGrows, rateOf } from '../analysis/limit.ts';
import { minimumRounds } from '../analysis/statistics.ts';

/** All tables of the terminal and of Markdown: the article's, the link, and charts. */
export function tableParts(result: Result): Part[] {
  return [...articleParts(result), ...chartsOf(result)];
}

/** The article's table, between the load phases if there are several, and the link. */
export function articleParts(result: Result): Part[] {
  const phases = hasPhases(result);
  return [
    ...(phases ? [{ title: '', tables: [finishTable(result, 'variant, phase')], below: [] }] : []),
    {
      title: phases ? 'All phases together:' : '',
      tables: [variantTable(result)],
      below: [...disagreementLines(result), ...signLines(result), ...roundLines(result)],
    },
    ...headerPart(result),
    ...errorsPart(result),
    ...linkPart(result),
  ];
}

/** Header bytes of a request, and as a fraction of those over HTTP/1.1; empty unless an article published header bytes of both. */
function headerPart(result: Result): Part[] {
  const { variants } = result;
  if (!comparesProtocols(result)) return [];
  const first = variants.find(({ load }) => load.protocol.startsWith('http/1'));
  const sources = {
    published: ({ published }: VariantResult) =>
      headerBytesPerRequest(published?.headerBytes, published?.requests),
    here: ({ traffic }: VariantResult) =>
      headerBytesPerRequest(traffic?.bytes.headers, traffic?.requests),
  };
  if (first === undefined || sources.published(first) === undefined) return [];
  const columns = Object.entries(sources).flatMap(([source, bytesOf]) => {
    const whole = bytesOf(first);
    return [
      rightColumn('B/answer', (row: VariantResult) => figure(bytesOf(row), hundredths), source),
      rightColumn(
        `of ${first.name}`,
        (row: VariantResult) => {
          const own = bytesOf(row);
          return row === first || own === undefined || whole === undefined
            ? ''
            : fraction(own / whole);
        },
        source,
      ),
    ];
  });
  const table = tableOf(variants, [leftColumn('headers', ({ name }) => name), ...columns]);
  return [{ title: 'Header bytes of an answer:', tables: [table], below: [] }];
}

function disagreementLines(result: Result): string[] {
  return measuredComparisons(result).flatMap((one) =>
    one.cpu === null || one.disagreement === ''
      ? []
      : [
          `${nameOf(one, result)}: requests/s (${effect(one.ratio)}) and CPU per request (${effect(one.cpu.ratio)}) disagree, since ${one.disagreement}.`,
        ],
  );
}

/** Requests/s of a row are a median and its change a mean, which can differ in sign. */
function signLines({ variants, comparisons }: Result): string[] {
  const rpsOf = (name: string) => variants.find((one) => one.name === name)?.rps?.median;
  const other = comparisons.filter(({ variant, baseline, metric, ratio }) => {
    const [rps, before] = [rpsOf(variant), rpsOf(baseline)];
    if (metric !== 'rps' || rps === undefined || before === undefined) return false;
    const isSeen = perSecond(rps) !== perSecond(before) && effect(ratio) !== effect(1);
    return isSeen && rps > before !== ratio > 1;
  });
  if (other.length === 0) return [];
  const names = enumeration(other.map(({ variant }) => variant));
  return [
    `${names}: requests/s are medians of the rounds, changes the mean of what each round had; here they differ in sign.`,
  ];
}

/** "+40 %, +44 %, +80 %!, +42 %", for a comparison that is undecided or has outliers. */
function roundLines(result: Result): string[] {
  return measuredComparisons(result)
    .filter(({ outliers, verdict }) => outliers.length > 0 || verdict === 'inconclusive')
    .map((one) => {
      const effects = roundRatiosOf(one, result).map(
        ({ ratio, apart }) => `${effect(ratio)}${apart ? '!' : ''}`,
      );
      return `${nameOf(one, result)}, rounds${one.outliers.length > 0 ? ' (! is an outlier)' : ''}: ${effects.join(', ')}`;
    });
}

/** The variant's name; with the baseline's if the table's row shows another comparison. */
function nameOf({ variant, baseline }: Comparison, result: Result): string {
  return comparisonOf(result, variant)?.baseline === baseline
    ? variant
    : `${variant} against ${baseline}`;
}

type Row = VariantResult & { comparison: Comparison | undefined };

/** The columns' group of measured figures, beside "published". */
export const here = 'here';

/** The article's table: a row per variant, in the result's order. Empty columns are left out. */
export function variantTable(result: Result): Table {
  const rows = result.variants.map((variant): Row => ({
    ...variant,
    comparison: comparisonOf(result, variant.name),
  }));
  const measured = (title: string, cell: (row: Row) => string) => rightColumn(title, cell, here);
  // While the queue of a rate grows, the latency is that of the run's length.
  const latency = (key: 'p50' | 'p99' | 'max') =>
    measured(`${key} ms`, (row) =>
      queueGrows(row) ? 'grows' : figure(row.latencyMs?.[key], short),
    );
  const count = (key: 'hung' | 'unsent') =>
    measured(key, ({ phases }) => figure(total(phases, (one) => one[key]) || null, whole));
  const successColumn = measured('success', ({ successRatio }) => figure(successRatio, success));
  const phases = hasPhases(result);
  // Where requests failed, requests/s mean little without it.
  const failed = phases || rows.some(({ successRatio }) => (successRatio ?? 1) < 1);
  const withHeaders = comparesProtocols(result);
  return tableOf(rows, [
    leftColumn('variant', ({ name }) => name),
    // An article's figures are those of one phase.
    ...(phases ? [] : publishedColumns(rows, withHeaders)),
    measured('requests/s', (variant) => rateText(variant, result)),
    ...(failed ? [successColumn] : []),
    againstColumn(result, rows),
    measured('headers kB', ({ traffic }) =>
      figure(withHeaders ? traffic?.bytes.headers : null, kilobytes),
    ),
    measured('CPU µs/req', ({ serverCpuMicrosPerRequest: cpu }) =>
      figure(cpu?.median, (value) => value.toFixed(1)),
    ),
    leftColumn(
      'CPU change',
      ({ comparison, rounds }) =>
        figure(comparison?.cpu, ({ ratio, ci95 }) =>
          effect(ratio, rounds.length < minimumRounds ? undefined : ci95),
        ),
      here,
    ),
    latency('p50'),
    latency('p99'),
    latency('max'),
    measured('errors/M', ({ errorsPerMillion }) => figure(errorsPerMillion, perMillion)),
    count('hung'),
    count('unsent'),
    ...(failed ? [] : [successColumn]),
  ]);
}

/** "95,000 of 300,000": made of asked, or if most responses were errors, successful of all. */
function rateText(variant: Row, { search }: Result): string {
  const { server, rps, phases, name } = variant;
  if (server === null) return 'published only';
  const found = search?.found.find((one) => one.variant === name);
  if (found !== undefined) return `${found.atLeast ? 'at least ' : ''}${whole(found.rate)}`;
  const rate = rateOf(variant);
  const share = total(phases, succeeded) / total(phases, responsesOf);
  if (rps !== null && share < 0.5)
    return `${perSecond(rps.median * share)} of ${perSecond(rps.median)}`;
  const asked = rate === null || rate.reached ? '' : ` of ${perSecond(rate.asked)}`;
  return `${figure(rate?.made ?? rps?.median, perSecond)}${asked}`;
}

function publishedColumns(rows: readonly Row[], withHeaders: boolean): Column<Row>[] {
  const group = 'published';
  const column = (title: string, cell: (published: Published) => string): Column<Row> =>
    rightColumn(title, ({ published }) => cell(published ?? {}), group);
  const hasErrors = rows.some(({ published }) => (published?.errorsPerMillion ?? 0) > 0);
  return [
    column('requests/s', ({ rps }) => figure(rps, perSecond)),
    leftColumn('change', ({ comparison }) => figure(comparison?.publishedRatio, effect), group),
    leftColumn('effect', ({ published }) => published?.effect ?? '', group),
    column('headers kB', (one) => figure(withHeaders ? one.headerBytes : null, kilobytes)),
    column('p50', (published) => publishedQuantile(published, 0.5)),
    column('p99', (published) => publishedQuantile(published, 0.99)),
    column('errors/M', (one) => figure(hasErrors ? one.errorsPerMillion : null, perMillion)),
  ];
}

function againstColumn(result: Result, rows: readonly Row[]): Column<Row> {
  const [first, ...others] = new Set(rows.flatMap(({ comparison }) => comparison?.baseline ?? []));
  const steps = ladderSteps(result);
  const title =
    steps.size > 0 ? 'the row before' : others.length === 0 ? (first ?? '') : 'its baseline';
  return leftColumn(
    `against ${title}`,
    (row) => {
      const { comparison } = row;
      if (!comparable(row, comparison)) return '';
      const cell = verdictCell(comparison, result);
      return steps.has(comparison) || title === comparison.baseline
        ? cell
        : { ...cell, text: `${cell.text} (against ${comparison.baseline})` };
    },
    here,
  );
}

/** The comparisons of rows with the row before; empty if there are fewer than 3. */
export function ladderSteps({ variants, comparisons }: Result): ReadonlySet<Comparison> {
  // In a sweep over rates with two variants every other row is compared with the row before.
  if (variants.some(({ series }) => series !== undefined)) return new Set();
  const steps = variants.flatMap(({ name }, index) => {
    const before = variants[index - 1]?.name;
    return before === undefined ? [] : (comparisonOf({ comparisons }, name, before) ?? []);
  });
  return new Set(steps.length < 3 ? [] : steps);
}

/** Whether the variants have different protocols; then their header bytes matter. */
export function comparesProtocols({ variants }: Result): boolean {
  return new Set(variants.map(({ load }) => load.protocol)).size > 1;
}

function hasPhases({ variants }: Result): boolean {
  return variants.some(
    ({ phases, published }) => phases.length > 1 || published?.phases !== undefined,
  );
}

type Load = Published & { name: string; isSingle: boolean };

function loadTable({ variants }: Result, title: string, columns: readonly Column<Load>[]): Table {
  const width = Math.max(...variants.map(({ name }) => name.length));
  const several = variants.some((variant) => phasePairs(variant).length > 1);
  const loads = variants.flatMap((variant) =>
    phasePairs(variant).flatMap(({ phase, published, here }) => {
      const name = `${variant.name.padEnd(width)}  ${several ? `${phase}  ` : ''}`;
      const { connections, keepAlive } = variant.load;
      const isOne = connections === 1 && keepAlive !== false;
      return Object.entries({ published, here }).flatMap(([source, figures]): Load[] =>
        figures === undefined
          ? []
          : [{ ...figures, name: name + source, isSingle: isOne && source === 'here' }],
      );
    }),
  );
  return tableOf(loads, [leftColumn(title, ({ name }) => name), ...columns]);
}

type FigureOfLoad = {
  [Key in keyof Published]-?: NonNullable<Published[Key]> extends number ? Key : never;
}[keyof Published];

const loadColumn = (title: string, key: FigureOfLoad, format: (value: number) => string) =>
  rightColumn(title, (load: Load) => figure(load[key], format));

/** The line "finished in"; of several phases with their success as the article has it, to five digits, and what else was answered. */
function finishTable(result: Result, title: string): Table {
  const phases = hasPhases(result);
  return loadTable(result, title, [
    loadColumn('time', 'seconds', (value) => scaledTime(value * 1000)),
    loadColumn('requests/s', 'rps', hundredths),
    loadColumn('success', 'successRatio', phases ? fiveDigits : success),
    ...(phases ? statusColumns(classesIn(result)) : []),
    loadColumn('bytes/s', 'transferBytesPerSecond', scaledBytesPerSecond),
  ]);
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

/** Of figures per connection: a single connection has a value and no distribution. */
const ofConnections: readonly string[] = ['connectMs', 'firstByteMs', 'perConnectionRps'];

/** A single value as a distribution. */
function singleOf(of: PublishedDistribution | undefined): Partial<PublishedDistribution> {
  return of === undefined ? {} : { mean: of.mean };
}

/** As wrk and h2load print them. Empty for a curve of many loads. */
export function loadPart(result: Result): Part[] {
  if (curvesOf(result).length > 0) return [];
  const tables = [
    ...(hasPhases(result) ? [] : [finishTable(result, 'load')]),
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
    ...distributions.map(([title, key, format]) => {
      const of = (load: Load): Partial<PublishedDistribution> | undefined => {
        // All are 0 if nothing was measured.
        if (load[key]?.max === 0) return undefined;
        if (!load.isSingle || !ofConnections.includes(key)) return load[key];
        return singleOf(load[key]);
      };
      return loadTable(result, title, [
        ...(['min', 'max', 'mean', 'sd'] as const).map((part) =>
          rightColumn(part, (load: Load) => figure(of(load)?.[part], format)),
        ),
        rightColumn('±sd', (load) => figure(of(load)?.withinSdPercent, exactPercent)),
      ]);
    }),
    perRequestTable(result, 'per request', {
      userCpuUs: 'user CPU µs',
      systemCpuUs: 'system CPU µs',
      voluntarySwitches: 'voluntary switches',
      involuntarySwitches: 'involuntary',
      pageFaults: 'page faults',
      readBytes: 'B read',
      writtenBytes: 'B written',
    }),
    perRequestTable(result, 'wire per request', {
      connections: 'connections',
      handshakes: 'TLS handshakes',
      segmentsOut: 'segments to server',
      segmentsIn: 'from it',
      resentSegments: 'sent again',
      wireBytesOut: 'B to server',
      wireBytesIn: 'B from it',
    }),
    ...(errorsPart(result).length === 0 ? errorTables(result) : []),
    hasPublishedKinds(result) ? undefined : kindsTable(result),
    memoryTable(result),
    turnsTable(result),
  ].filter((table) => table !== undefined && table.rows.length > 0) as Table[];
  const below = `Time, rates and bytes are medians of the rounds, counts of requests, status codes and errors sums of all rounds, times of requests and connections those of all rounds. ${timesFrom(result.variants)}`;
  return tables.length === 0
    ? []
    : [{ title: 'Each load in detail:', tables, below: [below, ...savingsLines(result)] }];
}

/** HPACK saves most after a connection's first requests, of which a short run has relatively many. */
function savingsLines({ variants }: Result): string[] {
  const fewer = variants.find(
    ({ traffic, published }) =>
      traffic !== null &&
      published?.headerSavingsPercent !== undefined &&
      published.requests !== undefined &&
      traffic.requests < published.requests,
  );
  const [here, there] = [fewer?.traffic?.requests, fewer?.published?.requests];
  if (here === undefined || there === undefined) return [];
  return [
    `Header savings here are those of ${whole(here)} requests, the published ones of ${whole(there)}: the first requests of a connection save less.`,
  ];
}

const errorTables = (result: Result): Table[] => [errorsTable(result), clientErrorsTable(result)];

/** Errors by kind, if an article shows kinds; else they are below each load in detail. */
function errorsPart(result: Result): Part[] {
  return result.variants.some(({ published }) => published?.clientErrors !== undefined)
    ? [{ title: 'Errors by kind:', tables: errorTables(result), below: [] }]
    : [];
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
    ...Object.entries(titles).map(([cause, title]) =>
      rightColumn(title, ({ causes }: (typeof rows)[number]) =>
        figure(causes[cause as ErrorCause] || null, whole),
      ),
    ),
  ]);
}

/** Kinds of trouble with clients in nginx's log: which the article shows, and how often each variant had them here. */
function clientErrorsTable({ variants }: Result): Table {
  const inArticle = new Set(variants.flatMap(({ published }) => published?.clientErrors ?? []));
  const columns = variants.map(({ name, rounds }) => {
    const counts = summed(
      rounds.flatMap(({ phases }) => phases.map(({ clientErrors = {} }) => clientErrors)),
    );
    return { name, counts };
  });
  const kinds = new Set([...inArticle, ...columns.flatMap(({ counts }) => Object.keys(counts))]);
  return tableOf(
    [...kinds],
    [
      leftColumn("nginx's log", (kind) => kind),
      leftColumn('published', (kind) => (inArticle.has(kind) ? 'shown' : '')),
      ...columns.map(({ name, counts }) =>
        rightColumn(name, (kind: string) => figure(counts[kind], whole), here),
      ),
    ],
  );
}

function memoryTable({ variants }: Result): Table {
  const rows = variants.flatMap(({ name, load, rounds }) => {
    const bytes = rounds.flatMap(({ phases: [first] }) => first?.serverRssBytes ?? []);
    return bytes.length === 0
      ? []
      : [{ name, kB: median(bytes) / 1000, connections: load.connections }];
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

function perRequestTable(
  { variants }: Result,
  title: string,
  columns: Partial<Record<PerRequest, string>>,
): Table {
  const column = ([key, heading]: [string, string]) =>
    rightColumn(heading, (variant: VariantResult) => {
      const values = perRequestOf(variant, key as PerRequest);
      if (values.length === 0) return '';
      const { middle, half } = meanInterval(values, alphaOf());
      const text = (value: number) => String(Number(value.toPrecision(3)));
      return values.length === 1
        ? text(middle)
        : `${text(middle)} ± ${Number(half.toPrecision(1))}`;
    });
  return tableOf(variants, [
    leftColumn(title, ({ name }) => name),
    ...Object.entries(columns).map(column),
  ]);
}
