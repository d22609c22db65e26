// Ratios of a generator to its peer, round by round, as a table.
import type { Sample } from '../lib/features/calibrate/peers.ts';
import { median, ratioInterval, type RatioInterval } from '../lib/analysis/statistics.ts';
import { whole } from '../lib/format.ts';

/**
 * A generator's figures, and the CPU share of both sides: the server's over the load's duration, the generator's over its own.
 */
export interface Measured extends Sample {
  serverShare: number;
  generatorShare: number;
}

export type Arrangement = 'a core each' | 'one core';

/** CPU time is reported per this unit. */
export type Unit = 'request' | 'handshake' | 'MB of body';

/**
 * Limits as multiples of the peer's figures: maximum CPU time per unit, minimum requests/s, maximum memory. `memoryBytes` is an
 * absolute limit for every round.
 */
export interface Limits {
  cpu?: number;
  rps?: number;
  memory?: number;
  memoryBytes?: number;
}

/** `ratio` is the geometric mean over rounds with a 95 % interval; min and max are the extreme rounds. */
export interface Ratio extends RatioInterval {
  min: number;
  max: number;
}

/** CPU time per unit, requests/s and peak memory, as ratios to the peer. */
export interface Ratios {
  cpu: Ratio;
  rps: Ratio;
  memory: Ratio;
}

/** Whether the ratios over all rounds are within the limits. */
export type Verdict = 'held' | 'NOT HELD';

export interface Row {
  experiment: string;
  load: string;
  /** e.g. nginx 1.22.1 */
  server: string;
  arrangement: Arrangement;
  generator: string;
  unit: Unit;
  samples: Measured[];
  /** null for the peer itself. */
  against: (Ratios & { peer: string; limits?: Limits; verdict?: Verdict }) | null;
}

/** CPU microseconds per unit. */
function cpuMicrosPer(
  unit: Unit,
  { cpuMicrosPerRequest, requests, bodyBytes = NaN }: Sample,
): number {
  // One handshake per request.
  return unit === 'MB of body'
    ? (cpuMicrosPerRequest * requests) / (bodyBytes / 1e6)
    : cpuMicrosPerRequest;
}

/** Compares samples of the same rounds. */
export function compareRounds(
  measured: readonly Sample[],
  peer: readonly Sample[],
  unit: Unit,
): Ratios {
  const compare = (of: (sample: Sample) => number): Ratio => {
    const [a, b] = [measured.map(of), peer.map(of)];
    const ratios = a.map((value, round) => value / (b[round] as number));
    return { ...ratioInterval(b, a), min: Math.min(...ratios), max: Math.max(...ratios) };
  };
  return {
    cpu: compare((sample) => cpuMicrosPer(unit, sample)),
    rps: compare(({ rps }) => rps),
    memory: compare(({ peakRssBytes }) => peakRssBytes),
  };
}

/** @param samples the generator's samples */
export function judge(
  { cpu, rps, memory }: Ratios,
  limits: Limits,
  samples: readonly Measured[],
): Verdict {
  const mostBytes = Math.max(...samples.map(({ peakRssBytes }) => peakRssBytes));
  const held =
    cpu.ratio <= (limits.cpu ?? Infinity) &&
    rps.ratio >= (limits.rps ?? 0) &&
    memory.ratio <= (limits.memory ?? Infinity) &&
    mostBytes <= (limits.memoryBytes ?? Infinity);
  return held ? 'held' : 'NOT HELD';
}

/** Returns the table of one experiment in one arrangement. */
export function tableLines(rows: readonly Row[]): string[] {
  const [first] = rows;
  if (first === undefined) return [];
  const { experiment, load, server, arrangement, unit } = first;
  const tls = first.samples[0]?.tls;
  const columns = ['requests', 'requests/s', `CPU µs/${unit}`, 'peak MB', 'server', 'generator'];
  // On a shared core the shares are meaningless.
  const shown = arrangement === 'one core' ? columns.slice(0, -2) : columns;
  const line = (name: string, cells: readonly string[]): string =>
    name.padEnd(22) +
    shown
      .map((column, i) => (cells[i] as string).padStart(Math.max(column.length, 9) + 3))
      .join('');
  return [
    `${experiment} · ${arrangement} · ${load} · ${server}${tls === undefined ? '' : ` · ${tls}`}`,
    line('', shown),
    ...rows.flatMap((row) => {
      const of = (figure: (sample: Measured) => number): number => median(row.samples.map(figure));
      const percent = (share: number): string => `${Math.round(100 * share)} %`;
      return [
        line(`  ${row.generator}`, [
          whole(of(({ requests }) => requests)),
          whole(of(({ rps }) => rps)),
          of((sample) => cpuMicrosPer(unit, sample)).toFixed(2),
          (of(({ peakRssBytes }) => peakRssBytes) / 1e6).toFixed(1),
          percent(of(({ serverShare }) => serverShare)),
          percent(of(({ generatorShare }) => generatorShare)),
        ]),
        ...againstLines(row),
      ];
    }),
  ];
}

function againstLines({ against, unit }: Row): string[] {
  if (against === null) return [];
  const { peer, cpu, rps, memory, limits = {}, verdict } = against;
  const wanted = [
    ...(limits.cpu === undefined ? [] : [`CPU × ${limits.cpu} at most`]),
    ...(limits.rps === undefined ? [] : [`requests/s × ${limits.rps} at least`]),
    ...(limits.memory === undefined ? [] : [`memory × ${limits.memory} at most`]),
    ...(limits.memoryBytes === undefined ? [] : [`memory ${limits.memoryBytes / 1e6} MB at most`]),
  ];
  return [
    `    CPU per ${unit} × ${describe(cpu)} of ${peer}; requests/s × ${describe(rps)}${limits.memory === undefined ? '' : `; memory × ${describe(memory)}`}`,
    ...(verdict === undefined ? [] : [`    limit: ${wanted.join(', ')}: ${verdict}`]),
  ];
}

function describe({ ratio, interval, min, max }: Ratio): string {
  const f = (value: number): string => value.toFixed(3);
  return `${f(ratio)} [${interval.map(f).join(', ')}] (rounds ${f(min)} to ${f(max)})`;
}
