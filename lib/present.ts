// Small helpers for objects and lists.
/** Drops undefined properties, as exactOptionalPropertyTypes requires. */
export function present<T extends object>(
  properties: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(properties).filter(([, value]) => value !== undefined),
  ) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

export function byName<N extends string, T>(names: readonly N[], of: (name: N) => T): Record<N, T> {
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<N, T>;
}

/** The keys of an object that has no others than its type says. */
export function keysOf<K extends string>(object: Readonly<Partial<Record<K, unknown>>>): K[] {
  return Object.keys(object) as K[];
}

/** Pairs the values at the same places of two lists of one length. No value may be undefined. */
export function zip<A, B>(first: readonly A[], second: readonly B[]): [A, B][] {
  const pairs: [A, B][] = [];
  for (const [place, value] of first.entries()) {
    const other = second[place];
    if (other !== undefined) pairs.push([value, other]);
  }
  return pairs;
}

export function allNames<N>(all: readonly { name: N }[]): N[] {
  return all.map(({ name }) => name);
}

/** The first value that stands there twice. */
export function repeated<T>(values: readonly T[]): T | undefined {
  return values.find((value, index) => values.indexOf(value) < index);
}

/** The values of `some` that `others` lacks, as often. @param keyOf equal for equal values */
export function without<T>(
  some: readonly T[],
  others: readonly T[],
  keyOf = (value: T): unknown => value,
): T[] {
  const counts = new Map<unknown, number>();
  for (const key of others.map(keyOf)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return some.filter((value) => {
    const left = counts.get(keyOf(value)) ?? 0;
    counts.set(keyOf(value), left - 1);
    return left < 1;
  });
}

/** Returns the first value that is there, in the order of the list; undefined if there is none. */
export function firstOf<Of, Value>(
  all: readonly Of[],
  valueOf: (candidate: Of) => Value | undefined,
): Value | undefined {
  for (const candidate of all) {
    const value = valueOf(candidate);
    if (value !== undefined) return value;
  }
  return undefined;
}
