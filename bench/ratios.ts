// Ratios of a generator to its peer, round by round, and the table of them.
import { median, ratioInterval, type RatioInterval } from '../lib/analysis/statistics.ts';
import { whole } from '../lib/report/format.ts';
import type { Sample } from './contenders.ts';

/** A generator's figures, and how much of its core the server used meanwhile, 0 to 1. */
export interface Measured extends Sample { serverShare: number }

/** The most CPU per request, and the fewest requests/s, as multiples of the peer's. */
export interface Limits { cpu: number; rps?: number }

/** `ratio` is the geometric mean over rounds with its 95 % interval; min and max are the extreme rounds. */
export interface Ratio extends RatioInterval { min: number; max: number }

export interface Row {
  load: string;
  arrangement: string;
  generator: string;
  samples: Measured[];
  /** null: this is the peer. */
  against: { peer: string; cpu: Ratio; rps: Ratio; limits?: Limits } | null;
}

/** Samples of one generator on two servers, round by round. */
export interface Effect { generator: string; without: Sample[]; with: Sample[] }

/** Compares samples of the same rounds. */
export function compareRounds(measured: readonly Sample[], peer: readonly Sample[]): { cpu: Ratio; rps: Ratio } {
  const compare = (of: (sample: Sample) => number): Ratio => {
    const [a, b] = [measured.map(of), peer.map(of)];
    const ratios = a.map((value, round) => value / (b[round] as number));
    return { ...ratioInterval(b, a), min: Math.min(...ratios), max: Math.max(...ratios) };
  };
  return { cpu: compare((sample) => sample.cpuMicrosPerRequest), rps: compare((sample) => sample.rps) };
}

/** Both sides on one core: neither has it for itself, so a share of it says nothing. */
export const sharedCore = 'one core';

/** Whether the ratio over all rounds is within the limits. */
export function held({ cpu, rps }: { cpu: Ratio; rps: Ratio }, limits: Limits): boolean {
  return cpu.ratio <= limits.cpu && (limits.rps === undefined || rps.ratio >= limits.rps);
}

/** The table as text. */
export function tableLines(rows: readonly Row[]): string[] {
  const lines: string[] = [];
  let last = '';
  for (const row of rows) {
    const title = `${row.load} · ${row.arrangement}`;
    if (title !== last) lines.push(...(last === '' ? [] : ['']), title.padEnd(52) + 'requests/s   CPU µs/request' + (row.arrangement === sharedCore ? '' : '   server'));
    last = title;
    const of = (figure: (sample: Measured) => number): number => median(row.samples.map(figure));
    const server = row.arrangement === sharedCore ? '' : `${Math.round(100 * of((sample) => sample.serverShare))} %`;
    lines.push(`  ${row.generator.padEnd(50)}${whole(of(({ rps }) => rps)).padStart(10)}${of((sample) => sample.cpuMicrosPerRequest).toFixed(2).padStart(17)}${server.padStart(9)}`);
    if (row.against === null) continue;
    const { peer, cpu, rps, limits } = row.against;
    lines.push(`    CPU per request × ${describe(cpu)} of ${peer}; requests/s × ${describe(rps)}`);
    if (limits === undefined) continue;
    const wanted = [`CPU × ${limits.cpu} at most`, ...(limits.rps === undefined ? [] : [`requests/s × ${limits.rps} at least`])].join(', ');
    lines.push(`    limit: ${wanted}: ${held(row.against, limits) ? 'held' : 'NOT HELD'}`);
  }
  return lines;
}

/** One line per generator: how many times faster the server is with the change. */
export function effectLines(effects: readonly Effect[]): string[] {
  return effects.map((effect) => {
    const rates = [effect.without, effect.with].map((samples) => whole(median(samples.map(({ rps }) => rps))));
    return `  ${effect.generator.padEnd(20)} ${rates.join(' → ')} requests/s: × ${describe(compareRounds(effect.with, effect.without).rps)}`;
  });
}

function describe({ ratio, interval, min, max }: Ratio): string {
  const f = (value: number): string => value.toFixed(3);
  return `${f(ratio)} [${interval.map(f).join(', ')}] (rounds ${f(min)} to ${f(max)})`;
}
