// The form of result.json: how it is written, and the check of one that is read, which may be of another machine, or anything.
import * as v from 'valibot';
import { UserError } from '../errors.ts';
import {
  check,
  count,
  each,
  exactly,
  figure,
  flag,
  isObject,
  list,
  name,
  oneOf,
  open,
  orAbsent,
  orElse,
  orNull,
  placeOf,
  signed,
  text,
  texts,
  trueOrAbsent,
  whole,
  within,
  type Form,
} from '../form.ts';
import {
  mostRounds,
  networkForm,
  protocol,
  publishedForm,
  withinForm,
} from '../scenario/schema.ts';
import type { KernelSetting, LinkTraffic, NetworkResult, NetworkUse } from './network.ts';
import type {
  BesideRatio,
  BucketShare,
  Comparison,
  Distribution,
  Environment,
  Integrity,
  LatencyDistribution,
  LatencyFigures,
  FoundRate,
  ClusterFacts,
  GeneratorHostFacts,
  Noise,
  NoiseFloor,
  Phase,
  PhaseResult,
  Result,
  Round,
  Search,
  SearchStep,
  ServerHostFacts,
  Traffic,
  Turns,
  VariantResult,
} from './result.ts';

const schema = 1;

const instant = v.pipe(
  text,
  v.check(
    (one) => !Number.isNaN(Date.parse(one)),
    'has to be an instant such as 2026-11-20T08:15:30.000Z',
  ),
);
const two = 'has to be a list of two numbers';
const interval = v.strictTuple([figure, figure], two);
const cpus = list(whole(0, 9999));
/** Of a round; those that are repeated count on. */
const roundNumber = whole(1, 10 * mostRounds);
/** A part of the page's name and of paths. */
const runName = v.pipe(
  text,
  v.regex(/^[A-Za-z0-9-]{1,230}$/, 'may have letters, digits and - only'),
);

/** Of a person's own command, or the host of an address. A part of paths. */
const program = v.pipe(text, v.regex(/^(?!\.\.?$)[^/\p{Cc}]{1,255}$/u, 'may have no / in it'));

const distributionFields = each(['min', 'mean', 'sd', 'withinSd', 'max'], figure);
const distribution = exactly<Distribution>()(open(distributionFields));
const latencyFields = {
  ...distributionFields,
  ...each(['p50', 'p75', 'p90', 'p95', 'p99', 'p999'], figure),
};
const latencyFigures = exactly<LatencyFigures>()(open(latencyFields));
const bar = v.strictTuple([figure, count], 'has to be a list of a time and a count');
const latency = exactly<LatencyDistribution>()(
  open({ ...latencyFields, histogram: orElse(list(bar), () => []) }),
);
const times = ['latencyMs', 'connectMs', 'firstByteMs', 'sendDelayMs'] as const;
const bytes = ['received', 'headers', 'headersDecoded', 'body', 'sent'] as const;
const bucket = { fromMs: figure, toMs: orNull(figure), count };

const expected = orAbsent(oneOf(['2xx', '3xx', '4xx', '5xx']));

/** What is counted alike in a phase and over all rounds. */
const outcomes = {
  responses: open(each(['2xx', '3xx', '4xx', '5xx'], count)),
  errors: open(each(['connect', 'tls', 'read', 'write', 'timeout', 'protocol', 'total'], count)),
  errorCauses: open(
    each(['addressNotAvailable', 'refused', 'reset', 'timedOut', 'short', 'other'], count),
  ),
  unsent: count,
  hung: orElse(count, 0),
  ...each(['perConnectionRps', 'perThreadRps'], distribution),
  tls: orNull(open(each(['version', 'cipher', 'keyExchange'], text))),
};

const statuses = v.record(
  v.pipe(text, v.regex(/^[345]\d\d$/, 'has to be a status')),
  count,
  'has to be an object',
);

const noise = exactly<Noise>()(
  open({
    ...each(
      ['serverStealShare', 'generatorStealShare', 'serverOthersShare', 'loadAverage'],
      figure,
    ),
    generatorOthersShare: orElse(figure, 0),
    upstreamShare: orAbsent(orNull(figure)),
    serverMhz: orNull(interval),
  }),
);
const linkTraffic = exactly<LinkTraffic>()(
  open({
    ...each(['packets', 'bytes', 'delivered', 'dropped', 'lost'], count),
    kinds: open(each(['syn', 'synAck', 'ack', 'data', 'dataFin', 'fin', 'reset', 'other'], count)),
    latenessMs: open(each(['p50', 'p99', 'max'], figure)),
  }),
);
const bothWays = open(each(['toServer', 'toClient'], figure));
const networkUse = exactly<NetworkUse>()(
  open({
    toServer: linkTraffic,
    toClient: linkTraffic,
    retransmits: open(each(['client', 'server'], count)),
    listenOverflows: count,
    linkCpuSeconds: bothWays,
  }),
);
const turns = exactly<Turns>()(
  open({
    count,
    responses: count,
    ...each(['sliceMs', 'rampMs'], figure),
    waits: flag,
    stoodStill: orAbsent(figure),
  }),
);
const phase = exactly<Phase>()(
  open({
    ...outcomes,
    ...each(times, latency),
    ...each(['requests', 'warmupRequests', 'inFlight'], count),
    ...each(['seconds', 'rps', 'cpuSeconds', 'generatorCpuSeconds'], figure),
    statuses: orAbsent(statuses),
    errorExample: orAbsent(text),
    turns: orElse(orNull(turns), null),
    longestGapMs: orElse(figure, 0),
    bytes: open(each(bytes, count)),
    buckets: list(open(bucket)),
    maxConcurrentStreams: orNull(count),
    startedAt: instant,
    endedAt: instant,
    monotonicMs: orElse(interval, () => [0, 0] as [number, number]),
    expected,
    ...each(['serverCpuSeconds', 'serverRssBytes'], orNull(figure)),
    idleCpuShare: orElse(orNull(figure), null),
    noise: orNull(noise),
    network: orNull(networkUse),
  }),
);
const round = exactly<Round>()(open({ round: roundNumber, phases: list(phase) }));

const trafficFields = {
  ...each(['requests', 'seconds', 'receivedBytesPerSecond'], figure),
  bytes: open(each(bytes, figure)),
  headerSavingsPercent: orNull(signed),
};
const traffic = exactly<Traffic>()(open(trafficFields));
const median = open({ median: figure });
const phaseResult = exactly<PhaseResult>()(
  open({
    ...trafficFields,
    ...outcomes,
    expected,
    ...each(times, latencyFigures),
    phase: whole(1, 100),
    rps: median,
    successRatio: orNull(figure),
    buckets: list(exactly<BucketShare>()(open({ ...bucket, share: figure }))),
  }),
);
const networkResult = exactly<NetworkResult>()(
  open({
    spec: networkForm(open),
    packetsPerRequest: bothWays,
    droppedShare: bothWays,
    latenessMs: open(each(['p50', 'p99'], figure)),
    ...each(['retransmitsPerRequest', 'listenOverflows', 'serverIdleShare'], figure),
    delayHeld: flag,
  }),
);

const countOrAbsent = orAbsent(figure);
const load = v.pipe(
  v.custom(isObject, 'has to be an object'),
  v.objectWithRest(
    {
      command: orAbsent(text),
      protocol,
      threads: count,
      ...each(['streams', 'rate', 'durationSeconds', 'requests', 'pages'], countOrAbsent),
      searched: orAbsent(trueOrAbsent),
      asWritten: orAbsent(
        open({ threads: count, ...each(['durationSeconds', 'requests'], countOrAbsent) }),
      ),
    },
    v.unknown(),
    'is missing',
  ),
) as unknown as Form<VariantResult['load']>;

const variant = exactly<VariantResult>()(
  open({
    name,
    server: orNull(
      open({
        name: program,
        version: text,
        workers: count,
        config: texts,
        redirections: texts,
        atAddress: orAbsent(trueOrAbsent),
      }),
    ),
    publishedOnly: orAbsent(text),
    load,
    published: orNull(publishedForm(open)),
    note: orAbsent(text),
    series: orAbsent(name),
    rounds: list(round),
    rps: orNull(median),
    serverCpuMicrosPerRequest: orNull(median),
    latencyMs: orNull(open(each(['p50', 'p99', 'max'], figure))),
    ...each(['errorsPerMillion', 'successRatio', 'serverShare', 'generatorShare'], orNull(figure)),
    network: orNull(networkResult),
    traffic: orNull(traffic),
    phases: list(phaseResult),
  }),
);

/** With two rounds far apart an interval has ends that nothing measured comes near. */
const bound = within(0, Number.MAX_VALUE);
const ratio = { ratio: figure, ci95: v.strictTuple([bound, bound], two) };
const verdict = oneOf(['faster', 'slower', 'same', 'inconclusive', 'none']);
const comparison = exactly<Comparison>()(
  open({
    ...ratio,
    metric: oneOf(['rps', 'cpu', 'p50', 'p90', 'p99']),
    variant: name,
    baseline: name,
    verdict,
    why: text,
    publishedRatio: orNull(figure),
    cpu: orNull(open(ratio)),
    latency: orElse(
      open(
        each(['p50', 'p90', 'p99'], orNull(exactly<BesideRatio>()(open({ ...ratio, verdict })))),
      ),
      () => ({ p50: null, p90: null, p99: null }),
    ),
    roundRatios: v.pipe(list(figure), v.maxLength(mostRounds, `has more than ${mostRounds}`)),
    outliers: list(roundNumber),
    swayedBy: orElse(orNull(open({ round: roundNumber, without: verdict })), null),
    roundsNeeded: orNull(figure),
    disagreement: text,
    delayNotHeld: texts,
  }),
);
const search = exactly<Search>()(
  open({
    within: withinForm(open),
    found: list(
      exactly<FoundRate>()(
        open({
          variant: name,
          rate: figure,
          ci95: orNull(v.strictTuple([bound, bound], two)),
          atLeast: flag,
        }),
      ),
    ),
    steps: list(
      exactly<SearchStep>()(
        open({
          round: roundNumber,
          variant: name,
          ...each(['rate', 'made'], figure),
          latencyMs: open(each(['p50', 'p90', 'p99'], figure)),
          kept: flag,
          why: text,
        }),
      ),
    ),
  }),
);
const machine = {
  ...each(['cpuModel', 'kernel', 'os', 'bootId'], text),
  cores: count,
  memoryBytes: count,
  governor: orNull(text),
  bootedAt: instant,
};
const roundTripMs = open(each(['p50', 'p99'], figure));
const environment = exactly<Environment>()(
  open({
    ...machine,
    bakeoff: text,
    loadAverage: v.strictTuple([figure, figure, figure], 'has to be a list of three numbers'),
    serverCpus: cpus,
    generatorCpus: cpus,
    cpuQuota: orAbsent(figure),
    coreNotes: orAbsent(texts),
    versions: v.record(text, text, 'has to be an object'),
    serverHost: orAbsent(
      exactly<ServerHostFacts>()(
        open({ ...machine, name: text, address: text, roundTripMs, bytesPerSecond: figure }),
      ),
    ),
    generatorHosts: orAbsent(
      list(
        exactly<GeneratorHostFacts>()(
          open({
            ...each(['name', 'address', 'architecture', 'cpuModel', 'kernel'], text),
            cores: count,
            memoryBytes: count,
            roundTripMs: orAbsent(roundTripMs),
            bytesPerSecond: orAbsent(figure),
          }),
        ),
      ),
    ),
    cluster: orAbsent(
      exactly<ClusterFacts>()(
        open({
          ...each(['name', 'serverNode', 'serverSystem'], text),
          ...each(['generators', 'generatorCores'], count),
        }),
      ),
    ),
  }),
);

const result = exactly<Result>()(
  open({
    schema: v.literal(schema),
    run: runName,
    scenario: name,
    title: text,
    knob: orAbsent(text),
    control: orAbsent(trueOrAbsent),
    startedAt: instant,
    endedAt: instant,
    state: oneOf(['complete', 'partial']),
    quick: flag,
    environment,
    variants: list(variant),
    comparisons: list(comparison),
    search: orAbsent(search),
    looks: list(count),
    precision: orAbsent(figure),
    sameWithin: figure,
    noiseFloor: orNull(exactly<NoiseFloor>()(open({ rounds: count, ratio: figure }))),
    kernelSettings: list(
      exactly<KernelSetting>()(
        open({
          side: oneOf(['server', 'client']),
          name: text,
          value: text,
          problem: orAbsent(text),
          variants: list(name),
        }),
      ),
    ),
    integrity: orNull(
      exactly<Integrity>()(open(each(['requests', 'stored', 'backfilled', 'lost'], count))),
    ),
    warnings: texts,
    footnotes: texts,
  }),
);

/** As it is written: indented, but for histograms: thousands of bars, each in four lines, would be ten times the rest. */
export function resultJson(one: Result): string {
  const json = JSON.stringify(
    one,
    (key, value: unknown) => (key === 'histogram' ? JSON.stringify(value) : value),
    2,
  );
  // In JSON no text has the end of a line in it, or a bare quote: what begins a line so is the key.
  return `${json.replaceAll(/(\n *"histogram": )("[^\n]*")(?=,?\n)/g, (_, key: string, text: string) => key + String(JSON.parse(text)))}\n`;
}

/**
 * The file's text as a result, without unknown fields, and with defaults for those that an older bakeoff did not write.
 * Throws UserError that names `file` if it is no JSON, or no result of this schema.
 */
export function checkResult(json: string, file: string): Result {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new UserError(`${file} is not whole JSON: name a run that ended, or run it again`);
  }
  if (!isObject(value) || typeof value['schema'] !== 'number' || !('variants' in value))
    throw new UserError(`${file} is no result of bakeoff: name a run's folder or its result.json`);
  if (value['schema'] > schema)
    throw new UserError(
      `${file}: schema ${value['schema']} is of a newer bakeoff, this one reads ${schema}: make its report with that one`,
    );
  const outcome = check(result, value);
  if ('value' in outcome) return outcome.value;
  throw new UserError(
    `${file} is of an earlier bakeoff, or was changed: ${placeOf(outcome.at)} ${outcome.problem}: run it again with this one`,
  );
}
