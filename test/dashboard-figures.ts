// What result.json says of each column of the dashboards' tables, to be compared with what the database answers.
import { expect } from 'vitest';
import { times } from '../lib/format.ts';
import type {
  LinkTraffic,
  NetworkResult,
  ErrorCause,
  FoundRate,
  Phase,
  PhaseResult,
  Result,
  Round,
  VariantResult,
} from '../lib/result/result.ts';
import type { Published, PublishedDistribution } from '../lib/scenario/model.ts';

export type Cell = string | number | null;

/** What the columns of the tables of a link have to say. */
const linkFigures: Record<string, (network: NetworkResult) => Cell> = {
  packets_to_server_per_request: ({ packetsPerRequest }) => packetsPerRequest.toServer,
  packets_to_client_per_request: ({ packetsPerRequest }) => packetsPerRequest.toClient,
  dropped_to_server_share: ({ droppedShare }) => droppedShare.toServer,
  dropped_to_client_share: ({ droppedShare }) => droppedShare.toClient,
  lateness_p50_ms: ({ latenessMs }) => latenessMs.p50,
  lateness_p99_ms: ({ latenessMs }) => latenessMs.p99,
  retransmits_per_request: ({ retransmitsPerRequest }) => retransmitsPerRequest,
  listen_overflows: ({ listenOverflows }) => listenOverflows,
  server_idle_share: ({ serverIdleShare }) => serverIdleShare,
  delay: ({ delayHeld, latenessMs: { p99 } }) => (delayHeld ? 'held' : notHeld(p99)),
};

/** What each column of the tables has to say of a variant, from result.json alone. */
const figures: Record<string, (variant: VariantResult, result: Result) => Cell | undefined> = {
  variant: (variant) => variant.name,
  published_rps: (variant) => variant.published?.rps,
  published_ratio: (variant, result) => comparisonOf(variant, result)?.publishedRatio,
  measured_rps: (variant) => variant.rps?.median,
  // Of requests/s there is no word.
  metric: (variant, result) => comparisonOf(variant, result)?.metric.replace(/^rps$/, '') || null,
  within: ({ server }, { search }) =>
    search === undefined || server === null
      ? null
      : `${search.within.metric} within ${search.within.ms.toFixed(2)} ms`,
  found_low: (variant, result) => foundOf(variant, result)?.ci95?.[0],
  found_high: (variant, result) => foundOf(variant, result)?.ci95?.[1],
  found_at_least: (variant, result) =>
    ({ true: 1, false: 0, undefined: null })[`${foundOf(variant, result)?.atLeast}`],
  ratio: (variant, result) => measuredOf(variant, result)[0]?.ratio,
  ci_low: (variant, result) =>
    hasInterval(variant) ? measuredOf(variant, result)[0]?.ci95[0] : undefined,
  ci_high: (variant, result) =>
    hasInterval(variant) ? measuredOf(variant, result)[0]?.ci95[1] : undefined,
  effect: (variant, result) =>
    measuredOf(variant, result).map(({ ratio, ci95 }) =>
      times(ratio, hasInterval(variant) ? ci95 : undefined),
    )[0],
  verdict: (variant, result) => {
    const comparison = comparisonOf(variant, result);
    return (
      comparison &&
      [
        comparison.verdict,
        ...(comparison.delayNotHeld.length > 0 ? ['delay not held'] : []),
        ...(result.state === 'complete' || comparison.verdict === 'none' ? [] : ['not final']),
      ].join(', ')
    );
  },
  baseline: (variant, result) => comparisonOf(variant, result)?.baseline,
  why: (variant, result) => comparisonOf(variant, result)?.why ?? variant.publishedOnly,
  rounds_needed: (variant, result) =>
    measuredOf(variant, result).map(({ roundsNeeded }) => roundsNeeded ?? 0)[0],
  looks: (_, result) => result.looks.join(', '),
  outliers: (variant, result) =>
    measuredOf(variant, result).map((one) => one.outliers.join(', '))[0],
  cpu_ratio: (variant, result) => comparisonOf(variant, result)?.cpu?.ratio,
  cpu_ci_low: (variant, result) =>
    hasInterval(variant) ? comparisonOf(variant, result)?.cpu?.ci95[0] : undefined,
  cpu_ci_high: (variant, result) =>
    hasInterval(variant) ? comparisonOf(variant, result)?.cpu?.ci95[1] : undefined,
  disagreement: (variant, result) => measuredOf(variant, result).map((one) => one.disagreement)[0],
  note: (variant) => variant.note,
  server: (variant) => variant.server?.name,
  version: (variant) => variant.server?.version,
  server_cpu_micros_per_request: (variant) => variant.serverCpuMicrosPerRequest?.median,
  p50_ms: (variant) => variant.latencyMs?.p50,
  p99_ms: (variant) => variant.latencyMs?.p99,
  max_ms: (variant) => variant.latencyMs?.max,
  published_packets_per_request: (variant) => variant.published?.packetsPerRequest,
  published_errors_per_million: (variant) => variant.published?.errorsPerMillion,
  errors_per_million: (variant) => variant.errorsPerMillion,
  errors_address_not_available: (variant) => failed(variant, 'addressNotAvailable'),
  errors_refused: (variant) => failed(variant, 'refused'),
  errors_reset: (variant) => failed(variant, 'reset'),
  errors_timed_out: (variant) => failed(variant, 'timedOut'),
  errors_short: (variant) => failed(variant, 'short'),
  errors_other: (variant) => failed(variant, 'other'),
  success_ratio: (variant) => variant.successRatio,
  server_share: (variant) => variant.serverShare,
  generator_share: (variant) => variant.generatorShare,
  rounds: (variant) => variant.rounds.length,
  requests: (variant) => total(variant, (phase) => phase.requests),
  header_bytes_per_request: (variant) => perRequest(variant, (phase) => phase.bytes.headers),
  total_bytes_per_request: (variant) => perRequest(variant, (phase) => phase.bytes.received),
  ...Object.fromEntries(
    Object.entries(linkFigures).map(([column, figure]) => [
      column,
      ({ network }: VariantResult) => (network === null ? null : figure(network)),
    ]),
  ),
};

/** A row per variant. */
export function expectedRows(
  columns: readonly string[],
  result: Result,
  variants = result.variants,
): Record<string, Cell>[] {
  return variants.map((variant) => cells(columns, figures, variant, result));
}

/** What the plot of intervals draws of a run: a row for each variant, from -1 down, and what stands at which ratio in it. */
export function expectedIntervals(result: Result): {
  names: Record<string, Cell>[];
  marks: Record<string, Cell>[];
} {
  const rows = expectedRows(
    ['variant', 'verdict', 'ci_low', 'ci_high', 'ratio', 'published_ratio'],
    result,
  ).map((row, index): Record<string, Cell> => ({ ...row, one: 1, row: -1 - index }));
  const marks = (
    [
      ['one', 'one'],
      ['ci_low', 'interval'],
      ['ci_high', 'interval'],
      ['ratio', 'measured'],
      ['published_ratio', 'published'],
    ] as const
  ).map(([figure, name]) =>
    rows
      .filter((row) => row[figure] !== null)
      .map(({ variant = null, verdict = null, row = null, [figure]: ratio = null }) => ({
        variant,
        verdict,
        ratio,
        [name]: row,
      })),
  );
  return {
    names: rows.map(({ variant = null, row = null }) => ({ variant, row })),
    marks: marks.flat(),
  };
}

/** A load phase as it stands in the tables of phases. */
interface PhaseRow {
  variant: VariantResult;
  phase: number;
  published: Published | undefined;
  measured: PhaseResult | undefined;
}

/** What each column of those tables has to say, from result.json alone. */
const phaseFigures: Record<string, (row: PhaseRow) => Cell | undefined> = {
  variant: ({ variant }) => variant.name,
  phase: ({ phase }) => String(phase),
  protocol: ({ variant }) => variant.load.protocol,
  published_seconds: ({ published }) => published?.seconds,
  seconds: ({ measured }) => measured?.seconds,
  published_rps: ({ published }) => published?.rps,
  measured_rps: ({ measured }) => measured?.rps.median,
  published_success_ratio: ({ published }) => published?.successRatio,
  success_ratio: ({ measured }) => measured?.successRatio,
  published_bytes_per_second: ({ published }) => published?.transferBytesPerSecond,
  bytes_per_second: ({ measured }) => measured?.receivedBytesPerSecond,
  requests: ({ measured }) => measured?.requests,
  published_header_bytes: ({ published }) => published?.headerBytes,
  header_bytes: ({ measured }) => measured?.bytes.headers,
  published_header_savings: ({ published }) => asShare(published?.headerSavingsPercent),
  header_savings: ({ measured }) => asShare(measured?.headerSavingsPercent),
  published_total_bytes: ({ published }) => published?.receivedBytes,
  total_bytes: ({ measured }) => measured?.bytes.received,
  published_body_bytes: ({ published }) => published?.bodyBytes,
  body_bytes: ({ measured }) => measured?.bytes.body,
  published_tls: ({ published }) => tlsText(published?.tls),
  tls: ({ measured }) => tlsText(measured?.tls),
  responses_4xx: ({ measured }) => measured?.responses['4xx'],
  errors: ({ measured }) => measured?.errors.total,
  unsent: ({ measured }) => measured?.unsent,
  ...distributionFigures('request_ms', 'latencyMs'),
  ...distributionFigures('connect_ms', 'connectMs'),
  ...distributionFigures('first_byte_ms', 'firstByteMs'),
  ...distributionFigures('client_rps', 'perConnectionRps'),
  ...distributionFigures('thread_rps', 'perThreadRps'),
};

function distributionFigures(
  prefix: string,
  key: 'latencyMs' | 'connectMs' | 'firstByteMs' | 'perConnectionRps' | 'perThreadRps',
): typeof phaseFigures {
  const parts = ['min', 'max', 'mean', 'sd'] as const;
  const published = ({ published }: PhaseRow): PublishedDistribution | undefined =>
    published?.[key];
  return {
    ...Object.fromEntries(
      parts.flatMap((part) => [
        [`published_${prefix}_${part}`, (row: PhaseRow) => published(row)?.[part]],
        [`${prefix}_${part}`, ({ measured }: PhaseRow) => measured?.[key][part]],
      ]),
    ),
    [`published_${prefix}_within_sd`]: (row) => asShare(published(row)?.withinSdPercent),
    [`${prefix}_within_sd`]: ({ measured }) => measured?.[key].withinSd,
  };
}

function asShare(percent: number | null | undefined): number | undefined {
  return typeof percent === 'number' ? percent / 100 : undefined;
}

function tlsText(tls: Published['tls'] | null): string | undefined {
  return tls ? `${tls.version} ${tls.cipher} ${tls.keyExchange}` : undefined;
}

/** A row per variant and load phase; one without any figure is not there. */
export function expectedPhaseRows(
  columns: readonly string[],
  result: Result,
): Record<string, Cell>[] {
  return result.variants
    .flatMap((variant) => {
      const published =
        variant.published === null ? [] : (variant.published.phases ?? [variant.published]);
      return Array.from(
        { length: Math.max(published.length, variant.phases.length) },
        (_, index): Record<string, Cell> => {
          return cells(columns, phaseFigures, {
            variant,
            phase: index + 1,
            published: published[index],
            measured: variant.phases[index],
          });
        },
      );
    })
    .filter((row) =>
      Object.entries(row).some(
        ([column, cell]) => !['variant', 'phase', 'protocol'].includes(column) && cell !== null,
      ),
    );
}

/** A load phase of a round of a variant. */
interface RoundRow {
  variant: VariantResult;
  round: Round;
  index: number;
  phase: Phase;
}

/** What each column of the table of rounds has to say, from result.json alone. */
const roundFigures: Record<string, (row: RoundRow, result: Result) => Cell | undefined> = {
  round: ({ round }) => String(round.round),
  phase: ({ index }) => String(index + 1),
  variant: ({ variant }) => variant.name,
  measured_rps: ({ phase }) => phase.rps,
  ratio: ({ variant, round, index, phase }, result) => {
    const baseline = result.variants.find(
      ({ name }) => name === comparisonOf(variant, result)?.baseline,
    );
    const other = baseline?.rounds.find((one) => one.round === round.round)?.phases[index];
    return other && answered(phase) / phase.seconds / (answered(other) / other.seconds);
  },
  server_cpu_micros_per_request: ({ phase }) =>
    ((phase.serverCpuSeconds ?? NaN) / answered(phase)) * 1e6,
  // What a link carries to the generator is of its cores as well, of which it has what is left.
  generator_share: ({ variant, phase }, { environment: { generatorCpus } }) => {
    const left =
      generatorCpus.length *
      (1 - ((phase.noise?.generatorStealShare ?? 0) + (phase.noise?.generatorOthersShare ?? 0)));
    return Math.min(
      1,
      Math.max(
        phase.generatorCpuSeconds / (phase.seconds * Math.min(variant.load.threads, left)),
        (phase.generatorCpuSeconds + (phase.network?.linkCpuSeconds.toClient ?? 0)) /
          (phase.seconds * left),
      ),
    );
  },
  server_steal_share: ({ phase }) => phase.noise?.serverStealShare,
  generator_steal_share: ({ phase }) => phase.noise?.generatorStealShare,
  server_others_share: ({ phase }) => phase.noise?.serverOthersShare,
  load_average: ({ phase }) => phase.noise?.loadAverage,
  server_mhz_begin: ({ phase }) => phase.noise?.serverMhz?.[0],
  server_mhz_end: ({ phase }) => phase.noise?.serverMhz?.[1],
};

/** What the columns of the link's table of rounds have to say, where the server has one core and the link 100 ms of delay. */
const linkRoundFigures: typeof roundFigures = {
  ...roundFigures,
  packets_to_server_per_request: ({ phase }) =>
    phase.network && phase.network.toServer.packets / answered(phase),
  packets_to_client_per_request: ({ phase }) =>
    phase.network && phase.network.toClient.packets / answered(phase),
  dropped_to_server_share: ({ phase }) =>
    phase.network && phase.network.toServer.dropped / phase.network.toServer.packets,
  dropped_to_client_share: ({ phase }) =>
    phase.network && phase.network.toClient.dropped / phase.network.toClient.packets,
  lateness_p99_ms: ({ phase }) => latestP99(phase),
  retransmits_per_request: ({ phase }) =>
    phase.network &&
    (phase.network.retransmits.client + phase.network.retransmits.server) / answered(phase),
  listen_overflows: ({ phase }) => phase.network?.listenOverflows,
  server_idle_share: ({ phase }) => 1 - (phase.serverCpuSeconds ?? NaN) / phase.seconds,
  delay: ({ phase }) => (latestP99(phase) > 2 ? notHeld(latestP99(phase)) : 'held'),
};

function notHeld(p99: number): string {
  return `not held: p99 +${p99.toFixed(p99 < 99.95 ? 1 : 0)} ms`;
}

function latestP99({ network }: Phase): number {
  const of = (traffic: LinkTraffic | undefined): number => traffic?.latenessMs.p99 ?? 0;
  return Math.max(of(network?.toServer), of(network?.toClient));
}

/** A row per round and variant, in their order. */
export function expectedLinkRounds(
  columns: readonly string[],
  result: Result,
): Record<string, Cell>[] {
  const rows = result.variants.flatMap((variant) =>
    variant.rounds.flatMap((round) =>
      round.phases.map((phase, index) => ({ variant, round, index, phase })),
    ),
  );
  return rows
    .toSorted((a, b) => a.round.round - b.round.round)
    .map((row) => cells(columns, linkRoundFigures, row, result));
}

/** A row per round, variant and load phase, in the order in which they began. */
export function expectedRoundRows(
  columns: readonly string[],
  result: Result,
): Record<string, Cell>[] {
  const rows = result.variants.flatMap((variant) =>
    variant.rounds.flatMap((round) =>
      round.phases.map((phase, index) => ({ variant, round, index, phase })),
    ),
  );
  return rows
    .toSorted((a, b) => a.phase.startedAt.localeCompare(b.phase.startedAt))
    .map((row) => cells(columns, roundFigures, row, result));
}

/** The cells of a row. Of a fraction the last digit is left open: a sum in another order ends with another. */
function cells<Row extends unknown[]>(
  columns: readonly string[],
  known: Record<string, (...row: Row) => Cell | undefined>,
  ...row: Row
): Record<string, Cell> {
  return Object.fromEntries(
    columns.map((column) => {
      const figure = known[column];
      if (figure === undefined)
        throw new Error(`a panel shows ${column}, which this test cannot check`);
      const cell = figure(...row) ?? null;
      return [
        column,
        typeof cell === 'number' && !Number.isInteger(cell)
          ? (expect.closeTo(cell, 9) as Cell)
          : cell,
      ];
    }),
  );
}

/** What the histogram of a variant has to show. */
export function expectedBuckets({ phases, published }: VariantResult): Record<string, Cell>[] {
  const all = (published?.buckets ?? []).reduce((sum, { count }) => sum + count, 0);
  return (phases[0]?.buckets ?? []).map(({ count, share }, index) => {
    const article = published?.buckets?.[index]?.count ?? null;
    return {
      published_count: article,
      published_share: article === null ? null : article / all,
      count,
      share,
    };
  });
}

function foundOf({ name }: VariantResult, { search }: Result): FoundRate | undefined {
  return search?.found.find(({ variant }) => variant === name);
}

function comparisonOf(
  variant: VariantResult,
  result: Result,
): Result['comparisons'][number] | undefined {
  return result.comparisons.find((comparison) => comparison.variant === variant.name);
}

/** Its comparison of requests/s, where these were measured and not set; one or none. */
function measuredOf(variant: VariantResult, result: Result): Result['comparisons'] {
  const comparison = comparisonOf(variant, result);
  return comparison === undefined || variant.rounds.length === 0 ? [] : [comparison];
}

/** One round has none. */
function hasInterval({ rounds }: VariantResult): boolean {
  return rounds.length > 1;
}

/** A figure of all phases of all rounds. */
export function total(variant: VariantResult, of: (phase: Phase) => number): number {
  return variant.rounds.flatMap((round) => round.phases).reduce((sum, phase) => sum + of(phase), 0);
}

/** How many attempts failed for a reason; null where nothing was measured. */
function failed(variant: VariantResult, cause: ErrorCause): number | null {
  return variant.rounds.length === 0 ? null : total(variant, (phase) => phase.errorCauses[cause]);
}

function perRequest(variant: VariantResult, of: (phase: Phase) => number): number | null {
  return variant.rounds.length === 0 ? null : total(variant, of) / total(variant, answered);
}

function answered({ responses }: Phase): number {
  return Object.values(responses).reduce((sum, count) => sum + count, 0);
}
