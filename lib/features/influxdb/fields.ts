// How a measurement of bakeoff's points is described: tags, and fields with units.

export interface StoredMeasurement {
  measurement: string;
  tags: readonly string[];
  fields: Readonly<Record<string, { unit: string }>>;
}

/** A measurement that bakeoff writes. `of` takes a field's value from the row of a point. */
export interface Written<Row> extends StoredMeasurement {
  fields: Readonly<Record<string, Field<Row>>>;
}

type Of<Row, Value> = (row: Row) => Value | null | undefined;

export interface Field<Row> {
  unit: Unit;
  of: Of<Row, number | string>;
}

export type Unit =
  | 'requests'
  | 'responses'
  | 'errors'
  | 'rounds'
  | 'connections'
  | 'packets'
  | 'requests/s'
  | 'errors/million'
  | 'bytes'
  | 'bytes/s'
  | 's'
  | 'ms'
  | 'µs'
  | 'ms since 1970'
  | 'MHz'
  | 'cores'
  | 'ratio'
  | 'number'
  | 'text';

type ByUnit<Row> = {
  [U in Unit]?: Record<string, Of<Row, U extends 'text' ? string : number>>;
};
type NamesIn<F> = { [U in keyof F]: keyof F[U] }[keyof F] & string;

/** Returns a function that makes fields by unit and name, each from the row of a point. */
export function fieldsOf<Row>() {
  return <F extends ByUnit<Row>>(byUnit: F) =>
    Object.fromEntries(
      Object.entries(byUnit).flatMap(([unit, fields]) =>
        Object.entries(fields).map(([name, of]) => [name, { unit, of }]),
      ),
    ) as Record<NamesIn<F>, Field<Row>>;
}

/** Returns a function that makes a measurement. `shared` are fields of several measurements. */
export function written<Row>() {
  return <
    const Tags extends readonly string[],
    F extends ByUnit<Row>,
    Shared extends Record<string, Field<Row>> = Record<never, never>,
  >({
    fields,
    shared,
    ...named
  }: {
    measurement: string;
    tags: Tags;
    fields: F;
    shared?: Shared;
  }) => ({
    ...named,
    fields: { ...fieldsOf<Row>()(fields), ...shared } as Record<
      NamesIn<F> | keyof Shared,
      Field<Row>
    >,
  });
}
