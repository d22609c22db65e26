// Whether an open model's load came to the rate that was asked for, and what kept it from that.
import { whole } from '../format.ts';
import type { LoadResult, Phase, VariantResult } from '../result/result.ts';
import { atLimit, limitOf, usedCores } from './limit.ts';
import { extent, median, total } from './statistics.ts';

/** From this part of the latency on, how late requests left is worth a warning. */
const lateMatters = 0.25;

/** What may be missing of a rate, and still every figure is within 1 %. */
const tolerableShortfall = 0.01;

export interface Rate {
  /** requests/s. */
  asked: number;
  /** requests/s that were answered: the variant's own figure, responses per second of each round, the median over the rounds. */
  made: number;
  /** Of all rounds: those that were due and never left; of those that were due. */
  unsent: number;
  due: number;
  /** How late the last ones left, in milliseconds; median over the phases. */
  lateMs: number;
  reached: boolean;
}

/** The rate of a variant; null without one, and when it was not run here. `reached` as isBehind tells. */
export function rateOf({ load: { rate: asked }, rps, rounds }: Pick<VariantResult, 'load' | 'rps' | 'rounds'>): Rate | null {
  const phases = rounds.flatMap((round) => round.phases);
  if (asked === undefined || rps === null || phases.length === 0) return null;
  const lateMs = median(phases.map(({ sendDelayMs }) => sendDelayMs.max));
  return { asked, made: rps.median, ...dueOf(phases), lateMs, reached: !isBehind(phases, asked, rps.median) };
}

/** Requests that were due, and of them those that never left. */
function dueOf(phases: readonly LoadResult[]): { unsent: number; due: number } {
  const unsent = total(phases, (phase) => phase.unsent);
  return { unsent, due: unsent + total(phases, (phase) => phase.requests + phase.inFlight) };
}

/**
 * Whether requests/s are more than 1 % fewer than asked for because requests did not leave: 1 % of those that were due, or one in
 * a hundred left later than 1 % of the load's time. Fewer answers alone are no such sign: those to the last requests come after
 * the load's time, and those that failed are none.
 * @param phases at least one
 */
export function isBehind(phases: readonly LoadResult[], asked: number, made: number): boolean {
  const { unsent, due } = dueOf(phases);
  const late = median(phases.map(({ sendDelayMs, seconds }) => sendDelayMs.p99 / (1000 * seconds)));
  return (unsent > tolerableShortfall * due || late > tolerableShortfall) && made < (1 - tolerableShortfall) * asked;
}

/** What kept a load from its rate, in a clause: who was at its limit, or what else is seen. */
export function rateCause(variant: Pick<VariantResult, 'load' | 'rounds' | 'serverShare' | 'generatorShare'>): string {
  const server = `the server was at its limit (${usedCores(variant.serverShare)})`;
  const generator = `the generator was at its limit (${usedCores(variant.generatorShare)})`;
  switch (limitOf(variant)) {
    case 'both': return `both sides were at their limit: ${server}, ${generator}`;
    case 'server': return server;
    case 'generator': return generator;
    default: return waitingText(variant);
  }
}

/**
 * p99 of how late requests left, and p99 of the latency that includes it, where a load came to its rate and the first is a quarter of
 * the second, or as wide as the narrowest bucket; null elsewhere.
 */
export function lateSends(variant: VariantResult): { p99Ms: number; latencyMs: number } | null {
  if (rateOf(variant)?.reached !== true) return null;
  const late = variant.phases.find(({ sendDelayMs, latencyMs, buckets }) => {
    const [narrowest] = extent(buckets.map(({ fromMs, toMs }) => (toMs ?? Infinity) - fromMs));
    return sendDelayMs.p99 > 0 && sendDelayMs.p99 >= Math.min(lateMatters * latencyMs.p99, narrowest);
  });
  return late === undefined ? null : { p99Ms: late.sendDelayMs.p99, latencyMs: late.latencyMs.p99 };
}

/** Why requests of a load that came to its rate left late, in a clause. A server that stands still for that long may take all places of the load. */
export function lateCause(variant: Pick<VariantResult, 'load' | 'rounds' | 'serverShare' | 'generatorShare'>, lateMs: number): string {
  const limit = limitOf(variant);
  if (limit !== null && limit !== 'neither') return rateCause(variant);
  const generator = 'the generator was kept from its core';
  const places = placesOf(variant.load);
  return (variant.load.rate ?? 0) * lateMs / 1000 >= places
    ? `the server kept all of the ${whole(places)} requests waiting that the load has under way at once, or ${generator}`
    : `${generator}: run again on a quieter machine`;
}

/** How many requests a load has under way at once, at most; NaN where that is not known. */
function placesOf({ connections, streams = 1 }: VariantResult['load']): number {
  return (typeof connections === 'number' ? connections : NaN) * streams;
}

/** Neither side had used up its cores: whether the load's places were all taken by requests that the server had not answered. */
function waitingText({ load, rounds }: Pick<VariantResult, 'load' | 'rounds'>): string {
  const places = placesOf(load);
  const underWay = Math.min(places, median(rounds.flatMap(({ phases }) => phases.map(meanUnderWay))));
  const idle = 'neither side had used up its cores';
  if (!Number.isFinite(underWay)) return idle;
  return atLimit(underWay / places)
    ? `${idle}, and all of the ${whole(places)} requests that the load has under way at once waited for the server's answers`
    : `${idle}, and on average ${whole(underWay)} of at most ${whole(places)} requests at once waited for the server: the generator was kept from its core, or from ports`;
}

/** Little's law: requests that have left and are not answered yet are their number per second by the seconds that each waits. */
function meanUnderWay({ requests, seconds, latencyMs, sendDelayMs }: Phase): number {
  return (requests / seconds) * (Math.max(0, latencyMs.mean - sendDelayMs.mean) / 1000);
}
