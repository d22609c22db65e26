// The form of a scenario as far as everything else takes it for granted. TypeScript says the same, but nobody runs it on a
// person's own file.

const kinds = {
  'a text': (value: unknown) => typeof value === 'string',
  'a number': (value: unknown) => typeof value === 'number',
  'an object': isObject,
  'a list': (value: unknown) => Array.isArray(value),
  'a list of texts': (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
  'a text or an object': (value: unknown) => typeof value === 'string' || isObject(value),
} satisfies Record<string, (value: unknown) => boolean>;
type Fields = Readonly<Record<string, keyof typeof kinds>>;

/** The first field that is missing or of another type, in words: "page: path is missing"; undefined when there is none. */
export function problemOfShape(scenario: object): string | undefined {
  const { page, load, variants } = scenario as Record<string, unknown>;
  return problemOfFields(scenario, { name: 'a text', title: 'a text', knob: 'a text', load: 'an object', page: 'an object', variants: 'a list' })
    ?? inside('page', problemOfFields(page, { docroot: 'a text', path: 'a text', bodyBytes: 'a number' }))
    ?? inside('load', problemOfFields(load, loadFields))
    ?? (variants as unknown[]).map(problemOfVariant).find((problem) => problem !== undefined);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const loadFields: Fields = { command: 'a text', protocol: 'a text', connections: 'a number', threads: 'a number' };

function problemOfVariant(variant: unknown, index: number): string | undefined {
  const problem = problemOfFields(variant, { name: 'a text' });
  if (problem !== undefined) return `variant ${index + 1}: ${problem}`;
  const { name, server, load } = variant as { name: string; server?: unknown; load?: unknown };
  return inside(
    `variant "${name}"`,
    problemOfFields(variant, { server: 'a text or an object', ...(load === undefined ? {} : { load: 'an object' }) })
      ?? (load === undefined ? undefined : inside('load', problemOfFields(load, loadFields)))
      ?? (typeof server === 'string' ? undefined : inside('server', problemOfFields(server, { name: 'a text', config: 'a list of texts' }))),
  );
}

function problemOfFields(value: unknown, fields: Fields): string | undefined {
  if (!isObject(value)) return 'has to be an object';
  for (const [field, kind] of Object.entries(fields)) {
    if (value[field] === undefined) return `${field} is missing`;
    if (!kinds[kind](value[field])) return `${field} has to be ${kind}`;
  }
  return undefined;
}

function inside(where: string, problem: string | undefined): string | undefined {
  return problem === undefined ? undefined : `${where}: ${problem}`;
}
