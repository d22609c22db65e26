// What the engine gives of a load: counts, bytes and times of a side.
import * as v from 'valibot';
import {
  count,
  each,
  nonNegative,
  flag,
  instant,
  list,
  oneOf,
  open,
  optional,
  orElse,
  orNull,
  pairOf,
  text,
  trueOrAbsent,
  type Form,
} from '../form.ts';

/** `withinSd`: share of the values within sd of the mean. All 0 without values. */
const distributionFields = each(['min', 'mean', 'sd', 'withinSd', 'max'], nonNegative);
const distribution = open(distributionFields);
export type Distribution = v.InferOutput<typeof distribution>;

/** Percentiles are an HdrHistogram's of 3 digits (within 0.1 %); the others are exact. */
const latencyFields = {
  ...distributionFields,
  ...each(['p50', 'p75', 'p90', 'p95', 'p99', 'p999'], nonNegative),
};
export const latencyFigures = open(latencyFields);
export type LatencyFigures = v.InferOutput<typeof latencyFigures>;

/** `count` values took at most `atMostMs`, and longer than the bar before. */
export type HistogramBar = [atMostMs: number, count: number];
const bar: Form<HistogramBar> = v.strictTuple(
  [nonNegative, count],
  'has to be a list of a time and a count',
);
const latency = open({ ...latencyFields, histogram: orElse(list(bar), () => []) });
export type LatencyDistribution = v.InferOutput<typeof latency>;

export const byteFields = ['received', 'headers', 'headersDecoded', 'body', 'sent'] as const;
export const bucketFields = { fromMs: nonNegative, toMs: orNull(nonNegative), count };
const statusClass = oneOf(['2xx', '3xx', '4xx', '5xx']);
export type StatusClass = v.InferOutput<typeof statusClass>;
export const expected = oneOf(['2xx', '3xx', '4xx', '5xx', 'each']);
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

export const outcomeFields = {
  responses: open(each(['2xx', '3xx', '4xx', '5xx'], count)),
  /** Attempts that ended without a response. */
  errors: open(each(['connect', 'tls', 'read', 'write', 'timeout', 'protocol', 'total'], count)),
  /** They add up to errors.total. */
  errorCauses,
  /** At a rate: requests due in the window that could not leave before its end; in no other figure. */
  unsent: count,
  /** Requests `inFlight` that are older than 1 s and than twice p99.9. */
  hung: orElse(count, 0),
  /** Responses with another status than their request's. */
  unexpected: orElse(count, 0),
  /** Responses per second of each connection, until its last response. */
  perConnectionRps: distribution,
  /** Responses per second of each event loop. */
  perThreadRps: distribution,
  /** In OpenSSL's names; null without a handshake. */
  tls: orNull(open(each(['version', 'cipher', 'keyExchange'], text))),
};

/** How a side in turns was loaded. */
const turns = open({
  count,
  /** Counts these turns, with ramps and drains. */
  responses: count,
  sliceMs: nonNegative,
  /** The longest from a turn's begin to its window. */
  rampMs: nonNegative,
  /** The server waits for a backend, a timer or such. */
  waits: flag,
  /** At a rate: share of turns in which the generator stalled; most are repeated. */
  stoodStill: optional(nonNegative),
});

const continuous = open({
  ...each(['seconds', 'rps', 'p50Ms', 'p99Ms', 'queueGrowthPerSecond'], nonNegative),
  /** The server's per response; 0: unknown. */
  cpuMicros: nonNegative,
  /** Length of the whole warm-up. */
  warmupSeconds: nonNegative,
  /** `rps` per that of the warm-up's first part. */
  gain: nonNegative,
  /** It had connections of its own: not to be compared with the load after it. */
  apart: optional(trueOrAbsent),
});

const pageFigures = open({
  page: text,
  ...each(['responses', 'unexpected', 'errors', 'bodyBytes'], count),
  /** The part of bodyBytes in unexpected responses. */
  unexpectedBodyBytes: orElse(count, 0),
  ...each(['p50Ms', 'p99Ms', 'midMeanMs'], nonNegative),
  /** One request at a time: mean time of the middle half. */
  alone: optional(open({ responses: count, ms: nonNegative })),
  /** As Phase.bodyRatio, in a round's first phase; absent too if such pages are too few to matter. */
  bodyRatio: optional(nonNegative),
});
export type PageFigures = v.InferOutput<typeof pageFigures>;

export const loadFields = {
  ...outcomeFields,
  /** Greatest weights first; empty for a single page. */
  pages: orElse(list(pageFigures), []),
  /** Ended in the window: responses + errors. */
  requests: count,
  /** They ended in warm-up, ramps, drains and turns left out; in no other figure. */
  warmupRequests: count,
  /** Unanswered at the window's end; not in `requests`. */
  inFlight: count,
  /** Length of the window; a count's is from the first connect to the last response, a rate's until an interval after the last was due. */
  seconds: nonNegative,
  /** Responses in the window; at a rate those that came within it, whenever due. */
  rps: nonNegative,
  /** `rps` of the window's second half per that of its first; null if unknown, as at a rate and of a count. */
  gain: optional(orNull(nonNegative)),
  /** Responses by status, from 300 on. */
  statuses: optional(statuses),
  errorExample: optional(text),
  /** The longest time without a response while requests were under way. */
  longestGapMs: orElse(nonNegative, 0),
  /** null for a side without turns. */
  turns: orElse(orNull(turns), null),
  /** At a rate: mean growth of the queue of unanswered requests over parts of the turns. */
  queueGrowth: optional(orNull(open(each(['perSecond', 'standardError'], nonNegative)))),
  /** The warm-up's end, without turns. */
  continuous: optional(orNull(continuous)),
  /** HTTP bytes, inside TLS. `headers` as received (HPACK's blocks), `headersDecoded` names and values, `body` without framing. */
  bytes: open(each(byteFields, count)),
  /** Bodies with less than half, or more than 1.5 times, the length of the first; 0 for several pages. */
  otherBodies: orElse(count, 0),
  /** `bytes.body` by class of status; absent in older results. */
  bodyBytes: optional(open(each(['2xx', '3xx', '4xx', '5xx'], count))),
  /** From the first byte (without keep-alive the connect, at a rate the due time) to the response's last byte. */
  latencyMs: latency,
  /** TCP and TLS handshakes. */
  connectMs: latency,
  /** From a connection's start to the first byte of its first response. */
  firstByteMs: latency,
  /** At a rate the delay behind the due time; else 0. */
  sendDelayMs: latency,
  /**
   * Part of latencyMs: from the kernel's receipt of the last byte to the engine's read. 0 if unknown (HTTP/3, below 0.2 s); absent in older
   * results.
   */
  readDelayMs: optional(latency),
  /** fromMs ≤ latency < toMs (null: no end). Empty unless asked for. */
  buckets: list(open(bucketFields)),
  /** The server's limit of concurrent requests per connection (HTTP/2); null if it named none. */
  maxConcurrentStreams: orNull(count),
  startedAt: instant,
  endedAt: instant,
  /** On CLOCK_MONOTONIC. */
  monotonicMs: orElse(pairOf(nonNegative), () => [0, 0] as [number, number]),
  /** The whole k6 process's in the window. */
  cpuSeconds: nonNegative,
};
const loadResult = open(loadFields);

/** What `loadgen.run` returns, and `loadgen.alternate` for each side. */
export interface LoadResult extends v.InferOutput<typeof loadResult> {
  /**
   * The use of the processes in SideOptions.cpuOf; null without them. `seconds` in its turns, ramps and drains included; `idleShare` in cores
   * during others' turns (0 without turns). `gain`: responses per CPU time of the second half per those of the first, 0 if unknown.
   * `cores`: CPU seconds on its cores in its turns, which took `seconds`; `stolen` by the host; all 0 if unknown. `waits`: seconds in which
   * threads waited for a core, summed over the server's and the mean of the generator's, with the host's; null if unknown.
   */
  serverCpu?: {
    seconds: number;
    idleShare: number;
    gain?: number;
    cores: {
      seconds: number;
      processes: number;
      interrupts: number;
      servers: number;
      stolen: number;
      waits: { server: number; generator: number } | null;
    };
  } | null;
  /** At the window's end; null if unknown. */
  serverMemoryBytes?: number | null;
  /** Sums over all connections, each as of its close. */
  wire?: Record<(typeof wireNames)[number], number>;
}

/** Per request. `resumed` are handshakes; segments and bytes, with IP's and TCP's headers, are TCP's counts; `Out`: to the server. */
export const wireNames = [
  'connections',
  'handshakes',
  'resumed',
  'segmentsOut',
  'segmentsIn',
  'resentSegments',
  'wireBytesOut',
  'wireBytesIn',
] as const;
