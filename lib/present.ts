/** The properties that have a value: exactOptionalPropertyTypes tells absent from undefined. */
export function present<T extends object>(
  properties: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(properties).filter(([, value]) => value !== undefined),
  ) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** An object with a property for each of the names. */
export function byName<N extends string, T>(names: readonly N[], of: (name: N) => T): Record<N, T> {
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<N, T>;
}
