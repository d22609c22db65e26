// The form of a scenario: what its fields are and may be, each by itself. define-scenario.ts checks what they are together.
import * as v from 'valibot';
import {
  check,
  closed,
  count,
  each,
  exactly,
  figure,
  flag,
  givenName,
  isObject,
  list,
  name,
  oneOf,
  orAbsent,
  orNull,
  placeOf,
  signed,
  text,
  texts,
  trueOrAbsent,
  upTo,
  whole,
  within,
  type Form,
  type ObjectForm,
} from '../form.ts';
import type {
  AddressServer,
  CommandServer,
  ConfiguredServer,
  LinkDirection,
  LoadProfile,
  NetworkSpec,
  Page,
  Published,
  PublishedDistribution,
  Scenario,
  ServerSpec,
  TlsOffer,
  Variant,
  Within,
} from './model.ts';
import { mostPages, mostWeight, type PageWeights } from './pages.ts';

/** Rounds that a run may have, by a scenario or a flag. */
export const mostRounds = 1000;
const day = 86_400;
/** nginx's own limit is 1024. */
const processes = whole(1, 1024);
/** What Linux takes at most for a limit of open files (sysctl_nr_open_max). */
const files = whole(1, 2_147_483_584);
const port = whole(1, 65_535);
/** Connections, and requests on each at a time. */
const many = whole(1, 1_000_000);
const perSecond = upTo(1e9);
const seconds = upTo(day);
const secondsOrNone = within(0, day);

export const protocol = oneOf(['http/1.0', 'http/1.1', 'h2', 'h2c']);
const tlsVersion = oneOf(['TLSv1.2', 'TLSv1.3']);
const tlsOffer = exactly<TlsOffer>()(
  closed({
    minVersion: orAbsent(tlsVersion),
    maxVersion: orAbsent(tlsVersion),
    ciphers: orAbsent(texts),
    curves: orAbsent(texts),
  }),
);

const headers = v.pipe(
  v.custom<Record<string, string>>(
    (value) => isObject(value) && Object.values(value).every((one) => typeof one === 'string'),
    'has to be an object of texts',
  ),
);

const loadProfile = exactly<LoadProfile>()(
  closed({
    command: text,
    protocol,
    connections: many,
    streams: orAbsent(many),
    rate: orAbsent(perSecond),
    arrivals: orAbsent(oneOf(['constant', 'poisson'])),
    bucketSeconds: orAbsent(list(seconds)),
    tls: orAbsent(tlsOffer),
    timeoutSeconds: orAbsent(seconds),
    expectedRps: orAbsent(perSecond),
    threads: processes,
    keepAlive: flag,
    warmupSeconds: orAbsent(secondsOrNone),
    durationSeconds: orAbsent(seconds),
    requests: orAbsent(whole(1, 1e12)),
    secondsHere: orAbsent(seconds),
    method: orAbsent(text),
    headers: orAbsent(headers),
    body: orAbsent(text),
  }),
);

const weights = exactly<PageWeights>()(
  v.pipe(
    v.record(text, whole(1, mostWeight), 'has to be an object of weights by path'),
    v.check(
      (all) => Object.keys(all).length <= mostPages,
      `has to have at most ${mostPages} paths`,
    ),
  ),
);
const page = exactly<Page>()(
  closed({
    docroot: orAbsent(text),
    path: text,
    host: orAbsent(text),
    weights: orAbsent(weights),
    bodyBytes: count,
    status: orAbsent(whole(200, 599)),
  }),
);

const configuredServer = exactly<ConfiguredServer>()(
  closed({
    name: oneOf(['nginx', 'h2o', 'nghttpd']),
    config: texts,
    workers: v.lazy((value) =>
      typeof value === 'number'
        ? processes
        : v.literal('server-cores', "has to be a whole number above 0 or 'server-cores'"),
    ),
    articleWorkers: orAbsent(processes),
    minWorkers: orAbsent(processes),
    fileLimit: orAbsent(files),
    asIs: orAbsent(
      closed({
        port: orAbsent(port),
        laid: orAbsent(list(closed({ context: text, lines: text }))),
      }),
    ),
    binary: orAbsent(text),
  }),
);

const commandServer = exactly<CommandServer>()(
  closed({
    name: v.literal('command'),
    command: text,
    port: orAbsent(port),
    folder: orAbsent(text),
    tls: orAbsent(trueOrAbsent),
  }),
);

const addressServer = exactly<AddressServer>()(
  closed({ name: v.literal('address'), origin: text }),
);

const serverSpec: Form<ServerSpec> = v.lazy((value) => {
  const name = isObject(value) ? value.name : undefined;
  return name === 'command' ? commandServer : name === 'address' ? addressServer : configuredServer;
});

/** Nobody waits longer; a rate that keeps it could be any. */
export const longestLatencyMs = 60_000;

/** An hour's delay would outlast every attempt. */
const longestDelayMs = 60_000;

/** @param object how its fields are taken; a result may be a newer bakeoff's */
export function networkForm(object: ObjectForm): Form<NetworkSpec> {
  const direction = exactly<LinkDirection>()(
    object({
      delayMs: within(0, longestDelayMs),
      queuePackets: orAbsent(whole(1, 1e9)),
      bytesPerSecond: orAbsent(within(1, 1e12)),
      lossShare: orAbsent(
        v.pipe(
          within(0, 1),
          v.check((share) => share < 1, 'has to be below 1: 0.01 is 1 %'),
        ),
      ),
    }),
  );
  return exactly<NetworkSpec>()(
    object({
      toServer: direction,
      toClient: direction,
      serverSettings: texts,
      clientSettings: texts,
    }),
  );
}

/** @param object as in networkForm */
export function publishedForm(object: ObjectForm): Form<Published> {
  const distribution = exactly<PublishedDistribution>()(
    object({ min: orAbsent(figure), ...each(['mean', 'sd', 'max', 'withinSdPercent'], figure) }),
  );
  const figures = {
    ...each(['rps', 'transferBytesPerSecond'], orAbsent(figure)),
    ...each(
      ['latencyMs', 'connectMs', 'firstByteMs', 'perConnectionRps', 'perThreadRps'],
      orAbsent(distribution),
    ),
    ...each(
      [
        'requests',
        'receivedBytes',
        'headerBytes',
        'bodyBytes',
        'seconds',
        'errorsPerMillion',
        'packetsPerRequest',
        'successRatio',
      ],
      orAbsent(figure),
    ),
    headerSavingsPercent: orAbsent(signed),
    responses: orAbsent(object(each(['2xx', '3xx', '4xx', '5xx'], orAbsent(count)))),
    tls: orAbsent(object(each(['version', 'cipher', 'keyExchange'], text))),
    buckets: orAbsent(list(object({ fromSeconds: figure, toSeconds: orNull(figure), count }))),
  };
  return exactly<Published>()(
    object({
      ...figures,
      phases: orAbsent(list(exactly<Omit<Published, 'phases'>>()(object(figures)))),
    }),
  );
}

/** @param object as in networkForm */
export function withinForm(object: ObjectForm): Form<Within> {
  return exactly<Within>()(
    object({ metric: oneOf(['p50', 'p90', 'p99']), ms: within(0.001, longestLatencyMs) }),
  );
}

const network = networkForm(closed);

const variant = exactly<Variant>()(
  closed({
    name: givenName,
    server: v.lazy((value) =>
      typeof value === 'object' ? serverSpec : v.string('has to be a text or an object'),
    ),
    load: orAbsent(loadProfile),
    published: orAbsent(publishedForm(closed)),
    onRequest: orAbsent(flag),
    against: orAbsent(orNull(text)),
    needsServerCores: orAbsent(processes),
    page: orAbsent(page),
    network: orAbsent(network),
    note: orAbsent(text),
    series: orAbsent(name),
  }),
);

const scenario = exactly<Scenario>()(
  closed({
    name: givenName,
    title: text,
    article: orAbsent(
      closed({
        id: oneOf(['000', '001', '002', '003', '004']),
        title: text,
        year: whole(1990, 9999),
      }),
    ),
    knob: text,
    load: loadProfile,
    page,
    network: orAbsent(network),
    phases: orAbsent(closed({ count: whole(1, 100), pauseSeconds: secondsOrNone })),
    rounds: orAbsent(whole(1, mostRounds)),
    within: orAbsent(withinForm(closed)),
    variants: list(variant),
    alsoCompare: orAbsent(list(closed({ variant: text, against: text }))),
    control: orAbsent(trueOrAbsent),
    sharedCores: orAbsent(trueOrAbsent),
    footnotes: orAbsent(texts),
  }),
);

/** What is wrong with its fields, the first such thing: `variant "first": load: connections 0.5 has to be …`; undefined when nothing is. */
export function problemOfForm(value: unknown): string | undefined {
  const outcome = check(scenario, value, { everything: true });
  if ('value' in outcome) return undefined;
  const { at, problem, ofField } = outcome;
  const [first, index] = at;
  const inVariant = first === 'variants' && typeof index === 'number';
  const called = inVariant
    ? (value as { variants: { name?: unknown }[] }).variants[index]?.name
    : undefined;
  const words = sentence(inVariant ? at.slice(2) : at, problem, ofField);
  return inVariant
    ? `variant ${typeof called === 'string' ? JSON.stringify(called) : index + 1}: ${words}`
    : words;
}

/** The same of a load by itself. */
export function problemOfLoadForm(value: LoadProfile): string | undefined {
  const outcome = check(loadProfile, value);
  return 'value' in outcome ? undefined : sentence(outcome.at, outcome.problem, outcome.ofField);
}

function sentence(at: readonly (string | number)[], problem: string, ofField: boolean): string {
  const where = placeOf(at, ': ');
  return where === '' ? problem : `${where}${ofField ? ' ' : ': '}${problem}`;
}
