// What the bytes of the sides would cost on usual links: loopback, where they are free, hides it.
import { measuredComparisons, sidesOf } from '../analysis/comparisons.ts';
import { sideWithWrongAnswers } from '../analysis/bodies.ts';
import { groupedBy } from '../analysis/statistics.ts';
import { enumeration, perSecond, whole } from '../format.ts';
import type { Result } from '../result/result.ts';
import { allNames } from '../present.ts';

/** A usual link, in bytes per second. */
const gigabit = 125e6;
/** From here on a side's bytes are more than headers of another length. */
const moreBytes = 1.1;

interface Heavier {
  name: string;
  /** Bytes per response, headers included, as a multiple of the other side's. */
  times: number;
  /** The requests/s that a link of 1 Gbit/s allows. */
  rps: number;
}

/**
 * Returns the sides that send more bytes than what they are compared with, if that is free on loopback and would not be on a link of 1
 * Gbit/s.
 */
function heavierSides(result: Result): Heavier[] {
  if (!isOnLoopback(result)) return [];
  const heavier = measuredComparisons(result).flatMap((comparison): Heavier[] => {
    const compared = sidesOf(comparison, result);
    // Messages of errors are no pages.
    if (sideWithWrongAnswers(compared) !== undefined) return [];
    const sides = compared.flatMap(({ name, rps, traffic }) => {
      if (rps === null || traffic === null || rps.median === 0) return [];
      return { name, measured: rps.median, bytes: traffic.receivedBytesPerSecond / rps.median };
    });
    const [least, most] = sides.sort((a, b) => a.bytes - b.bytes);
    if (least === undefined || most === undefined) return [];
    const times = most.bytes / least.bytes;
    const rps = gigabit / most.bytes;
    return times > moreBytes && rps < most.measured ? [{ name: most.name, times, rps }] : [];
  });
  return [...groupedBy(heavier, ({ name }) => name).values()].map(([first]) => first);
}

/** Returns whether the bytes between servers and generator cost next to nothing. */
function isOnLoopback({ environment, variants }: Result): boolean {
  const { serverHost, generatorHosts, cluster } = environment;
  return (
    (serverHost ?? generatorHosts ?? cluster) === undefined &&
    variants.every(({ network, server }) => network === null && server?.atAddress !== true)
  );
}

/** Says which sides send more bytes than loopback shows, and what a usual link would allow. */
export function bytesLines(result: Result): string[] {
  const heavier = heavierSides(result);
  if (heavier.length === 0) return [];
  const sends = heavier.map(
    ({ name, times }) => `${name} sends ${Number(times.toPrecision(2))} times the bytes`,
  );
  const allowed = enumeration(heavier.map(({ rps }) => whole(rps)));
  return [`${enumeration(sends)}: free on loopback; on 1 Gbit/s at most ${allowed} requests/s.`];
}

/** Says what usual links would allow the sides of which nothing was said yet. */
export function linkLines(result: Result): string[] {
  const reported = new Set(heavierSides(result).map(({ name }) => name));
  const variants = result.variants.filter(({ name }) => !reported.has(name));
  return [10, 1].flatMap((link, index, links) => {
    const beyond: { name: string; allowed: string }[] = [];
    for (const { name, rps, traffic } of variants) {
      const gbit = ((traffic?.receivedBytesPerSecond ?? 0) * 8) / 1e9;
      const isBeyond = gbit > link && gbit <= (links[index - 1] ?? Infinity);
      if (rps !== null && isBeyond)
        beyond.push({ name, allowed: perSecond((rps.median * link) / gbit) });
    }
    if (beyond.length === 0) return [];
    const texts: string[] = [];
    for (const [allowed, same] of groupedBy(beyond, (variant) => variant.allowed))
      texts.push(`${allowed} requests/s of ${enumeration(allNames(same))}`);
    return `A link of ${link} Gbit/s would allow at most ${enumeration(texts)}.`;
  });
}
