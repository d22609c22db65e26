// What the engine gives of a load: counts, bytes and times of a side.
import * as v from 'valibot';
import {
  count,
  each,
  nonNegative,
  signed,
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

/** `sd` is the standard deviation, `withinSd` the share of values within sd of the mean (0 to 1). All 0 without values. */
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

/** Fields of a phase, and of a phase over all rounds. */
export const outcomeFields = {
  responses: open(each(['2xx', '3xx', '4xx', '5xx'], count)),
  /** Attempts that ended without a response. */
  errors: open(each(['connect', 'tls', 'read', 'write', 'timeout', 'protocol', 'total'], count)),
  /** The same attempts by cause; they add up to errors.total. */
  errorCauses,
  /** At a rate: requests due in the window that could not leave before its end; in no other figure. */
  unsent: count,
  /** Requests of `inFlight` older than 1 s and than twice p99.9: the server probably dropped them. */
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
  sliceMs: nonNegative,
  /** The longest from a turn's begin to its window. */
  rampMs: nonNegative,
  /** The server waits for a backend, a timer or such. */
  waits: flag,
  /** At a rate: share of turns (0 to 1) in which the generator stalled; most are left out and repeated. */
  stoodStill: optional(nonNegative),
});

const continuous = open({
  ...each(['seconds', 'rps', 'p50Ms', 'p99Ms'], nonNegative),
  /** Negative if the queue got shorter. */
  queueGrowthPerSecond: signed,
  /** CPU time of the server per response, in microseconds; 0: unknown. */
  cpuMicros: nonNegative,
  /** Length of the whole warm-up. */
  warmupSeconds: nonNegative,
  /** `rps` as a multiple of that of the warm-up's first part. */
  gain: nonNegative,
  /** The warm-up had connections of its own, and the load after it, a number of requests, opened others: not to be compared by speed. */
  apart: optional(trueOrAbsent),
});

/** A page of a mix: a path, with a method other than GET before it. */
const pageFigures = open({
  page: text,
  ...each(['responses', 'unexpected', 'errors', 'bodyBytes'], count),
  /** The part of bodyBytes in unexpected responses. */
  unexpectedBodyBytes: orElse(count, 0),
  ...each(['p50Ms', 'p99Ms', 'midMeanMs'], nonNegative),
  /** Its answers with one request at a time, and the mean time of their middle half, in milliseconds. */
  alone: optional(open({ responses: count, ms: nonNegative })),
  /** The same as Phase.bodyRatio, in a round's first phase. It is also absent if the pages with other bodies are too few of the load to matter. */
  bodyRatio: optional(nonNegative),
});
export type PageFigures = v.InferOutput<typeof pageFigures>;

export const loadFields = {
  ...outcomeFields,
  /** The greatest weights first; empty for a single page. */
  pages: orElse(list(pageFigures), []),
  /** Attempts that ended in the window: responses + errors. */
  requests: count,
  /** Attempts that ended in the warm-up, ramps, drains and turns left out; in no other figure. */
  warmupRequests: count,
  /** Requests without an answer at the window's end; not in `requests`. */
  inFlight: count,
  /**
   * Length of the window; for a count of requests, from the first connect to the last response, at a rate until an interval after the last
   * one was due.
   */
  seconds: nonNegative,
  /** Responses per second in the window; at a rate those that came within it, or the turns, whenever they were due. */
  rps: nonNegative,
  /** `rps` of the window's second half as a multiple of that of its first; null if not known, as at a rate and of a count of requests. */
  gain: optional(orNull(nonNegative)),
  /** Responses by status, from 300 on. */
  statuses: optional(statuses),
  /** Text of an error; '' without errors. */
  errorExample: optional(text),
  /** The longest time in the window without a response while requests were under way. */
  longestGapMs: orElse(nonNegative, 0),
  /** null for a side without turns. */
  turns: orElse(orNull(turns), null),
  /** At a rate: the mean growth of the queue of requests without an answer, in requests per second, over parts of the turns; else null. */
  queueGrowth: optional(orNull(open({ perSecond: signed, standardError: nonNegative }))),
  /** The end of the warm-up, which is load without turns; null without a warm-up. */
  continuous: optional(orNull(continuous)),
  /**
   * HTTP bytes; with TLS, inside the records. `headers` as received (HPACK's blocks), `headersDecoded` the size of names and
   * values, `body` without framing and padding, `received` and `sent` everything.
   */
  bytes: open(each(byteFields, count)),
  /** Bodies with less than half, or more than 1.5 times, the length of the first; 0 for several pages. */
  otherBodies: orElse(count, 0),
  /** `bytes.body` by class of status; absent in older results. */
  bodyBytes: optional(open(each(['2xx', '3xx', '4xx', '5xx'], count))),
  /** From a request's first byte (without keep-alive: its connect; at a rate: when it was due) to its response's last byte. */
  latencyMs: latency,
  /** TCP and TLS handshakes of each connection. */
  connectMs: latency,
  /** From a connection's start to the first byte of its first response. */
  firstByteMs: latency,
  /** Delay of requests at a rate behind their due time. All 0 without a rate. */
  sendDelayMs: latency,
  /**
   * The last part of latencyMs, from the kernel's receipt of a response's last byte to the engine's read, of some responses. All 0 if not
   * known (HTTP/3, a window below 0.2 s); absent in older results.
   */
  readDelayMs: optional(latency),
  /** Responses with fromMs ≤ latency < toMs (null: no upper end). Empty unless asked for. */
  buckets: list(open(bucketFields)),
  /** The server's limit of concurrent requests per connection (HTTP/2); null if it named none. */
  maxConcurrentStreams: orNull(count),
  /** Begin and end of the window, ISO 8601. */
  startedAt: instant,
  endedAt: instant,
  /** The same on CLOCK_MONOTONIC, as process.hrtime reads it. */
  monotonicMs: orElse(pairOf(nonNegative), () => [0, 0] as [number, number]),
  /** CPU seconds of the whole k6 process in the window. */
  cpuSeconds: nonNegative,
};
const loadResult = open(loadFields);

/** What `loadgen.run` returns, and `loadgen.alternate` for each side. */
export interface LoadResult extends v.InferOutput<typeof loadResult> {
  /**
   * CPU time of the processes in SideOptions.cpuOf; null without them. `seconds` in the side's turns, ramps and drains included;
   * `idleShare` in cores, during the turns of others (0 for a side without turns). `gain`: responses per CPU time of the window's second
   * half as a multiple of those of its first, 0 if unknown. `cores`: CPU seconds on its cores in its turns, which took `seconds`: of all
   * processes, of interrupts, of all sides' servers, and `stolen` by the host; all 0 if unknown. `waits`: seconds in which threads waited
   * for a core, summed over the server's and the mean of the generator's, with what the host took of its cores; null if unknown.
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
  /** The memory of the same processes at the window's end, like memoryBytes of a round; null if unknown. */
  serverMemoryBytes?: number | null;
  /** Counts of all its connections, warm-up included, each as of its close. */
  wire?: Record<(typeof wireNames)[number], number>;
}

/**
 * What the load's connections had on the wire per request. `resumed` are TLS handshakes that resumed a session; segments and bytes, with
 * the headers of IP and TCP, are TCP's own counts, to the server (`Out`) and from it. `dataSegmentsIn` counts segments with bytes of an answer
 * or a handshake: how many mere ACKs there are depends on how late a program reads.
 */
export const wireNames = [
  'connections',
  'handshakes',
  'resumed',
  'segmentsOut',
  'segmentsIn',
  'dataSegmentsIn',
  'resentSegments',
  'wireBytesOut',
  'wireBytesIn',
] as const;
