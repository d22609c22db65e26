// Whether a file holds a result, before anything reads on in it: the file may be anything.
import { UserError } from '../../errors.ts';
import type { Result } from '../../runner/result.ts';
import { isObject } from '../../scenario/shape.ts';

const schema = 1;

const kinds = {
  text: (value: unknown) => typeof value === 'string',
  number: (value: unknown) => typeof value === 'number',
  boolean: (value: unknown) => typeof value === 'boolean',
  instant: (value: unknown) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
  interval: (value: unknown) => Array.isArray(value) && value.length === 2 && value.every((end) => typeof end === 'number'),
  verdict: (value: unknown) => ['faster', 'slower', 'same', 'inconclusive', 'none'].includes(value as string),
} satisfies Record<string, (value: unknown) => boolean>;

/** What has to be there, and of which kind. A list has one entry, the form of all of its entries. */
type Form = keyof typeof kinds | readonly [Form] | { readonly [field: string]: Form } | { readonly orNull: Form } | { readonly orAbsent: Form };

const orNull = (form: Form): Form => ({ orNull: form });
const orAbsent = (form: Form): Form => ({ orAbsent: form });
const fieldsOf = (names: string, form: Form): Record<string, Form> => Object.fromEntries(names.split(' ').map((name) => [name, form]));

const distribution: Form = fieldsOf('min mean sd withinSd max', 'number');
const latency: Form = { ...distribution, ...fieldsOf('p50 p75 p90 p95 p99 p999', 'number') };
const counts = {
  responses: fieldsOf('2xx 3xx 4xx 5xx', 'number'),
  errors: fieldsOf('connect tls read write timeout protocol total', 'number'),
  errorCauses: fieldsOf('addressNotAvailable refused reset timedOut short other', 'number'),
} satisfies Record<string, Form>;
const bytes: Form = fieldsOf('received headers headersDecoded body sent', 'number');
const tls: Form = orNull(fieldsOf('version cipher keyExchange', 'text'));
const distributions = {
  latencyMs: latency, connectMs: latency, firstByteMs: latency, sendDelayMs: latency, perConnectionRps: distribution, perThreadRps: distribution,
} satisfies Record<string, Form>;
const bucket = { fromMs: 'number', toMs: orNull('number'), count: 'number' } satisfies Record<string, Form>;
const noise: Form = orNull({
  ...fieldsOf('serverStealShare generatorStealShare serverOthersShare loadAverage', 'number'), upstreamShare: orAbsent(orNull('number')), serverMhz: orNull('interval'),
});
const linkTraffic: Form = {
  ...fieldsOf('packets bytes delivered dropped lost', 'number'),
  kinds: fieldsOf('syn synAck ack data dataFin fin reset other', 'number'), latenessMs: fieldsOf('p50 p99 max', 'number'),
};
const networkUse: Form = orNull({
  toServer: linkTraffic, toClient: linkTraffic, retransmits: fieldsOf('client server', 'number'), listenOverflows: 'number', linkCpuSeconds: fieldsOf('toServer toClient', 'number'),
});
const linkDirection: Form = { delayMs: 'number', ...fieldsOf('queuePackets bytesPerSecond lossShare', orAbsent('number')) };
const networkResult: Form = orNull({
  spec: { toServer: linkDirection, toClient: linkDirection, serverSettings: ['text'], clientSettings: ['text'] },
  ...fieldsOf('packetsPerRequest droppedShare', fieldsOf('toServer toClient', 'number')), latenessMs: fieldsOf('p50 p99', 'number'),
  ...fieldsOf('retransmitsPerRequest listenOverflows serverIdleShare', 'number'), delayHeld: 'boolean',
});
const phase: Form = {
  ...fieldsOf('requests seconds rps inFlight unsent serverCpuSeconds generatorCpuSeconds', 'number'),
  ...counts, bytes, ...distributions, buckets: [bucket], tls, startedAt: 'instant', endedAt: 'instant', noise, network: networkUse,
};
const traffic = {
  ...fieldsOf('requests seconds receivedBytesPerSecond', 'number'), bytes, headerSavingsPercent: orNull('number'),
} satisfies Record<string, Form>;
const phaseResult: Form = {
  ...traffic, ...counts, ...distributions, ...fieldsOf('phase unsent typicalRound', 'number'), rps: { median: 'number' },
  successRatio: orNull('number'), buckets: [{ ...bucket, share: 'number' }], tls,
};
const variant: Form = {
  name: 'text',
  server: orNull({ name: 'text', version: 'text', workers: 'number', config: ['text'], redirections: ['text'] }),
  load: { protocol: 'text', threads: 'number', command: 'text' },
  published: orNull({ packetsPerRequest: orAbsent('number') }),
  rounds: [{ round: 'number', phases: [phase] }],
  rps: orNull({ median: 'number' }), serverCpuMicrosPerRequest: orNull({ median: 'number' }), latencyMs: orNull(fieldsOf('p50 p99 max', 'number')),
  ...fieldsOf('errorsPerMillion successRatio serverShare generatorShare ceilingShare', orNull('number')),
  network: networkResult,
  traffic: orNull(traffic),
  phases: [phaseResult],
};
const comparison: Form = {
  ...fieldsOf('variant baseline why disagreement', 'text'), verdict: 'verdict', ratio: 'number', ci95: 'interval', publishedRatio: orNull('number'),
  cpu: orNull({ ratio: 'number', ci95: 'interval' }), roundRatios: ['number'], outliers: ['number'], roundsNeeded: orNull('number'), delayNotHeld: ['text'],
};
const result: Form = {
  ...fieldsOf('run scenario title state', 'text'), startedAt: 'instant', endedAt: 'instant', quick: 'boolean',
  environment: {
    ...fieldsOf('bakeoff cpuModel kernel os', 'text'), ...fieldsOf('cores memoryBytes', 'number'), governor: orNull('text'), bootedAt: 'instant',
    loadAverage: ['number'], serverCpus: ['number'], generatorCpus: ['number'], cpuQuota: orAbsent('number'), coreNotes: orAbsent(['text']), versions: {},
  },
  variants: [variant],
  comparisons: [comparison],
  shares: [{ ...fieldsOf('variant of baseline words', 'text'), share: 'number', ci95: orNull('interval') }],
  looks: ['number'], sameWithin: 'number',
  noiseFloor: orNull({ rounds: 'number', ratio: 'number' }),
  ceilings: [{ variants: ['text'], rps: 'number', generatorShare: 'number' }],
  kernelSettings: [{ side: 'text', name: 'text', value: 'text', problem: orAbsent('text'), variants: ['text'] }],
  integrity: orNull(fieldsOf('requests stored backfilled lost', 'number')),
  warnings: ['text'], footnotes: ['text'],
};

/**
 * The file's text as a result.
 * @throws UserError naming `file`, for what is no JSON, no result, or one of a schema that this bakeoff does not read
 */
export function checkResult(text: string, file: string): Result {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UserError(`${file} is not whole JSON: name a run that ended, or run it again`);
  }
  if (!isObject(value) || typeof value['schema'] !== 'number' || !('variants' in value)) throw new UserError(`${file} is no result of bakeoff: name a run's folder or its result.json`);
  if (value['schema'] > schema) throw new UserError(`${file}: schema ${value['schema']} is of a newer bakeoff, this one reads ${schema}: make its report with that one`);
  const problem = value['schema'] === schema ? problemOf(value, result, '') : `schema ${value['schema']}`;
  if (problem !== undefined) throw new UserError(`${file} is of an earlier bakeoff, or was changed (${problem}): run ${String(value['scenario'])} again with this one`);
  return value as unknown as Result;
}

/** The first place that has not its form, in words. */
function problemOf(value: unknown, form: Form, place: string): string | undefined {
  const isOptional = typeof form === 'object' && 'orAbsent' in form;
  if (isOptional) return value === undefined ? undefined : problemOf(value, form['orAbsent'] as Form, place);
  if (value === undefined) return `${place} is missing`;
  if (typeof form === 'string') return kinds[form](value) ? undefined : `${place} is no ${form}`;
  if (isList(form)) {
    if (!Array.isArray(value)) return `${place} is no list`;
    return first(value, (entry, index) => problemOf(entry, form[0], `${place}[${index}]`));
  }
  if ('orNull' in form) return value === null ? undefined : problemOf(value, form['orNull'] as Form, place);
  if (!isObject(value)) return `${place} is no object`;
  return first(Object.entries(form), ([field, inner]) => problemOf(value[field], inner, place === '' ? field : `${place}.${field}`));
}

function isList(form: Form): form is readonly [Form] {
  return Array.isArray(form);
}

function first<T>(list: readonly T[], of: (entry: T, index: number) => string | undefined): string | undefined {
  for (const [index, entry] of list.entries()) {
    const found = of(entry, index);
    if (found !== undefined) return found;
  }
  return undefined;
}
