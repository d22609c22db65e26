// Where requests/s and CPU per request do not say the same: the server used more or less of its cores.
import { percent } from '../format.ts';
import { meanInterval } from './statistics.ts';

/** Below this it is worth no word: at its limit a server is from 90 % of its cores on, so it may be the limit at 95 % and at 100 %. */
const worthAWord = Math.log(1.05);

/**
 * A clause that says with which variant the server used less of its cores; '' where requests/s and CPU per request agree.
 * @param names of baseline and variant
 * @param logs ln(variant / baseline) of requests/s and of CPU per request, per round: their sum is that of the server's CPU use
 */
export function disagreementOf(names: readonly [string, string], logs: { rps: readonly number[]; cpu: readonly number[] }, alpha: number): string {
  const { middle, half } = meanInterval(logs.cpu.map((log, round) => log + (logs.rps[round] as number)), alpha);
  if (Math.abs(middle) <= Math.max(half, worthAWord)) return '';
  const [less, more] = middle < 0 ? names.toReversed() : names;
  return `with ${less} the server's cores were ${percent(1 - Math.exp(-Math.abs(middle)))} less busy than with ${more}`;
}
