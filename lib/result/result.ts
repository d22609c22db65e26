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
import { findingForm } from './finding.ts';
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
import { counted } from './counts.ts';
import { why } from './why.ts';

export const schema = 1;

const median = open({ median: nonNegative });
/** Repeated rounds have numbers of their own, so the numbers may exceed the number of rounds. */
const roundNumber = integer(1, 10 * mostRounds);
const runName = v.pipe(
  text,
  v.regex(/^[A-Za-z0-9-]{1,230}$/, 'may have letters, digits and - only'),
);
/** A server's, a command's or a host's name; part of paths. */
const program = v.pipe(text, v.regex(/^(?!\.\.?$)[^/\p{Cc}]{1,255}$/u, 'may have no / in it'));
const readonlyTexts: Form<readonly string[]> = texts;

/** Other use of the machine in a phase's window, as shares (0 to 1) of the time of a side's cores. */
const noise = open({
  /** Taken by the hypervisor. Shares of the generator's cores are 0 if other hosts make the load. */
  serverStealShare: nonNegative,
  generatorStealShare: nonNegative,
  /** Used on the server's cores, except by the server (and the generator on shared cores). */
  serverOthersShare: nonNegative,
  /** Used on the generator's cores, except by k6, its link, the runner and servers on shared cores. */
  generatorOthersShare: orElse(nonNegative, 0),
  /** Used on the server's cores by its backends; in no share above. null: unknown, and in serverOthersShare. */
  upstreamShare: optional(orNull(nonNegative)),
  /**
   * The share of the server's usable cores that the host or others took in the worst span as long as its longest pause; absent without
   * such a pause.
   */
  duringPause: optional(nonNegative),
  /** Load average of one minute at the window's end. */
  loadAverage: nonNegative,
  /** Mean clock of the server's cores, at begin and end; null if unknown. */
  serverMhz: orNull(pairOf(nonNegative)),
});
export type Noise = v.InferOutput<typeof noise>;

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

/** A load phase of a round. */
const phase = open({
  ...loadFields,
  /** The class of status that succeeds; `each`: each request has a status of its own. If absent, these are 2xx and 3xx. */
  expected: optional(expected),
  /** CPU time of all its processes for the responses in the window; null for an address. */
  serverCpuSeconds: orNull(nonNegative),
  serverRssBytes: orNull(nonNegative),
  /** Cores that the server used while other sides were loaded; null if unknown. */
  idleCpuShare: orElse(orNull(nonNegative), null),
  /** Responses per CPU time of the server in the second half of its turns as a multiple of those in the first; absent if unknown. */
  cpuGain: optional(nonNegative),
  /** The wait of the server's tasks for a core in its turns, as a share of the cores that it can use; absent if unknown. */
  waitedShare: optional(nonNegative),
  /** The use of these cores by other programs and the host in its turns; absent if unknown or if it may be a backend's. */
  othersShare: optional(nonNegative),
  /**
   * The wait of the generator's threads for cores that other programs or the host used, as a share of the side's turns and no more than
   * the server had time left; absent if unknown.
   */
  generatorWaitedShare: optional(nonNegative),
  /** Share of the samples in which a process of the server was stopped; absent if unknown. */
  stoppedShare: optional(nonNegative),
  /** `counterNames` are absent where the server was not started on this machine. */
  perRequest: optional(open(each([...counterNames, ...wireNames], optional(nonNegative)))),
  /**
   * How often the server's accept queue overflowed in the round's whole load, connects and warm-up included, and how long it is
   * (listen(2)). Without `backlog` (no ss) other sides' overflows are in the count. Absent where the server did not run on this machine.
   */
  acceptQueue: optional(open({ overflows: count, backlog: optional(count) })),
  /**
   * Who else had connections to the server in the round's whole load: the name of another side, '' for another program. Absent if
   * nobody did, as far as is known.
   */
  alsoLoadedBy: optional(text),
  /** Cores beside the servers' on which its threads might run in the round's whole load; absent without any, and if unknown. */
  otherCpus: optional(list(count)),
  /**
   * Mean length of the round's bodies, divided by that of the page that was checked before; absent if they are alike, or unknown, and where
   * the pages of a mix have such ratios.
   */
  bodyRatio: optional(nonNegative),
  /** How often each kind of trouble with clients is in nginx's log of the whole round; absent without any, or below the level info. */
  clientErrors: optional(v.record(text, count, 'has to be an object')),
  generatorCpuSeconds: nonNegative,
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

/** `share` of the responses, 0 to 1. */
const bucketShare = open({ ...bucketFields, share: nonNegative });
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
  readDelayMs: optional(latencyFigures),
  /** Counted from 1. */
  phase: integer(1, 100),
  rps: median,
  /** Successes per request, hung ones included; null without requests. */
  successRatio: orNull(nonNegative),
  buckets: list(bucketShare),
});
export type PhaseResult = v.InferOutput<typeof phaseResult>;

/**
 * The load as fitted to this machine (Load), with its page. Another bakeoff may have written it, so only the fields that are read are
 * checked. `command` and `asWritten`: before the fit. `searched`: at the rates of a search. `together`: latencies are of pages. `tls` is
 * what the client offers.
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
      /** It ran already, on unknown cores. */
      atAddress: optional(trueOrAbsent),
    }),
  ),
  /** Why it cannot be run here. */
  publishedOnly: optional(text),
  load,
  /** The headers Content-Encoding and Content-Type of its first answer; '' without. */
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
  latencyMs: orNull(open(each(['p50', 'p99', 'max'], nonNegative))),
  /** Per ended attempt. */
  errorsPerMillion: orNull(nonNegative),
  successRatio: orNull(nonNegative),
  /**
   * Median share (0 to 1) of the available CPU: of the cores of its workers or threads, without others' time; or of
   * all its cores with the network's link, if that is more. The server's is null for an address.
   */
  ...each(['serverShare', 'generatorShare'], orNull(nonNegative)),
  /** null on loopback. */
  network: orNull(networkFigures),
  /** Requests/s in turns as a multiple of those of continuous load; absent without turns, and at a rate. */
  turnsAgainstContinuous: optional(open(ratioFields)),
  /** Over all phases of a round. */
  traffic: orNull(traffic),
  phases: list(phaseResult),
});
export type VariantResult = v.InferOutput<typeof variant>;

const metric = oneOf(['rps', 'cpu', ...latencyMetrics, ...serverMetricNames]);
/** Responses per second, the server's CPU time per response, a percentile of the latency, or one of its server. */
export type Metric = v.InferOutput<typeof metric>;
const verdict = oneOf(['faster', 'slower', 'same', 'inconclusive', 'none']);
export type Verdict = v.InferOutput<typeof verdict>;
/** The codes of what prevents a verdict. lib/analysis/judgement.ts has the facts of each, lib/report/reasons.ts the words. */
const obstacleCode = oneOf([
  'alsoLoaded',
  'belowRate',
  'failing',
  'generatorLimit',
  'hanging',
  'needsCores',
  'needsRounds',
  'noFigures',
  'oneRate',
  'oneSided',
  'otherBodies',
  'otherCpus',
  'otherFiles',
  'publishedOnly',
  'sameSetup',
  'severalBodies',
  'stalled',
]);

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
  /** The reason for the verdict in words: the interval, or what prevents a verdict. */
  why: text,
  /** The code of what prevents a verdict; absent if the interval decides. */
  obstacle: optional(obstacleCode),
  publishedRatio: orNull(nonNegative),
  /** CPU time per request. It has a verdict where requests/s decide and both servers were at their limit, and where it decides. */
  cpu: orNull(open({ ...ratioFields, verdict: orElse(verdict, 'none') })),
  /** null if a round has fewer than 10 slower responses. */
  latency: orElse(open(each(latencyMetrics, orNull(besideRatio))), () =>
    byName(latencyMetrics, () => null),
  ),
  /** The server metrics that are known. If a metric was asked for, it has a verdict. */
  ofServer: optional(open(each(serverMetricNames, optional(besideRatio)))),
  /** Why other metrics have no verdict although the comparison's own metric has one. */
  obstacles: optional(list(open({ metric, why: text, obstacle: optional(obstacleCode) }))),
  /** Ratios in the order of the rounds; empty if there is no comparison. */
  roundRatios: v.pipe(list(ratio), v.maxLength(mostRounds, `has more than ${mostRounds}`)),
  /** Rounds whose ratio is far from the others; they count. */
  outliers: list(roundNumber),
  /** The only outlier, if the verdict depends on it. */
  swayedBy: orElse(orNull(open({ round: roundNumber, without: verdict })), null),
  /** Rounds that would probably decide an inconclusive comparison; null if too many. */
  roundsNeeded: orNull(nonNegative),
  /** Why requests/s and CPU per request disagree; '' if they agree. */
  disagreement: text,
  /** Variants whose link did not keep the delay. */
  delayNotHeld: texts,
  /** The largest pages of a mix, by the time of an answer alone. The intervals of all hold together. */
  pages: optional(list(open({ page: text, ...ratioFields, verdict }))),
});
export type Comparison = v.InferOutput<typeof comparison>;

/** A variant at a rate of a load in steps. */
const rateStep = open({
  round: roundNumber,
  variant: name,
  /** Requests/s asked for, and answered. */
  ...each(['rate', 'made'], nonNegative),
  /** Latency from the due time, unanswered requests included. */
  latencyMs: open(each(latencyMetrics, nonNegative)),
  kept: flag,
  /** Why the limit was not kept, as a clause; '' if it was. */
  why: text,
});
export type RateStep = v.InferOutput<typeof rateStep>;

/** Geometric mean in requests/s; an interval from 4 rounds. */
const foundRate = open({ variant: name, rate: nonNegative, ci95: orNull(ci95), atLeast: flag });
export type FoundRate = v.InferOutput<typeof foundRate>;

/** `steps` are in the order in which they were tried; those of an unfinished round come last. */
const search = open({
  within: withinForm(open),
  found: list(foundRate),
  steps: list(rateStep),
});
export type Search = v.InferOutput<typeof search>;

/** The smallest effect (a ratio above 1) that so many rounds tell from noise. */
const noiseFloor = open({ rounds: count, ratio: nonNegative });
export type NoiseFloor = v.InferOutput<typeof noiseFloor>;

const dropped = open({
  round: roundNumber,
  /** Absent in results of earlier versions. */
  cause: optional(findingForm),
  /** Requests/s by variant, of loads that came to an end; empty for a load in steps. */
  rps: v.record(text, nonNegative, 'has to be an object'),
  /** The round counted until a later one showed that the rounds so far were not measured right. */
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
  /** Measurements that lack points. */
  lacking: optional(texts),
  /** Why points are lost: the database's first refusal. */
  reason: optional(text),
  /** Batches of points that k6 itself could not write. */
  failedWrites: optional(count),
});
export type PointIntegrity = v.InferOutput<typeof pointIntegrity>;

/** `backfilled`: written again, because they were missing. */
const integrity = open({
  ...each(['requests', 'stored', 'backfilled', 'lost'], count),
  /** Points of all measurements at the run's end; absent if k6's record is not at hand to count them. */
  points: optional(pointIntegrity),
});
export type Integrity = v.InferOutput<typeof integrity>;

const loadedAlone = list(open({ variant: name, phase }));
export const resultForm = open({
  schema: v.literal(schema),
  run: runName,
  scenario: name,
  title: text,
  /** The article whose published figures are shown beside ours. */
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
  /** Rounds that are in no other figure; absent if there are none. */
  dropped: optional(list(dropped)),
  comparisons: list(comparison),
  /** In a search, a round is the kept step nearest to the rate found, and comparisons are of that rate. */
  search: optional(search),
  /** Metrics that --fail-if names. */
  alsoAsked: optional(list(oneOf(serverMetricNames))),
  /** Numbers of rounds after which verdicts are looked at. */
  looks: list(count),
  /** The number of runs that share the chance of a false verdict; absent: this run alone. */
  together: optional(count),
  precision: optional(nonNegative),
  /** The command before the servers start in each round, without credentials. */
  prepare: optional(text),
  /** Two variants are the same if their ratio is within this of 1 (0.01 is ±1 %). */
  sameWithin: nonNegative,
  noiseFloor: orNull(noiseFloor),
  kernelSettings: list(kernelSetting),
  /** null with `--store none`, and until the end of a run. */
  integrity: orNull(integrity),
  /**
   * Sides that were loaded alone after the rounds; absent if none was. `again`: second loads, made because the first did not agree with the
   * rounds. `missing`: why others were not loaded, a line each.
   */
  alone: optional(open({ sides: loadedAlone, again: optional(loadedAlone), missing: texts })),
  /** The causes of differences; absent if they were not asked for. */
  why: optional(why),
  /** Instead of rounds (--counts). */
  counts: optional(counted),
  /** What the run found; empty in results of earlier versions. */
  findings: orElse(list(findingForm), () => []),
  /** The same in sentences. Several findings may be in one. */
  warnings: texts,
  footnotes: texts,
});
export type Result = v.InferOutput<typeof resultForm>;
