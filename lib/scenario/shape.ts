// The form of a scenario as far as everything else takes it for granted. TypeScript says the same, but nobody runs it on a
// person's own file.

const kinds = {
  'a text': (value: unknown) => typeof value === 'string',
  'a number': (value: unknown) => typeof value === 'number',
  'an object': isObject,
  'a list': (value: unknown) => Array.isArray(value),
  'a list of texts': (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
  'a text or an object': (value: unknown) => typeof value === 'string' || isObject(value),
  'an object of texts': (value: unknown) => isObject(value) && Object.values(value).every((one) => typeof one === 'string'),
  'true, or left out': (value: unknown) => value === true,
} satisfies Record<string, (value: unknown) => boolean>;
type Fields = Readonly<Record<string, keyof typeof kinds>>;

/** The first field that is missing or of another type, in words: "page: path is missing"; undefined when there is none. */
export function problemOfShape(scenario: object): string | undefined {
  const { page, load, network, variants, alsoCompare } = scenario as Record<string, unknown>;
  const known: Fields = { name: 'a text', title: 'a text', knob: 'a text', load: 'an object', page: 'an object', variants: 'a list' };
  const optional: Fields = { alsoCompare: 'a list', control: 'true, or left out', sharedCores: 'true, or left out', footnotes: 'a list of texts' };
  return problemOfFields(scenario, known, optional)
    ?? problemOfPage(page)
    ?? problemOfLoad(load)
    ?? (network === undefined ? undefined : problemOfNetwork(network))
    ?? (variants as unknown[]).map(problemOfVariant).find((problem) => problem !== undefined)
    ?? ((alsoCompare ?? []) as unknown[]).map(problemOfComparison).find((problem) => problem !== undefined);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function problemOfPage(page: unknown): string | undefined {
  return inside('page', problemOfFields(page, { path: 'a text', bodyBytes: 'a number' }, { docroot: 'a text', host: 'a text' }));
}

function problemOfLoad(load: unknown): string | undefined {
  return inside('load', problemOfFields(
    load,
    { command: 'a text', protocol: 'a text', connections: 'a number', threads: 'a number' },
    { method: 'a text', headers: 'an object of texts', body: 'a text' },
  ));
}

function problemOfNetwork(network: unknown): string | undefined {
  const fields: Fields = { toServer: 'an object', toClient: 'an object', serverSettings: 'a list of texts', clientSettings: 'a list of texts' };
  const numbers: Fields = { queuePackets: 'a number', bytesPerSecond: 'a number', lossShare: 'a number' };
  return inside('network', problemOfFields(network, fields) ?? ['toServer', 'toClient'].map((way) => (
    inside(way, problemOfFields((network as Record<string, unknown>)[way], { delayMs: 'a number' }, numbers)))).find((problem) => problem !== undefined));
}

function problemOfVariant(variant: unknown, index: number): string | undefined {
  const problem = problemOfFields(variant, { name: 'a text' });
  if (problem !== undefined) return `variant ${index + 1}: ${problem}`;
  const { name, server, load, page, network } = variant as { name: string; server?: unknown; load?: unknown; page?: unknown; network?: unknown };
  return inside(
    `variant "${name}"`,
    problemOfFields(variant, { server: 'a text or an object' })
      ?? (load === undefined ? undefined : problemOfLoad(load))
      ?? (page === undefined ? undefined : problemOfPage(page))
      ?? (network === undefined ? undefined : problemOfNetwork(network))
      ?? (typeof server === 'string' ? undefined : inside('server', problemOfFields(server, { name: 'a text', config: 'a list of texts' }, { asIs: 'an object' }))),
  );
}

function problemOfComparison(comparison: unknown, index: number): string | undefined {
  return inside(`alsoCompare ${index + 1}`, problemOfFields(comparison, { variant: 'a text', against: 'a text' }));
}

function problemOfFields(value: unknown, fields: Fields, optional: Fields = {}): string | undefined {
  if (!isObject(value)) return 'has to be an object';
  const missing = Object.keys(fields).find((field) => value[field] === undefined);
  if (missing !== undefined) return `${missing} is missing`;
  const [field, kind] = Object.entries({ ...fields, ...optional }).find(([field, kind]) => value[field] !== undefined && !kinds[kind](value[field])) ?? [];
  return field === undefined ? undefined : `${field} has to be ${kind}`;
}

function inside(where: string, problem: string | undefined): string | undefined {
  return problem === undefined ? undefined : `${where}: ${problem}`;
}
