// What the articles' tools printed of a load, for every variant and load phase, published above measured.
import { curvesOf } from '../analysis/curve.ts';
import { phasePairs } from '../analysis/phases.ts';
import {
  enumeration,
  exactPercent,
  hundredths,
  scaledBytesPerSecond,
  scaledTime,
  success,
  whole,
} from '../format.ts';
import { byName } from '../present.ts';
import type { Distribution, PhaseResult, Result, VariantResult } from '../result/result.ts';
import { isAtRate } from '../scenario/load/fit.ts';
import type { Published, PublishedDistribution } from '../scenario/model.ts';
import { hasPhases } from './columns.ts';
import {
  figure,
  leftColumn,
  rightColumn,
  tableOf,
  type Column,
  type Part,
  type Table,
} from './table.ts';

/** What an article printed of a load, or what was measured, in the same units. */
type Run = { name: string } & { [Name in keyof Published]?: Published[Name] | undefined };

/** One row per variant, phase and source; what was not published, or not measured, has none. */
function runTable({ variants }: Result, title: string, columns: readonly Column<Run>[]): Table {
  const width = Math.max(...variants.map(({ name }) => name.length));
  const several = variants.some((variant) => phasePairs(variant).length > 1);
  const runs = variants.flatMap((variant) =>
    phasePairs(variant).flatMap(({ phase, published, measured }): Run[] => {
      const name = `${variant.name.padEnd(width)}  ${several ? `${phase}  ` : ''}`;
      return [
        ...(published === undefined ? [] : [{ ...published, name: `${name}published` }]),
        ...(measured === undefined ? [] : [{ ...measuredFigures(measured), name: `${name}here` }]),
      ];
    }),
  );
  return tableOf(runs, [leftColumn(title, ({ name }) => name), ...columns]);
}

function measuredFigures(phase: PhaseResult): Omit<Run, 'name'> {
  const { requests, seconds, rps, bytes } = phase;
  return {
    requests,
    seconds,
    rps: rps.median,
    successRatio: phase.successRatio ?? undefined,
    transferBytesPerSecond: phase.receivedBytesPerSecond,
    receivedBytes: bytes.received,
    headerBytes: bytes.headers,
    headerSavingsPercent: phase.headerSavingsPercent ?? undefined,
    bodyBytes: bytes.body,
    ...byName(
      ['latencyMs', 'connectMs', 'firstByteMs', 'perConnectionRps', 'perThreadRps'],
      (name) => asPublished(phase[name]),
    ),
  };
}

/** A measured distribution as articles print one; of nothing it is all zeros, and none then. */
function asPublished({
  min,
  mean,
  sd,
  max,
  withinSd,
}: Distribution): PublishedDistribution | undefined {
  return max === 0 ? undefined : { min, mean, sd, max, withinSdPercent: withinSd * 100 };
}

/** How long a load took, requests/s, and beside them the share that succeeded. */
export function finishTable(result: Result, title: string): Table {
  return runTable(result, title, [
    rightColumn('time', ({ seconds }) => figure(seconds, (value) => scaledTime(value * 1000))),
    rightColumn('requests/s', ({ rps }) => figure(rps, hundredths)),
    rightColumn('success', ({ successRatio }) => figure(successRatio, success)),
    rightColumn('bytes/s', ({ transferBytesPerSecond }) =>
      figure(transferBytesPerSecond, scaledBytesPerSecond),
    ),
  ]);
}

const distributions = [
  ['time of a request', 'latencyMs', scaledTime],
  ['time to connect', 'connectMs', scaledTime],
  ['time to first byte', 'firstByteMs', scaledTime],
  ['requests/s of a connection', 'perConnectionRps', hundredths],
  ['requests/s of a thread', 'perThreadRps', hundredths],
] as const;

/** Time, traffic and five distributions, a table each; those with nothing in them are left out. Nothing for a curve, which is of many loads. */
export function loadPart(result: Result): Part[] {
  if (curvesOf(result).length > 0) return [];
  const tables = [
    ...(hasPhases(result) ? [] : [finishTable(result, 'load')]),
    runTable(result, 'traffic', [
      rightColumn('requests', ({ requests }) => figure(requests, whole)),
      rightColumn('total B', ({ receivedBytes }) => figure(receivedBytes, whole)),
      rightColumn('headers B', ({ headerBytes }) => figure(headerBytes, whole)),
      rightColumn('savings', ({ headerSavingsPercent }) =>
        figure(headerSavingsPercent, exactPercent),
      ),
      rightColumn('data B', ({ bodyBytes }) => figure(bodyBytes, whole)),
    ]),
    ...distributions.map(([title, key, format]) =>
      runTable(result, title, [
        ...(['min', 'max', 'mean', 'sd'] as const).map((part) =>
          rightColumn(part, (run: Run) => figure(run[key]?.[part], format)),
        ),
        rightColumn('±sd', (run) => figure(run[key]?.withinSdPercent, exactPercent)),
      ]),
    ),
  ].filter(({ rows }) => rows.length > 0);
  const below = [
    `Time, rates and bytes are medians of the rounds, times of requests and connections those of all rounds. ${timesFrom(result.variants)}`,
  ];
  return tables.length === 0 ? [] : [{ title: 'Each load in detail:', tables, below }];
}

/** What latencies are times of: in the closed model the server sets the pace, so that what it delays is not asked in time. */
export function timesFrom(variants: readonly Pick<VariantResult, 'load'>[]): string {
  const open = variants.filter(({ load }) => isAtRate(load));
  if (open.length === 0)
    return 'Latency is service time: from when a request left, which is when the one before it was answered.';
  return open.length === variants.length
    ? 'Latency is from when a request was due.'
    : `Latency is from when a request was due with ${enumeration(open.map(({ load }) => load.command ?? ''))}, else service time.`;
}
