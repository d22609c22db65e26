// The format of result.json (schema 1), which may come from another machine or an older bakeoff.
import * as v from 'valibot';
import {
  count,
  each,
  nonNegative,
  flag,
  instant,
  isObject,
  list,
  name,
  oneOf,
  open,
  optional,
  orElse,
  orNull,
  pairOf,
  ratio,
  signed,
  text,
  texts,
  trueOrAbsent,
  integer,
  within,
  type Form,
} from '../form.ts';
import { byName } from '../present.ts';
import { latencyMetrics } from '../scenario/latency-metrics.ts';
import { mostRounds, protocol, withinForm } from '../scenario/model.ts';
import { publishedForm } from '../scenario/published.ts';
import { environmentForm } from './environment.ts';
import {
  bucketFields,
  byteFields,
  expected,
  latencyFigures,
  loadFields,
  outcomeFields,
  wireNames,
} from './load-result.ts';
import { networkFigures, networkUse } from './network-use.ts';
import { serverFields, serverMetricNames } from './server-metrics.ts';
import { why } from './why.ts';

export const schema = 1;

const median = open({ median: nonNegative });
/** Repeated rounds count. */
const roundNumber = integer(1, 10 * mostRounds);
const runName = v.pipe(
  text,
  v.regex(/^[A-Za-z0-9-]{1,230}$/, 'may have letters, digits and - only'),
);
/** A server, command or host; part of paths. */
const program = v.pipe(text, v.regex(/^(?!\.\.?$)[^/\p{Cc}]{1,255}$/u, 'may have no / in it'));
const readonlyTexts: Form<readonly string[]> = texts;

/** Others' use in a phase's window, as shares of the time of a side's cores. */
const noise = open({
  /** Taken by the hypervisor. The generator's is 0 if other hosts make the load. */
  serverStealShare: nonNegative,
  generatorStealShare: nonNegative,
  /** Use of the server's cores, but by the server (and the generator on shared cores). */
  serverOthersShare: nonNegative,
  /** Use of the generator's cores, but by k6, its link, the runner and servers on shared cores. */
  generatorOthersShare: orElse(nonNegative, 0),
  /** Its backends' use of its cores; in no share above. null: unknown, and in serverOthersShare. */
  upstreamShare: optional(orNull(nonNegative)),
  /** Taken from the server's cores in the worst span as long as its longest pause; absent without one. */
  duringPause: optional(nonNegative),
  /** The minute's average at the end. */
  loadAverage: nonNegative,
  /** Mean clock of the server's cores, at begin and end; null if unknown. */
  serverMhz: orNull(pairOf(nonNegative)),
});
export type Noise = v.InferOutput<typeof noise>;

/** What a request used in the server, connects and warm-up included; bytes are of system calls. */
export const counterNames = [
  'userCpuUs',
  'systemCpuUs',
  'voluntarySwitches',
  'involuntarySwitches',
  'pageFaults',
  'readBytes',
  'writtenBytes',
] as const;

const phase = open({
  ...loadFields,
  /** The class that succeeds; `each`: each request has its own. Absent: 2xx and 3xx. */
  expected: optional(expected),
  /** CPU time of responses in the window; null for an address. */
  serverCpuSeconds: orNull(nonNegative),
  serverRssBytes: orNull(nonNegative),
  /** Cores that it used while other sides were loaded; null if unknown. */
  idleCpuShare: orElse(orNull(nonNegative), null),
  /** Responses per CPU time in the second half of its turns per those in the first; absent if unknown. */
  cpuGain: optional(nonNegative),
  /** Its tasks' wait for a core, as a share of its cores; absent if unknown. */
  waitedShare: optional(nonNegative),
  /** Use of its cores by others and the host; absent if unknown or perhaps a backend's. */
  othersShare: optional(nonNegative),
  /** The generator's wait for cores that others used, as a share of the turns, at most the server's idle time; absent if unknown. */
  generatorWaitedShare: optional(nonNegative),
  /** Share of samples in which one of its processes was stopped; absent if unknown. */
  stoppedShare: optional(nonNegative),
  /** `counterNames` are absent for a server that was not started here. */
  perRequest: optional(open(each([...counterNames, ...wireNames], optional(nonNegative)))),
  /**
   * Its overflows in the round's whole load, and its length (listen(2)). Without `backlog` (no ss) others' are counted. Absent for a server
   * elsewhere.
   */
  acceptQueue: optional(open({ overflows: count, backlog: optional(count) })),
  /** Who else had connections to it: another side's name, '' for another program. */
  alsoLoadedBy: optional(text),
  /** Cores beside the servers' for its threads; absent without any, and if unknown. */
  otherCpus: optional(list(count)),
  /** Mean length of bodies per that of the page before; absent if alike or unknown, and if a mix's pages have it. */
  bodyRatio: optional(nonNegative),
  /** Kinds of trouble in nginx's log of the round; absent without any, or below the level info. */
  clientErrors: optional(v.record(text, count, 'has to be an object')),
  generatorCpuSeconds: nonNegative,
  /** null without /proc/stat's, and for an address. */
  noise: orNull(noise),
  /** null on loopback. */
  network: orNull(networkUse),
});
export type Phase = v.InferOutput<typeof phase>;

const round = open({
  round: roundNumber,
  phases: list(phase),
  ...each(serverFields, optional(nonNegative)),
});
export type Round = v.InferOutput<typeof round>;

/** Medians over rounds. `headerSavingsPercent`: 100 · (1 − headers / headersDecoded). */
const trafficFields = {
  ...each(['requests', 'seconds', 'receivedBytesPerSecond'], nonNegative),
  bytes: open(each(byteFields, nonNegative)),
  headerSavingsPercent: orNull(signed),
};
const traffic = open(trafficFields);
export type Traffic = v.InferOutput<typeof traffic>;

const bucketShare = open({ ...bucketFields, share: nonNegative });
export type BucketShare = v.InferOutput<typeof bucketShare>;

/** Counts are sums, times are of all values. Per connection and thread, `min` and `max` are over all rounds, others means. */
const phaseResult = open({
  ...trafficFields,
  ...outcomeFields,
  expected: optional(expected),
  ...each(['latencyMs', 'connectMs', 'firstByteMs', 'sendDelayMs'], latencyFigures),
  readDelayMs: optional(latencyFigures),
  phase: integer(1, 100),
  rps: median,
  /** Per request, hung ones included; null without requests. */
  successRatio: orNull(nonNegative),
  buckets: list(bucketShare),
});
export type PhaseResult = v.InferOutput<typeof phaseResult>;

/**
 * The fitted load (Load) with its page: only fields that are read are checked, as another bakeoff may have written it. `command` and
 * `asWritten`: before the fit.
 */
const load = v.pipe(
  v.custom<Record<string, unknown>>(isObject, 'has to be an object'),
  v.objectWithRest(
    {
      command: optional(text),
      protocol,
      threads: count,
      ...each(
        ['connections', 'streams', 'rate', 'durationSeconds', 'requests', 'pages'],
        optional(nonNegative),
      ),
      searched: optional(trueOrAbsent),
      together: optional(trueOrAbsent),
      tls: optional(open({ resume: optional(nonNegative) })),
      asWritten: optional(
        open({ threads: count, ...each(['durationSeconds', 'requests'], optional(nonNegative)) }),
      ),
    },
    v.unknown(),
    'is missing',
  ),
);

/** Very different rounds can give infinite bounds. */
const bound = within(0, Number.MAX_VALUE);
const ci95 = pairOf(bound);
const ratioFields = { ratio: nonNegative, ci95 };

/** Figures are null for a variant not run here. */
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
      /** It ran already, on unknown cores. */
      atAddress: optional(trueOrAbsent),
    }),
  ),
  publishedOnly: optional(text),
  load,
  /** Content-Encoding and Content-Type of its first answer, '' without. */
  answer: optional(open(each(['encoding', 'type'], text))),
  published: orNull(publishedForm(open)),
  note: optional(text),
  series: optional(name),
  rounds: list(round),
  rps: orNull(median),
  /** Per response; null for an address. */
  serverCpuMicrosPerRequest: orNull(median),
  /** Over all responses. */
  latencyMs: orNull(open(each(['p50', 'p99', 'max'], nonNegative))),
  /** Per ended attempt. */
  errorsPerMillion: orNull(nonNegative),
  successRatio: orNull(nonNegative),
  /**
   * Median share of the CPU: of its workers' cores without others' time, or of all its cores with the link, if that is more. null for an
   * address.
   */
  ...each(['serverShare', 'generatorShare'], orNull(nonNegative)),
  /** null on loopback. */
  network: orNull(networkFigures),
  /** Requests/s per those of continuous load; absent without turns, and at a rate. */
  turnsAgainstContinuous: optional(open(ratioFields)),
  /** Over a round's phases. */
  traffic: orNull(traffic),
  phases: list(phaseResult),
});
export type VariantResult = v.InferOutput<typeof variant>;

const metric = oneOf(['rps', 'cpu', ...latencyMetrics, ...serverMetricNames]);
export type Metric = v.InferOutput<typeof metric>;
const verdict = oneOf(['faster', 'slower', 'same', 'inconclusive', 'none']);
export type Verdict = v.InferOutput<typeof verdict>;

/** By another metric; 'none' if only the ratio was asked for. */
const besideRatio = open({ ...ratioFields, verdict });
export type BesideRatio = v.InferOutput<typeof besideRatio>;

/** `ratio`: exp(mean ln(variant / baseline)); `ci95` holds for all comparisons and looks (docs/verdicts.md). 0: nothing to compare. */
const comparison = open({
  ...ratioFields,
  metric,
  variant: name,
  baseline: name,
  verdict,
  why: text,
  publishedRatio: orNull(nonNegative),
  /** It has a verdict where it decides, and where requests/s do and both servers were at their limit. */
  cpu: orNull(open({ ...ratioFields, verdict: orElse(verdict, 'none') })),
  /** null if a round has fewer than 10 slower responses. */
  latency: orElse(open(each(latencyMetrics, orNull(besideRatio))), () =>
    byName(latencyMetrics, () => null),
  ),
  /** They have a verdict where asked for. */
  ofServer: optional(open(each(serverMetricNames, optional(besideRatio)))),
  /** In the order of rounds; empty without a comparison. */
  roundRatios: v.pipe(list(ratio), v.maxLength(mostRounds, `has more than ${mostRounds}`)),
  /** Rounds far from the others; they count. */
  outliers: list(roundNumber),
  /** The only outlier, if the verdict depends on it. */
  swayedBy: orElse(orNull(open({ round: roundNumber, without: verdict })), null),
  /** Rounds that would decide an inconclusive comparison; null if too many. */
  roundsNeeded: orNull(nonNegative),
  /** Why requests/s and CPU per request disagree; '' if they agree. */
  disagreement: text,
  /** Variants whose link did not keep the delay. */
  delayNotHeld: texts,
  /** The largest of a mix, by the time of an answer alone. Intervals hold together. */
  pages: optional(list(open({ page: text, ...ratioFields, verdict }))),
});
export type Comparison = v.InferOutput<typeof comparison>;

const rateStep = open({
  round: roundNumber,
  variant: name,
  /** Requests/s asked for, and answered. */
  ...each(['rate', 'made'], nonNegative),
  /** From the due time, unanswered requests included. */
  latencyMs: open(each(latencyMetrics, nonNegative)),
  kept: flag,
  /** Why the limit was not kept; '' if it was. */
  why: text,
});
export type RateStep = v.InferOutput<typeof rateStep>;

/** Geometric mean in requests/s; an interval from 4 rounds. */
const foundRate = open({ variant: name, rate: nonNegative, ci95: orNull(ci95), atLeast: flag });
export type FoundRate = v.InferOutput<typeof foundRate>;

/** `steps` in the order tried; those of an unfinished round last. */
const search = open({
  within: withinForm(open),
  found: list(foundRate),
  steps: list(rateStep),
});
export type Search = v.InferOutput<typeof search>;

/** `ratio`: the smallest above 1 that is told from noise. */
const noiseFloor = open({ rounds: count, ratio: nonNegative });
export type NoiseFloor = v.InferOutput<typeof noiseFloor>;

const dropped = open({
  round: roundNumber,
  why: text,
  /** By variant, of loads that ended; empty for a load in steps. */
  rps: v.record(text, nonNegative, 'has to be an object'),
  /** Until a later round showed that nothing was measured right. */
  counted: optional(trueOrAbsent),
});
export type DroppedRound = v.InferOutput<typeof dropped>;

/** `problem`: why it has no effect. */
const kernelSetting = open({
  side: oneOf(['server', 'client']),
  name: text,
  value: text,
  problem: optional(text),
  variants: list(name),
});
export type KernelSetting = v.InferOutput<typeof kernelSetting>;

const pointIntegrity = open({
  ...each(['written', 'stored', 'backfilled', 'lost'], count),
  lacking: optional(texts),
  /** The database's first refusal. */
  reason: optional(text),
  failedWrites: optional(count),
});
export type PointIntegrity = v.InferOutput<typeof pointIntegrity>;

/** `backfilled`: missing, and written again. */
const integrity = open({
  ...each(['requests', 'stored', 'backfilled', 'lost'], count),
  /** Absent if k6's record is not at hand. */
  points: optional(pointIntegrity),
});
export type Integrity = v.InferOutput<typeof integrity>;

const loadedAlone = list(open({ variant: name, phase }));
export const resultForm = open({
  schema: v.literal(schema),
  run: runName,
  scenario: name,
  title: text,
  article: optional(open({ id: text, title: text, date: text })),
  /** If it is all that differs. */
  knob: optional(text),
  /** Differences are noise. */
  control: optional(trueOrAbsent),
  startedAt: instant,
  endedAt: instant,
  /** 'partial': ended early, with complete rounds. */
  state: oneOf(['complete', 'partial']),
  /** A line; absent if nobody could write it. */
  endedBy: optional(text),
  quick: flag,
  environment: environmentForm,
  variants: list(variant),
  /** They are in no other figure. */
  dropped: optional(list(dropped)),
  comparisons: list(comparison),
  /** A round is then the kept step nearest to the rate found. */
  search: optional(search),
  /** Metrics that --fail-if names. */
  alsoAsked: optional(list(oneOf(serverMetricNames))),
  /** Rounds after which verdicts are looked at. */
  looks: list(count),
  /** Runs that share the chance of a false verdict. */
  together: optional(count),
  precision: optional(nonNegative),
  /** Without credentials. */
  prepare: optional(text),
  /** Sides are the same within this of 1. */
  sameWithin: nonNegative,
  noiseFloor: orNull(noiseFloor),
  kernelSettings: list(kernelSetting),
  /** null with `--store none`. */
  integrity: orNull(integrity),
  /** Loaded alone after the rounds. `again`: once more, as the first loads did not agree with the rounds. `missing`: why others were not. */
  alone: optional(open({ sides: loadedAlone, again: optional(loadedAlone), missing: texts })),
  why: optional(why),
  warnings: texts,
  footnotes: texts,
});
export type Result = v.InferOutput<typeof resultForm>;
