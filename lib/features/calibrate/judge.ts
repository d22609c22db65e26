// Compares measured figures with what arithmetic says, as a table; bounds make it a check.
import { median } from '../../analysis/statistics.ts';
import { percent, perSecond, scaledTime, short, whole } from '../../format.ts';
import type { Environment } from '../../result/environment.ts';
import { leftColumn, rightColumn, tableOf, type Cell, type Table } from '../../report/table.ts';
import { arrangements, type Measurements, type Seen } from './measure.ts';
import type { KnownServer, Truth } from './servers.ts';

/** A server with its truth and all that was seen of it. */
export interface Case {
  known: KnownServer;
  truth: Truth;
  seen: Measurements;
}

/** The outcome of one calibration. */
export interface Calibration {
  command: string;
  startedAt: string;
  endedAt: string;
  environment: Environment;
  peers: { name: string; version: string }[];
  cases: Case[];
  /** Why other generators have no figures in places. */
  failures: string[];
  /** It was interrupted, or a server did not start. */
  isPartial: boolean;
}

type FigureName = Exclude<keyof Seen, 'errors' | 'generatorMicros' | 'othersShare'>;

interface Figure {
  name: FigureName;
  title: string;
  /** What it may be off by: as a share of the truth, or in its own unit if that is more. */
  share: number;
  amount: number;
  text(value: number): string;
}

const bodyTitle = 'bytes of a body';

/** Timers are 0.1 ms late, and a pause of the machine delays one answer in a hundred. */
const figures: readonly Figure[] = [
  { name: 'rps', title: 'requests/s', share: 0.03, amount: 0, text: perSecond },
  { name: 'p50Ms', title: 'p50', share: 0.03, amount: 0.1, text: scaledTime },
  { name: 'p99Ms', title: 'p99', share: 0.1, amount: 1, text: scaledTime },
  { name: 'cpuMicros', title: 'server CPU µs', share: 0.03, amount: 0, text: short },
  {
    name: 'queueGrowthPerSecond',
    title: 'queue growth/s',
    share: 0.05,
    amount: 20,
    text: (value) => whole(value).replace('-', value > -0.5 ? '' : '−'),
  },
  { name: 'bodyBytes', title: bodyTitle, share: 0, amount: 0.5, text: whole },
  {
    name: 'littleShare',
    title: "Little's law",
    share: 0.03,
    amount: 0,
    text: (value) => value.toFixed(3),
  },
];

/** Standard errors. */
const mostChances = 3;

/** How far a figure is off, and whether that is too much. */
export interface Judged {
  value: number;
  /** As a share of the truth; null where the truth is not known, or 0. */
  off: number | null;
  isBeyond: boolean;
}

/** The truth of a figure; that of Little's law is 1 for any closed load. */
function truthOf({ known, truth }: Case, name: FigureName): number | undefined {
  if (name === 'littleShare') return known.load.rate === undefined ? 1 : undefined;
  return truth[name];
}

/** Judges a figure in one place; undefined if it was not seen there. */
function judged(testCase: Case, place: string, figure: Figure): Judged | undefined {
  const value = testCase.seen.get(place)?.[figure.name] ?? NaN;
  if (Number.isNaN(value)) return undefined;
  const truth = truthOf(testCase, figure.name);
  if (truth === undefined) return { value, off: null, isBeyond: false };
  const chances: Partial<Record<FigureName, number>> = testCase.truth.chance ?? {};
  const chance = chances[figure.name] ?? 0;
  const mayBeOff = Math.max(figure.share * truth, figure.amount, mostChances * chance);
  return {
    value,
    off: truth === 0 ? null : value / truth - 1,
    isBeyond: Math.abs(value - truth) > mayBeOff,
  };
}

export function judgedFigure(testCase: Case, place: string, name: FigureName): Judged | undefined {
  return judged(testCase, place, figures.find((figure) => figure.name === name) as Figure);
}

interface Row {
  testCase: Case;
  title: string;
  truth: string;
  cell(place: string): Cell;
}

function rowsOf(testCase: Case): Row[] {
  const rows = figures.map((figure): Row => {
    const truth = truthOf(testCase, figure.name);
    return {
      testCase,
      title: figure.title,
      truth: truth === undefined ? '' : figure.text(truth),
      cell: (place) => cellOf(figure, judged(testCase, place, figure), isOurs(place)),
    };
  });
  // All bodies are checked; only a long one is news.
  const shown = rows.filter(({ title, truth }) => title !== bodyTitle || truth !== '');
  return [...shown, generatorRow(testCase), errorsRow(testCase)].filter((row) => hasCells(row));
}

function hasCells({ testCase, cell }: Row): boolean {
  return [...testCase.seen.keys()].some((place) => cell(place) !== '');
}

function isOurs(place: string): boolean {
  return arrangements.some((arrangement) => arrangement === place);
}

/** Returns a figure with its deviation. Only bakeoff's figures get the mark ✗ if they are beyond their bounds. */
function cellOf(figure: Figure, judgement: Judged | undefined, ours: boolean): string {
  if (judgement === undefined) return '';
  const { value, off, isBeyond } = judgement;
  const mark = isBeyond && ours ? ' ✗' : '';
  return `${figure.text(value)}${off === null ? '' : ` (${offText(off)})`}${mark}`;
}

function offText(off: number): string {
  const percent = 100 * Math.abs(off);
  return `${off < 0 ? '−' : '+'}${percent >= 100 ? whole(percent) : percent.toFixed(1)} %`;
}

function generatorRow(testCase: Case): Row {
  return {
    testCase,
    title: 'generator CPU µs',
    truth: '',
    cell(place) {
      const micros = testCase.seen.get(place)?.generatorMicros ?? null;
      return micros === null ? '' : short(micros);
    },
  };
}

/** '' without an error. */
function errorsRow(testCase: Case): Row {
  return {
    testCase,
    title: 'errors',
    truth: '0',
    cell(place) {
      const errors = testCase.seen.get(place)?.errors ?? 0;
      if (errors === 0) return '';
      return `${whole(errors)}${isOurs(place) ? ' ✗' : ''}`;
    },
  };
}

/**
 * Returns all figures of all servers.
 * @param peers names of the other generators, in the order of the columns
 */
export function tableOfCases(cases: readonly Case[], peers: readonly string[]): Table {
  const rows = cases.flatMap(rowsOf);
  const isFirst = (row: Row): boolean =>
    rows.find(({ testCase }) => testCase === row.testCase) === row;
  return tableOf(rows, [
    leftColumn('server', (row) => (isFirst(row) ? row.testCase.known.name : '')),
    leftColumn('', ({ title }) => title),
    rightColumn('truth', ({ truth }) => truth),
    ...arrangements.map((place) => rightColumn<Row>(place, ({ cell }) => cell(place), 'bakeoff')),
    ...peers.map((name) => rightColumn<Row>(name, ({ cell }) => cell(name))),
  ]);
}

/**
 * Returns a row per server and generator. bakeoff's row has the truth and the largest deviation of its figures in any arrangement; the
 * other rows have the generators' deviations. Figures without a known truth are left out, except the generator's CPU time per request.
 */
export function tableOfDeviations(cases: readonly Case[], peers: readonly string[]): Table {
  const rows = cases.flatMap((testCase) => [
    { testCase, name: 'bakeoff', places: [...arrangements] as string[] },
    ...peers
      .filter((name) => testCase.seen.has(name))
      .map((name) => ({ testCase, name, places: [name] })),
  ]);
  type SeenBy = (typeof rows)[number];
  const cell = (figure: Figure, { testCase, name, places }: SeenBy): string => {
    const truth = truthOf(testCase, figure.name);
    if (truth === undefined) return '';
    const all = places.flatMap((place) => judged(testCase, place, figure) ?? []);
    const offs = all.flatMap(({ off }) => off ?? []).sort((a, b) => Math.abs(b) - Math.abs(a));
    const [farthest] = offs;
    const off = farthest === undefined ? '' : offText(farthest);
    if (name !== 'bakeoff') return off;
    const mark = all.some(({ isBeyond }) => isBeyond) ? ' ✗' : '';
    return `${figure.text(truth)}${off === '' ? '' : ` (${off})`}${mark}`;
  };
  const generatorMicros = ({ testCase, places }: SeenBy): string => {
    const all = places.flatMap((place) => testCase.seen.get(place)?.generatorMicros ?? []);
    return all.length === 0 ? '' : short(Math.max(...all));
  };
  return tableOf(rows, [
    leftColumn('server', ({ testCase, name }) => (name === 'bakeoff' ? testCase.known.name : '')),
    leftColumn('seen by', ({ name }) => name),
    ...figures.map((figure) => rightColumn<SeenBy>(figure.title, (row) => cell(figure, row))),
    rightColumn('generator CPU µs', generatorMicros),
  ]);
}

/** What each server does, and how its figures are calculated. */
export function tableOfServers(cases: readonly Case[]): Table {
  return tableOf(cases, [
    leftColumn('server', ({ known }) => known.name),
    leftColumn('its load', ({ known }) => known.load.command),
    leftColumn('how its figures are known', ({ known }) => known.how),
  ]);
}

/** Counts bakeoff's figures whose truth is known, and describes each figure that is beyond its bounds in a line. */
export function outcome(cases: readonly Case[]): { known: number; beyond: string[] } {
  let known = 0;
  const beyond: string[] = [];
  for (const testCase of cases) {
    for (const place of arrangements) {
      for (const figure of figures) {
        const judgement = judged(testCase, place, figure);
        if (judgement === undefined || truthOf(testCase, figure.name) === undefined) continue;
        known++;
        if (judgement.isBeyond)
          beyond.push(
            `${testCase.known.name}, ${place}: ${figure.title} ${cellOf(figure, judgement, false)}`,
          );
      }
      const errors = testCase.seen.get(place)?.errors ?? 0;
      if (errors > 0) beyond.push(`${testCase.known.name}, ${place}: ${whole(errors)} errors`);
    }
  }
  return { known, beyond };
}

/** If other programs use more than this share of the server's core, they move the figures by more than their bounds. */
const mostOfOthers = 0.03;

/** Returns why the calibration does not count; nothing on a quiet machine. */
export function voidReasons(cases: readonly Case[]): string[] {
  // The server behind a front is not the one that is measured.
  const plain = cases.filter(({ known }) => known.front === undefined);
  const shares = plain.flatMap(({ seen }) =>
    arrangements.flatMap((place) => seen.get(place)?.othersShare ?? []),
  );
  const share = shares.length === 0 ? 0 : median(shares);
  if (share <= mostOfOthers) return [];
  return [
    `This calibration does not count: other programs used ${percent(share)} of the server's core (median). End them, and measure again.`,
  ];
}
