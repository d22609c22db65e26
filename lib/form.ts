// Checks values from outside with valibot, and describes the first problem in one line.
import * as v from 'valibot';
import { enumeration } from './format.ts';
import { inOneLine, offer } from './errors.ts';
import { byName } from './present.ts';

export type Form<T> = v.GenericSchema<unknown, T>;

/** Makes the schema of an object from the schemas of its fields. */
export type ObjectForm = <E extends v.ObjectEntries>(
  fields: E,
) => Form<v.InferOutput<v.ObjectSchema<E, undefined>>>;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const anObject = v.custom<Record<string, unknown>>(isObject, 'has to be an object');

/** An object that a person writes. An unknown field is refused, and the nearest known one is suggested. */
export const closed: ObjectForm = (fields) => {
  const names = Object.keys(fields);
  const wrongKey = ({ expected, path }: v.StrictObjectIssue) => {
    if (expected !== 'never') return missing;
    const key = String(path?.at(-1)?.key);
    return `there is no field ${quoted(key)}: ${offer(key, names)}`;
  };
  // Names of a prototype would be taken for fields.
  return v.pipe(
    anObject,
    v.strictObject(Object.assign(Object.create(null), fields) as typeof fields, wrongKey),
  ) as unknown as ReturnType<typeof closed<typeof fields>>;
};

/** An object that a program wrote, maybe a newer version. Unknown fields are dropped. */
export const open: ObjectForm = (fields) =>
  v.pipe(anObject, v.object(fields, missing)) as unknown as ReturnType<typeof open<typeof fields>>;

const missing = 'is missing';

export const text = v.string('has to be a text');
export const flag = v.boolean('has to be true or false');
export const trueOrAbsent = v.literal(true, 'has to be true, or left out');
/** The name of a scenario or variant: a part of paths, tags and addresses. */
export const name = v.pipe(
  text,
  v.regex(/^[a-z0-9-]{1,200}$/, 'may have a-z, 0-9 and - only, at most 200 of them'),
);
/** A name that a person gives. */
export const givenName = v.pipe(
  name,
  v.regex(/\D/, 'has to have a letter or a - in it: dashboards take digits alone for a figure'),
);

/** A number for which `holds` is true; `requirement` follows "has to be". */
function number(holds: (value: number) => boolean, requirement: string): Form<number> {
  // valibot takes NaN for no number.
  return v.pipe(
    v.number(({ input }) => `has to be ${Number.isNaN(input) ? requirement : 'a number'}`),
    v.check(holds, `has to be ${requirement}`),
  );
}

export const integer = (least: number, most: number): Form<number> =>
  number(
    (value) => Number.isSafeInteger(value) && value >= least && value <= most,
    `a whole number from ${least} to ${most}`,
  );
export const within = (least: number, most: number): Form<number> =>
  number((value) => value >= least && value <= most, `from ${least} to ${most}`);
/** Above 0. */
export const upTo = (most: number): Form<number> =>
  number((value) => value > 0 && value <= most, `above 0, and at most ${most}`);

/** Above all measured counts, times and rates. */
const most = Number.MAX_SAFE_INTEGER;
export const count = integer(0, most);
export const nonNegative = within(0, most);
export const ratio = upTo(most);
export const signed = within(-most, most);

export const instant = v.pipe(
  text,
  v.check(
    (value) => !Number.isNaN(Date.parse(value)),
    'has to be an instant such as 2026-11-20T08:15:30.000Z',
  ),
);

/** Two of a form, such as the ends of an interval. */
export const pairOf = (form: Form<number>): Form<[number, number]> =>
  v.strictTuple([form, form], 'has to be a list of two numbers');

export const list = <T>(entry: Form<T>, of = ''): Form<T[]> =>
  v.array(entry, `has to be a list${of}`);
export const texts = list(text, ' of texts');
/** A field that older results lack. */
export const orElse = <T, const D extends T | (() => T)>(
  form: Form<T>,
  value: D,
): v.OptionalSchema<Form<T>, D> => v.optional(form, value as never) as never;
export const orAbsent = <T>(form: Form<T>): v.OptionalSchema<Form<T>, undefined> =>
  v.optional(form);
/** A field that is left out where it is unknown. */
export const optional = <T>(form: Form<T>): v.ExactOptionalSchema<Form<T>, undefined> =>
  v.exactOptional(form);
export const orNull = <T>(form: Form<T>): Form<T | null> => v.nullable(form) as Form<T | null>;
export const oneOf = <const T extends readonly string[]>(choices: T): Form<T[number]> =>
  v.picklist(choices, `has to be ${enumeration(choices, 'or')}`);
/** The same schema for each name. */
export const each = <const N extends string, S extends v.GenericSchema>(
  names: readonly N[],
  form: S,
): Record<N, S> => byName(names, () => form);

/**
 * Returns the value, or its problem with the path.
 * @param everything names an unknown field first, since a misspelt field is also missing
 */
export function check<T>(
  form: Form<T>,
  value: unknown,
  { everything = false } = {},
): { value: T } | { problem: string } {
  const result = v.safeParse(form, value, { abortEarly: !everything });
  if (result.success) return { value: result.output };
  const issue = result.issues.find(isUnknownField) ?? result.issues[0];
  return { problem: problemOf(issue) };
}

const isUnknownField = ({ expected }: v.BaseIssue<unknown>): boolean => expected === 'never';

function problemOf(issue: v.BaseIssue<unknown>): string {
  const { input, message, path = [], kind, type } = issue;
  const keys = path.map(({ key }) => key as string | number);
  // Keys and values may come from elsewhere.
  if (isUnknownField(issue))
    return inOneLine([placeOf(keys.slice(0, -1)), message].filter(Boolean).join(': '));
  if (input === undefined && keys.length > 0) return inOneLine(`${placeOf(keys)} ${missing}`);
  const isOfWrongValue =
    kind === 'validation' || type === 'picklist' || type === 'literal' || Number.isNaN(input);
  const problem = isOfWrongValue ? `${shown(input)}${message}` : message;
  return inOneLine([placeOf(keys), problem].filter(Boolean).join(' '));
}

/** variants[0].load.connections */
function placeOf(keys: readonly (string | number)[]): string {
  const steps = keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`));
  return steps.join('').replace(/^\./, '');
}

function shown(value: unknown): string {
  if (typeof value === 'number') return `${value} `;
  return typeof value === 'string' ? `${quoted(value)} ` : '';
}

const longestShown = 60;

function quoted(value: unknown): string {
  const json = JSON.stringify(String(value));
  return json.length <= longestShown ? json : `${json.slice(0, longestShown)}…"`;
}

/** T with read-only lists, and with optional fields that are absent rather than undefined. */
type Given<T> = T extends readonly (infer E)[]
  ? readonly Given<E>[]
  : T extends object
    ? { [K in keyof T]: Given<Exclude<T[K], undefined>> }
    : T;
export type Of<F extends v.ObjectEntries> = Given<
  v.InferOutput<v.StrictObjectSchema<F, undefined>>
>;

export const given = <F extends v.ObjectEntries>(
  fields: F,
  object: ObjectForm = closed,
): Form<Of<F>> => object(fields) as unknown as Form<Of<F>>;

/** Returns the first wrong field of a value, such as `variants[0].load.connections 0.5 has to be …`; undefined if all are right. */
export function problemIn(form: Form<unknown>, value: unknown): string | undefined {
  return problemsIn(form, value)[0];
}

/**
 * Returns all wrong fields. If a field is unknown, fields that are missing beside it are left out, since it may be one of them, misspelt.
 */
export function problemsIn(form: Form<unknown>, value: unknown): string[] {
  const { issues = [] } = v.safeParse(form, value);
  const parentOf = ({ path }: v.BaseIssue<unknown>) =>
    placeOf((path ?? []).slice(0, -1).map(({ key }) => key as string | number));
  const unclear = new Set(issues.filter(isUnknownField).map(parentOf));
  const told = issues.filter(
    (issue) => isUnknownField(issue) || issue.input !== undefined || !unclear.has(parentOf(issue)),
  );
  const unknown = told.filter(isUnknownField);
  const rest = told.filter((issue) => !isUnknownField(issue));
  return [...new Set([...unknown, ...rest].map(problemOf))];
}
