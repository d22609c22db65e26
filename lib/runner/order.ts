// The order within each round, of groups or of whatever is measured in turn: what a machine does over time (heat, neighbours)
// must not favour one.

/**
 * Two alternate (AB, BA, …); more get a random permutation per round, the same one for the same seed.
 * @param round from 1
 */
export function orderOfRound<T>(all: readonly T[], round: number, seed: string): T[] {
  if (all.length <= 2) return round % 2 === 1 ? [...all] : all.toReversed();
  const order = [...all];
  const random = randomNumbers(`${seed} ${round}`);
  // Fisher–Yates.
  for (let last = order.length - 1; last > 0; last--) {
    const pick = Math.floor(random() * (last + 1));
    [order[last], order[pick]] = [order[pick] as T, order[last] as T];
  }
  return order;
}

/** Uniform numbers in [0, 1): FNV-1a of the seed (http://www.isthe.com/chongo/tech/comp/fnv/), then xorshift32 (Marsaglia 2003). */
export function randomNumbers(seed: string): () => number {
  let state = 0x811c9dc5;
  for (let index = 0; index < seed.length; index++)
    state = Math.imul(state ^ seed.charCodeAt(index), 0x01000193);
  if (state === 0) state = 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
