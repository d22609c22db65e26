// The format of result.json (schema 1) and its check. A result may come from another machine or an older bakeoff.
import * as v from 'valibot';
import { UserError } from '../errors.ts';
import {
  check,
  count,
  each,
  figure,
  flag,
  isObject,
  list,
  name,
  oneOf,
  open,
  orElse,
  orNull,
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
  packetKinds,
  protocol,
  publishedForm,
  withinForm,
} from '../scenario/model.ts';
import { serverFields, serverMetricNames } from './server-metrics.ts';

const schema = 1;

/** A field that is left out where it is unknown. */
export const optional = <T>(form: Form<T>): v.ExactOptionalSchema<Form<T>, undefined> =>
  v.exactOptional(form);
const instant = v.pipe(
  text,
  v.check(
    (one) => !Number.isNaN(Date.parse(one)),
    'has to be an instant such as 2026-11-20T08:15:30.000Z',
  ),
);
const two = 'has to be a list of two numbers';
const interval = v.strictTuple([figure, figure], two);
const median = open({ median: figure });
/** Repeated rounds are numbered too. */
const roundNumber = whole(1, 10 * mostRounds);
const runName = v.pipe(
  text,
  v.regex(/^[A-Za-z0-9-]{1,230}$/, 'may have letters, digits and - only'),
);
/** A server's, a command's or a host's name; part of paths. */
const program = v.pipe(text, v.regex(/^(?!\.\.?$)[^/\p{Cc}]{1,255}$/u, 'may have no / in it'));
const readonlyTexts: Form<readonly string[]> = texts;

/** `sd` is the standard deviation, `withinSd` the share of values within sd of the mean (0 to 1). All 0 without values. */
const distributionFields = each(['min', 'mean', 'sd', 'withinSd', 'max'], figure);
const distribution = open(distributionFields);
export type Distribution = v.InferOutput<typeof distribution>;

/** The percentiles come from an HdrHistogram of 3 digits (within 0.1 %); the other figures are exact. */
const latencyFields = {
  ...distributionFields,
  ...each(['p50', 'p75', 'p90', 'p95', 'p99', 'p999'], figure),
};
const latencyFigures = open(latencyFields);
export type LatencyFigures = v.InferOutput<typeof latencyFigures>;

/** `count` values took at most `atMostMs`, and longer than the bar before. */
export type HistogramBar = [atMostMs: number, count: number];
const bar: Form<HistogramBar> = v.strictTuple(
  [figure, count],
  'has to be a list of a time and a count',
);
const latency = open({ ...latencyFields, histogram: orElse(list(bar), () => []) });
export type LatencyDistribution = v.InferOutput<typeof latency>;

const byteFields = ['received', 'headers', 'headersDecoded', 'body', 'sent'] as const;
const bucketFields = { fromMs: figure, toMs: orNull(figure), count };
const statusClass = oneOf(['2xx', '3xx', '4xx', '5xx']);
export type StatusClass = v.InferOutput<typeof statusClass>;
const expected = oneOf(['2xx', '3xx', '4xx', '5xx', 'each']);
const statuses = v.record(
  v.pipe(text, v.regex(/^[345]\d\d$/, 'has to be a status')),
  count,
  'has to be an object',
);
const errorCauses = open(
  each(['addressNotAvailable', 'refused', 'reset', 'timedOut', 'short', 'other'], count),
);
/** `addressNotAvailable`: no free local port; `short`: the connection ended before or within the answer. */
export type ErrorCause = keyof v.InferOutput<typeof errorCauses>;

/** Fields of a phase, and of a phase over all rounds. */
const outcomeFields = {
  responses: open(each(['2xx', '3xx', '4xx', '5xx'], count)),
  /** Attempts that ended without a response. */
  errors: open(each(['connect', 'tls', 'read', 'write', 'timeout', 'protocol', 'total'], count)),
  /** The same attempts by cause; they add up to errors.total. */
  errorCauses,
  /** At a rate: requests due in the window that could not leave before its end; in no other figure. */
  unsent: count,
  /** Requests of `inFlight` older than 1 s and than twice p99.9: the server has probably forgotten them. */
  hung: orElse(count, 0),
  /** Responses with another status than their request's. */
  unexpected: orElse(count, 0),
  /** Responses per second of each connection, until its last response. */
  perConnectionRps: distribution,
  /** Responses per second of each event loop. */
  perThreadRps: distribution,
  /** The negotiated parameters in OpenSSL's names; null without TLS, or if no handshake completed. */
  tls: orNull(open(each(['version', 'cipher', 'keyExchange'], text))),
};

/** How a side in turns was loaded. */
const turns = open({
  /** 1: the sides were loaded one after the other. */
  count,
  /** All responses of these turns, with the ramps and drains that the figures may leave out. */
  responses: count,
  /** Mean length of a turn. */
  sliceMs: figure,
  /** The longest time from a turn's begin to its window. */
  rampMs: figure,
  /** The server waits for a backend, a timer or such. */
  waits: flag,
  /** At a rate: share of turns (0 to 1) in which the generator stood still; most are left out and repeated. */
  stoodStill: optional(figure),
});

const continuous = open({
  ...each(['seconds', 'rps', 'p50Ms', 'p99Ms', 'queueGrowthPerSecond'], figure),
  /** CPU time of the server per response, in microseconds; 0: unknown. */
  cpuMicros: figure,
  /** Length of the whole warm-up. */
  warmupSeconds: figure,
  /** `rps` as a multiple of that of the warm-up's first part. */
  gain: figure,
});

/** A page of a mix: a path, with a method other than GET before it. */
const pageFigures = open({
  page: text,
  ...each(['responses', 'unexpected', 'errors', 'bodyBytes'], count),
  ...each(['p50Ms', 'p99Ms', 'midMeanMs'], figure),
  /** Its answers with one request at a time, and the mean time of their middle half. */
  alone: optional(open({ responses: count, ms: figure })),
});
export type PageFigures = v.InferOutput<typeof pageFigures>;

const loadFields = {
  ...outcomeFields,
  /** The greatest weights first; empty for a single page. */
  pages: orElse(list(pageFigures), []),
  /** Attempts that ended in the window: responses + errors. */
  requests: count,
  /** Attempts that ended in the warm-up, ramps, drains and turns left out; in no other figure. */
  warmupRequests: count,
  /** Requests without an answer at the window's end; not in `requests`. */
  inFlight: count,
  /** Length of the window; for a count of requests, from the first connect to the last response. */
  seconds: figure,
  /** Responses per second in the window; at a rate in turns, those that came within the turns, whenever they were due. */
  rps: figure,
  /** Responses by status, from 300 on. */
  statuses: optional(statuses),
  /** Text of an error; '' without errors. */
  errorExample: optional(text),
  /** The longest time in the window without a response while requests were under way. */
  longestGapMs: orElse(figure, 0),
  /** null for a side without turns. */
  turns: orElse(orNull(turns), null),
  /** At a rate: the mean growth of the queue of requests without an answer, in requests per second, over parts of the turns; else null. */
  queueGrowth: optional(orNull(open(each(['perSecond', 'standardError'], figure)))),
  /** The end of the warm-up, which is load without turns; null without a warm-up. */
  continuous: optional(orNull(continuous)),
  /**
   * HTTP bytes; with TLS, inside the records. `headers` as received (HPACK's blocks), `headersDecoded` the size of names and
   * values, `body` without framing and padding, `received` and `sent` everything.
   */
  bytes: open(each(byteFields, count)),
  /** From a request's first byte (without keep-alive: its connect; at a rate: when it was due) to its response's last byte. */
  latencyMs: latency,
  /** TCP and TLS handshakes of each connection. */
  connectMs: latency,
  /** From a connection's start to the first byte of its first response. */
  firstByteMs: latency,
  /** At a rate: delay of requests behind their due time. All 0 otherwise. */
  sendDelayMs: latency,
  /** Responses with fromMs ≤ latency < toMs (null: no upper end). Empty unless asked for. */
  buckets: list(open(bucketFields)),
  /** The server's limit of concurrent requests per connection (HTTP/2); null if it named none. */
  maxConcurrentStreams: orNull(count),
  /** Begin and end of the window, ISO 8601. */
  startedAt: instant,
  endedAt: instant,
  /** The same on CLOCK_MONOTONIC, as process.hrtime reads it. */
  monotonicMs: orElse(interval, () => [0, 0] as [number, number]),
  /** CPU seconds of the whole k6 process in the window. */
  cpuSeconds: figure,
};
const loadResult = open(loadFields);

/** What `loadgen.run` returns, and `loadgen.alternate` for each side. */
export interface LoadResult extends v.InferOutput<typeof loadResult> {
  /**
   * CPU time of the processes in SideOptions.cpuOf; null without them. `seconds` in the side's turns, ramps and drains included;
   * `idleShare` in cores, during the turns of others (0 for a side without turns). `cores`: CPU seconds of all processes, of
   * interrupts and of all sides' servers, on its cores in its turns, which took `seconds`; all 0 if unknown.
   */
  serverCpu?: {
    seconds: number;
    idleShare: number;
    cores: { seconds: number; processes: number; interrupts: number; servers: number };
  } | null;
  /** Of the same processes at the window's end, as memoryBytes of a round; null if unknown. */
  serverMemoryBytes?: number | null;
  /** Counts of all its connections, warm-up included, each as of its close. */
  wire?: Record<(typeof wireNames)[number], number>;
}

/** What else used the machine in a phase's window, as shares (0 to 1) of the time of a side's cores. */
const noise = open({
  /** Taken by the hypervisor. Shares of the generator's cores are 0 if other hosts make the load. */
  serverStealShare: figure,
  generatorStealShare: figure,
  /** Used on the server's cores, except by the server (and the generator on shared cores). */
  serverOthersShare: figure,
  /** Used on the generator's cores, except by k6, its link, the runner and servers on shared cores. */
  generatorOthersShare: orElse(figure, 0),
  /** Used on the server's cores by its backends; in no share above. null: unknown, and in serverOthersShare. */
  upstreamShare: optional(orNull(figure)),
  /**
   * What the host or others took of either side's cores in the worst span as long as the server's longest pause; absent without such a
   * pause.
   */
  duringPause: optional(figure),
  /** Load average of one minute at the window's end. */
  loadAverage: figure,
  /** Mean clock of the server's cores at the window's begin and end; null if unknown. */
  serverMhz: orNull(interval),
});
export type Noise = v.InferOutput<typeof noise>;

/**
 * One direction: packets = delivered + dropped (by the queue's limit) + lost (by the asked share), except for those
 * under way at the window's ends. `latenessMs`: how late delivered packets left the link.
 */
const linkTraffic = open({
  ...each(['packets', 'bytes', 'delivered', 'dropped', 'lost'], count),
  kinds: open(each(packetKinds, count)),
  latenessMs: open(each(['p50', 'p99', 'max'], figure)),
});
export type LinkTraffic = v.InferOutput<typeof linkTraffic>;
export type PacketKind = (typeof packetKinds)[number];

const bothWays = open(each(['toServer', 'toClient'], figure));
/** In a phase's window; for a count of requests, until the last request's packets have arrived. */
const networkUse = open({
  toServer: linkTraffic,
  toClient: linkTraffic,
  /** TCP segments sent again (RetransSegs), by side. */
  retransmits: open(each(['client', 'server'], count)),
  /** Connections that the server's full accept queue refused (ListenOverflows). */
  listenOverflows: count,
  /** CPU seconds of each direction's thread, which runs on the cores of the receiving side. */
  linkCpuSeconds: bothWays,
});
export type NetworkUse = v.InferOutput<typeof networkUse>;

/** What the server used per request, connects and warm-up included. `readBytes` and `writtenBytes` are those of system calls. */
export const counterNames = [
  'userCpuUs',
  'systemCpuUs',
  'voluntarySwitches',
  'involuntarySwitches',
  'pageFaults',
  'readBytes',
  'writtenBytes',
] as const;

/**
 * What the load's connections had on the wire per request. TLS handshakes are full ones; segments and bytes, with the
 * headers of IP and TCP, are TCP's own counts, to the server (`Out`) and from it.
 */
export const wireNames = [
  'connections',
  'handshakes',
  'segmentsOut',
  'segmentsIn',
  'resentSegments',
  'wireBytesOut',
  'wireBytesIn',
] as const;

/** A side's result from k6 on another host. */
export const resultFromHost = open({
  ...loadFields,
  wire: optional(open(each(wireNames, figure))),
});

/** A load phase of a round. */
const phase = open({
  ...loadFields,
  /** The class of status that succeeds; `each`: each request has a status of its own. Absent: 2xx and 3xx. */
  expected: optional(expected),
  /** CPU time of all its processes for the responses in the window; null for an address. */
  serverCpuSeconds: orNull(figure),
  serverRssBytes: orNull(figure),
  /** Cores that the server used while other sides were loaded; null if unknown. */
  idleCpuShare: orElse(orNull(figure), null),
  /**
   * Shares of the cores that the server can use, during its turns: the wait of its tasks for a core, and the usage by other
   * programs; absent if unknown.
   */
  starved: optional(open(each(['waitedShare', 'othersShare'], figure))),
  /** Share of the samples in which a process of the server was stopped; absent if unknown. */
  stoppedShare: optional(figure),
  /** `counterNames` are absent where the server was not started on this machine. */
  perRequest: optional(open(each([...counterNames, ...wireNames], optional(figure)))),
  /**
   * How often the server's accept queue overflowed in the round's whole load, connects and warm-up included, and how long it is
   * (listen(2)). Without `backlog` (no ss) other sides' overflows are in the count. Absent where the server did not run on this machine.
   */
  acceptQueue: optional(open({ overflows: count, backlog: optional(count) })),
  /** How often each kind of trouble with clients is in nginx's log of the whole round; absent without any, or below the level info. */
  clientErrors: optional(v.record(text, count, 'has to be an object')),
  generatorCpuSeconds: figure,
  /** null without /proc/stat's figures, and for an address. */
  noise: orNull(noise),
  /** null on loopback. */
  network: orNull(networkUse),
});
export type Phase = v.InferOutput<typeof phase>;

const round = open({
  round: roundNumber,
  phases: list(phase),
  /** The figures of its server. */
  ...each(serverFields, optional(figure)),
});
export type Round = v.InferOutput<typeof round>;

/** Medians over the rounds. `headerSavingsPercent`: 100 · (1 − headers / headersDecoded). */
const trafficFields = {
  ...each(['requests', 'seconds', 'receivedBytesPerSecond'], figure),
  bytes: open(each(byteFields, figure)),
  headerSavingsPercent: orNull(signed),
};
const traffic = open(trafficFields);
export type Traffic = v.InferOutput<typeof traffic>;

/** `share` of the responses, 0 to 1. */
const bucketShare = open({ ...bucketFields, share: figure });
export type BucketShare = v.InferOutput<typeof bucketShare>;

/**
 * Counts are sums, times are of all values together. Of requests/s per connection and thread, `min` and `max` are over
 * all rounds, the other figures means of the rounds.
 */
const phaseResult = open({
  ...trafficFields,
  ...outcomeFields,
  expected: optional(expected),
  ...each(['latencyMs', 'connectMs', 'firstByteMs', 'sendDelayMs'], latencyFigures),
  /** From 1. */
  phase: whole(1, 100),
  rps: median,
  /** Successes per request, hung ones included; null without requests. */
  successRatio: orNull(figure),
  buckets: list(bucketShare),
});
export type PhaseResult = v.InferOutput<typeof phaseResult>;

/** A variant's network: medians over the rounds. */
const networkResult = open({
  spec: networkForm(open),
  /** Per response in the window in which packets were counted; 0 without responses. */
  packetsPerRequest: bothWays,
  /** Packets dropped by the queue's limit per packet, 0 to 1. */
  droppedShare: bothWays,
  /** Lateness of the later direction. */
  latenessMs: open(each(['p50', 'p99'], figure)),
  /** `serverIdleShare`: unused part of the server's cores, 0 to 1. */
  ...each(['retransmitsPerRequest', 'listenOverflows', 'serverIdleShare'], figure),
  /** Each direction's p99 of lateness is at most 2 % of its delay. */
  delayHeld: flag,
});
export type NetworkResult = v.InferOutput<typeof networkResult>;

const optionalCounts = <const N extends string>(names: readonly N[]) =>
  each(names, optional(figure));
/**
 * The load as fitted to this machine. `command` and `asWritten`: before the fit. `searched`: at the rates of a search.
 * `together`: latencies are of pages.
 */
const load = v.pipe(
  v.custom<Record<string, unknown>>(isObject, 'has to be an object'),
  v.objectWithRest(
    {
      command: optional(text),
      protocol,
      threads: count,
      ...optionalCounts(['connections', 'streams', 'rate', 'durationSeconds', 'requests', 'pages']),
      searched: optional(trueOrAbsent),
      together: optional(trueOrAbsent),
      asWritten: optional(
        open({ threads: count, ...optionalCounts(['durationSeconds', 'requests']) }),
      ),
    },
    v.unknown(),
    'is missing',
  ),
);

/** Two very different rounds can give an interval with infinite bounds. */
const bound = within(0, Number.MAX_VALUE);
const ci95 = v.strictTuple([bound, bound], two);
const ratioFields = { ratio: figure, ci95 };

/** A row of the table. Figures are null for a variant that was not run here. */
const variant = open({
  name,
  /** null: published only. */
  server: orNull(
    open({
      name: program,
      version: text,
      workers: count,
      config: readonlyTexts,
      /** Changes to a user's own config, a line each. */
      redirections: readonlyTexts,
      /** It ran there already, on unknown cores. */
      atAddress: optional(trueOrAbsent),
    }),
  ),
  /** Why it cannot be run here. */
  publishedOnly: optional(text),
  load,
  /** Of its first answer: the headers Content-Encoding and Content-Type, '' without. */
  answer: optional(open(each(['encoding', 'type'], text))),
  published: orNull(publishedForm(open)),
  note: optional(text),
  /** The curve that it belongs to. */
  series: optional(name),
  rounds: list(round),
  rps: orNull(median),
  /** Per response; null for an address. */
  serverCpuMicrosPerRequest: orNull(median),
  /** Over all responses of all rounds. */
  latencyMs: orNull(open(each(['p50', 'p99', 'max'], figure))),
  /** Per ended attempt. */
  errorsPerMillion: orNull(figure),
  successRatio: orNull(figure),
  /**
   * Median share (0 to 1) of the available CPU: of the cores of its workers or threads, without others' time; or of
   * all its cores with the network's link, if that is more. The server's is null for an address.
   */
  ...each(['serverShare', 'generatorShare'], orNull(figure)),
  /** null on loopback. */
  network: orNull(networkResult),
  /** Requests/s in turns as a multiple of those of continuous load; absent without turns, and at a rate. */
  turnsAgainstContinuous: optional(open(ratioFields)),
  /** Over all phases of a round. */
  traffic: orNull(traffic),
  phases: list(phaseResult),
});
export type VariantResult = v.InferOutput<typeof variant>;

const metric = oneOf(['rps', 'cpu', 'p50', 'p90', 'p99', ...serverMetricNames]);
/** Responses per second, the server's CPU time per response, a percentile of the latency, or one of its server. */
export type Metric = v.InferOutput<typeof metric>;
export type LatencyMetric = Extract<Metric, `p${number}`>;
const verdict = oneOf(['faster', 'slower', 'same', 'inconclusive', 'none']);
export type Verdict = v.InferOutput<typeof verdict>;

/** A comparison by another metric; its verdict is 'none' if only the ratio was asked for. */
const besideRatio = open({ ...ratioFields, verdict });
export type BesideRatio = v.InferOutput<typeof besideRatio>;

/**
 * `ratio` is exp(mean ln(variant / baseline)) over the rounds; `ci95` holds for all comparisons and looks together
 * (docs/verdicts.md). Both are 0 if nothing can be compared. While the result is partial, a verdict is not final.
 */
const comparison = open({
  ...ratioFields,
  metric,
  variant: name,
  baseline: name,
  verdict,
  why: text,
  publishedRatio: orNull(figure),
  /** CPU time per request. It has a verdict where requests/s decide and both servers were at their limit, and where it decides. */
  cpu: orNull(open({ ...ratioFields, verdict: orElse(verdict, 'none') })),
  /** null if a round has fewer than 10 slower responses. */
  latency: orElse(open(each(['p50', 'p90', 'p99'], orNull(besideRatio))), () => ({
    p50: null,
    p90: null,
    p99: null,
  })),
  /** Those that are known. They have a verdict where they were asked for. */
  ofServer: optional(open(each(serverMetricNames, optional(besideRatio)))),
  /** Ratios in the order of the rounds; empty if there is no comparison. */
  roundRatios: v.pipe(list(figure), v.maxLength(mostRounds, `has more than ${mostRounds}`)),
  /** Rounds whose ratio is far from the others; they count. */
  outliers: list(roundNumber),
  /** The only outlier, if the verdict depends on it. */
  swayedBy: orElse(orNull(open({ round: roundNumber, without: verdict })), null),
  /** Rounds that would probably decide an inconclusive comparison; null if too many. */
  roundsNeeded: orNull(figure),
  /** Why requests/s and CPU per request may disagree; '' if they agree. */
  disagreement: text,
  /** Variants whose link did not keep the delay. */
  delayNotHeld: texts,
  /** The largest pages of a mix, by the time of an answer alone. The intervals of all hold together. */
  pages: optional(list(open({ page: text, ...ratioFields, verdict }))),
});
export type Comparison = v.InferOutput<typeof comparison>;

/** A variant at a rate of a search. */
const searchStep = open({
  round: roundNumber,
  variant: name,
  /** Requests/s asked for, and answered. */
  ...each(['rate', 'made'], figure),
  /** From the due time, unanswered requests included. */
  latencyMs: open(each(['p50', 'p90', 'p99'], figure)),
  kept: flag,
  /** Why the limit was not kept, as a clause; '' if it was. */
  why: text,
});
export type SearchStep = v.InferOutput<typeof searchStep>;

/** Geometric mean in requests/s; an interval from 4 rounds on. */
const foundRate = open({ variant: name, rate: figure, ci95: orNull(ci95), atLeast: flag });
export type FoundRate = v.InferOutput<typeof foundRate>;

/** `steps` are in the order in which they were tried; those of an unfinished round come last. */
const search = open({
  within: withinForm(open),
  found: list(foundRate),
  steps: list(searchStep),
});
export type Search = v.InferOutput<typeof search>;

const machineFields = {
  ...each(['cpuModel', 'kernel', 'os', 'bootId'], text),
  cores: count,
  memoryBytes: count,
  governor: orNull(text),
  bootedAt: instant,
};
const roundTripMs = open(each(['p50', 'p99'], figure));
/** `roundTripMs` of one byte on a TCP connection; `bytesPerSecond` through it, both ways. */
const serverHost = open({
  ...machineFields,
  name: text,
  address: text,
  roundTripMs,
  bytesPerSecond: figure,
});
export type ServerHostFacts = v.InferOutput<typeof serverHost>;
export type LinkFigures = Pick<ServerHostFacts, 'roundTripMs' | 'bytesPerSecond'>;

/** Without link figures only ssh reaches it. `cores`: CPUs that it may use. */
const generatorHost = open({
  ...each(['name', 'address', 'architecture', 'cpuModel', 'kernel'], text),
  cores: count,
  memoryBytes: count,
  roundTripMs: optional(roundTripMs),
  bytesPerSecond: optional(figure),
});
export type GeneratorHostFacts = v.InferOutput<typeof generatorHost>;

const cluster = open({
  /** `name` is kubectl's context; the server's node and its system in round 1 are '' if unknown. */
  ...each(['name', 'serverNode', 'serverSystem'], text),
  /** Generators of each load, each on a node of its own, and the cores of each. */
  ...each(['generators', 'generatorCores'], count),
});
export type ClusterFacts = v.InferOutput<typeof cluster>;

const cpus = list(whole(0, 9999));
export const environmentForm = open({
  ...machineFields,
  bakeoff: text,
  loadAverage: v.strictTuple([figure, figure, figure], 'has to be a list of three numbers'),
  serverCpus: cpus,
  generatorCpus: cpus,
  /** CPU seconds per second that a quota allows. */
  cpuQuota: optional(figure),
  /** Warnings about these cores. */
  coreNotes: optional(texts),
  versions: v.record(text, text, 'has to be an object'),
  /** The host of the servers, if not this machine. */
  serverHost: optional(serverHost),
  /** The hosts of the generators, if not this machine. */
  generatorHosts: optional(list(generatorHost)),
  /** Where both are, if in a cluster: `serverCpus` then are the cores of each server. */
  cluster: optional(cluster),
});
export type Environment = v.InferOutput<typeof environmentForm>;

/** The smallest effect (a ratio above 1) that so many rounds tell from noise. */
const noiseFloor = open({ rounds: count, ratio: figure });
export type NoiseFloor = v.InferOutput<typeof noiseFloor>;

/** `problem`: why it has no effect. */
const kernelSetting = open({
  side: oneOf(['server', 'client']),
  name: text,
  value: text,
  problem: optional(text),
  variants: list(name),
});
export type KernelSetting = v.InferOutput<typeof kernelSetting>;

const integrity = open(each(['requests', 'stored', 'backfilled', 'lost'], count));
export type Integrity = v.InferOutput<typeof integrity>;

const perRequest = { name: text, us: figure };
/** perf's counters beside system calls. */
export const perfCounts = [
  'contextSwitches',
  'pageFaults',
  'instructions',
  'cycles',
  'cacheMisses',
  'branchMisses',
] as const;
/** A side while perf looked on; all figures are per request. */
const whySide = open({
  variant: name,
  /** Settings that differ from the baseline's; absent if there are more than two. */
  changed: optional(texts),
  /** That ended in the pass that samples CPU time. */
  requests: count,
  /** That ended in the pass that counts calls. */
  countedRequests: optional(count),
  /** CPU time in this pass, as the kernel accounts it. */
  cpuUs: figure,
  /** System calls, the most frequent first. */
  calls: list(open({ name: text, perRequest: figure })),
  /** `calls`: all system calls. The others are absent if the machine does not count them. */
  counts: open({
    calls: figure,
    ...optionalCounts(perfCounts),
  }),
  /** The largest first: a system call, other work of the kernel, an object in user space. */
  cpu: list(open({ ...perRequest, kind: oneOf(['call', 'kernel', 'user']), sdUs: figure })),
  /** The largest functions in user space with a symbol. */
  functions: list(open(perRequest)),
});
export type WhySide = v.InferOutput<typeof whySide>;
/** The parts of the CPU time. `missing`: the parts without data, a line each. */
const why = open({ missing: texts, sides: list(whySide) });
export type Why = v.InferOutput<typeof why>;

const result = open({
  schema: v.literal(schema),
  run: runName,
  scenario: name,
  title: text,
  /** What published the figures beside which ours stand. */
  article: optional(open({ id: text, title: text, date: text })),
  /** The scenario's knob, if it is all that differs. */
  knob: optional(text),
  /** A config was compared with itself: differences are noise. */
  control: optional(trueOrAbsent),
  startedAt: instant,
  endedAt: instant,
  /** 'partial': ended early; its rounds are complete. */
  state: oneOf(['complete', 'partial']),
  /** Why a run ended early, in one line; absent if nobody could write it. */
  endedBy: optional(text),
  quick: flag,
  environment: environmentForm,
  variants: list(variant),
  comparisons: list(comparison),
  /** In a search, a round is the kept step nearest to the rate found, and comparisons are of that rate. */
  search: optional(search),
  /** Metrics that --fail-if names. */
  alsoAsked: optional(list(oneOf(serverMetricNames))),
  /** Numbers of rounds after which verdicts are looked at. */
  looks: list(count),
  precision: optional(figure),
  /** The command before the servers start in each round, without credentials. */
  prepare: optional(text),
  /** Within this of 1, two variants are the same. */
  sameWithin: figure,
  noiseFloor: orNull(noiseFloor),
  kernelSettings: list(kernelSetting),
  /** null with `--store none`. */
  integrity: orNull(integrity),
  /** Absent if it was not asked for. */
  why: optional(why),
  warnings: texts,
  footnotes: texts,
});
export type Result = v.InferOutput<typeof result>;

/** result.json's text: indented, with each histogram on one line. */
export function resultJson(one: Result): string {
  const json = JSON.stringify(
    one,
    (key, value: unknown) => (key === 'histogram' ? JSON.stringify(value) : value),
    2,
  );
  // A text in JSON has no line end or bare quote, so that only keys match.
  return `${json.replaceAll(/(\n *"histogram": )("[^\n]*")(?=,?\n)/g, (_, key: string, text: string) => key + String(JSON.parse(text)))}\n`;
}

/**
 * Reads a result, with defaults for the fields that an older bakeoff did not write.
 * @throws UserError that names `file` if it is not a result of this schema
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
    `${file} is of an earlier bakeoff, or was changed: ${outcome.problem}: run it again with this one`,
  );
}
