/** Drops properties that are undefined, as exactOptionalPropertyTypes requires. */
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

/** The first value that stands there twice. */
export function repeated<T>(values: readonly T[]): T | undefined {
  return values.find((value, index) => values.indexOf(value) < index);
}
