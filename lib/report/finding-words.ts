// A sentence for each finding, with a next step.
import { extent, groupedBy } from '../analysis/statistics.ts';
import {
  coreCount,
  counts,
  effect,
  enumeration,
  formatCpuList,
  hundredths,
  percent,
  scaledTime,
  variantsText,
  whole,
} from '../format.ts';
import { quotaHelp } from '../machine/cores.ts';
import type {
  AnyFinding,
  ColdSide,
  CoreUse,
  Finding,
  HoldUp,
  InRounds,
} from '../result/finding.ts';
import type { Result } from '../result/result.ts';
import {
  answersTexts,
  errorsTexts,
  failureCause,
  hungText,
  overflowText,
  rateCause,
} from './causes.ts';
import { coresText, oneSidedText, remedies, strangerText } from './reasons.ts';

/** @param who the variants with such a finding @param all the number of variants in the run */
type Template<F> = (finding: F, who: string, all: number) => string;

/** A template for each code. */
export type Templates<F extends AnyFinding> = {
  [Code in F['code']]: Template<Extract<F, { code: Code }>>;
};

/** Templates of features, by code. */
export type AnyTemplates = Readonly<Record<string, Template<never>>>;

const moreCores = 'give the generator more cores (--generator-cpus) or the load more threads';
const coreFlags = '(--server-cpus, --generator-cpus)';
const noiseIsIn = "the machine's noise is in their ratios";
const leftTurns = `so the sides are loaded one after the other: ${noiseIsIn}`;
const dependent =
  'so the interval is too narrow and the verdict less sure than it says: look for what changes during the run (heat, caches, growing logs, other programs), and run again';

const templates: Templates<Finding> = {
  'quick-run': () => 'quick run with short rounds: a first look, not a measurement',
  'time-over': (f) =>
    `--max-time ended the run after ${f.rounds} of at most ${f.mostRounds} rounds`,
  dropped: ({ round, with: earlier = [], repeatedAs, cause, farthest: of }) => {
    const [were, as] =
      earlier.length === 0
        ? [`round ${round} was`, 'as round']
        : [`rounds ${enumeration([...earlier, round])} were`, 'from round'];
    const repeated = repeatedAs === undefined ? '' : ` and repeated ${as} ${repeatedAs}`;
    const figures =
      of &&
      `; ${of.variant} had ${whole(of.rps)} requests/s in ${earlier.length === 0 ? 'it' : `round ${round}`}, ${whole(of.othersRps)} in the others`;
    return `${were} dropped${repeated}: ${sentenceOf(cause)}${figures ?? ''}`;
  },
  crashed: (f) => `${f.variant}: ${f.server} crashed under load, as its log says: ${f.line}`,
  'clock-set': (f) =>
    `${f.variant}: the machine's clock was set ${f.byMs < 0 ? 'back' : 'forward'} by ${scaledTime(Math.abs(f.byMs))} during the load, or the machine was suspended: wait until its time is synchronised (timedatectl), and keep it awake`,
  'quota-held': (f) =>
    `${f.variant}: a CPU quota held the run back for ${scaledTime(f.heldMs)} during the load (${f.quotas}): take the quota away (docker run --cpus, a pod's limits.cpu), or give it more than the cores that bakeoff uses`,
  'generator-stopped': (f) =>
    `${f.variant}: the load generator (k6) was stopped: find what stops it (SIGSTOP, a debugger)`,
  unsampled: ({ variant, gapMs }) =>
    gapMs === undefined
      ? `${variant}: the load was not sampled from its begin to its end: bakeoff was stopped, or had no CPU time`
      : `${variant}: nothing was sampled for ${scaledTime(gapMs)} of the load: bakeoff was stopped (Ctrl-Z, a suspended machine), or had no CPU time; leave it running, and end what else uses its cores`,
  'held-up': ({ variant, server, pauseMs, windowSeconds, cause }) => {
    const of = windowSeconds === undefined ? '' : ` of its ${scaledTime(1000 * windowSeconds)}`;
    return `${variant}: ${server} stalled: no response came for ${scaledTime(pauseMs)}${of} while requests were under way; ${holdUpText(cause)}`;
  },
  'still-cold': ({ sides }) => sides.map(coldText).join('; '),
  'page-changed': (f) =>
    `${f.variant}: bodies${f.page === undefined ? '' : ` of ${f.page}`} had ${hundredths(f.meanBytes)} B on average, and the page has ${whole(f.pageBytes)} B: it changed during the load`,
  'round-failed': (f) => f.reason,
  outlier: (f) =>
    `${f.variant} against ${f.baseline}: round ${f.round} is an outlier and alone ${f.hasVerdict ? 'decides' : 'prevents a verdict'}: run again, with more --rounds`,
  drift: (f) =>
    `${f.variant} against ${f.baseline}: from the first round to the last the ratio moved by ${effect(f.ratio)}, ${dependent}`,
  echo: (f) =>
    `${f.variant} against ${f.baseline}: rounds resemble the one before (correlation ${f.correlation.toFixed(2)}), ${dependent}`,
  'one-sided': (f) => {
    const pair = `${f.variant} and ${f.baseline}`;
    return `${oneSidedText(f)}, so ${oneSidedConsequence(f, pair)}: ${remedies[f.kind]}, and run again`;
  },
  pauses: (f) =>
    `${enumeration(f.variants)} paused for about ${scaledTime(f.usualMs)} at a time, and a round of ${Number(f.loadSeconds.toFixed(2))} s with one pause more has fewer requests: longer rounds even that out (--duration ${f.neededSeconds}s)`,
  steal: (f) =>
    `steal time: the host gave others up to ${useText(f, f.of)}: run again when it is quieter, or on a machine of your own`,
  'others-beside-generator': (f, _, all) => {
    const [others, but] = f.hasBackend
      ? ['others, with the backend if it runs there,', ', but not the backend,']
      : ['others', ''];
    return `${others} used up to ${useText(f, 'generator')}, when ${variantsText(f.variants, all)} had time left: ${f.isAtRate ? '' : 'requests/s are understated; '}latency is overstated: end what else runs on this machine${but} and run again`;
  },
  'busy-backend': (f) =>
    `the backend used up to ${useText(f, 'server')}: it is not in the server's CPU time; run it on other cores (taskset) to see the server alone`,
  'others-beside-server': (f) => {
    const share = useText(f, 'server');
    if (f.backend === 'unknown')
      return `the backend and other programs used up to ${share}: bakeoff cannot tell them apart here; run the backend on other cores (taskset), or bakeoff as the backend's user`;
    return `others used up to ${share}: end what else runs on ${f.host ?? 'this machine'}${f.backend === 'apart' ? ', but not the backend,' : ''} and run again`;
  },
  'long-warm-up': ({ variants, warmupSeconds, gain }) => {
    const [took, upTo, it] =
      variants.length === 1
        ? ['a warm-up took', '', 'it']
        : ['warm-ups took up to', 'up to ', 'them'];
    const rose = gain && `, in which requests/s rose to ${upTo}${gain.toFixed(1)} times`;
    return `${enumeration(variants)} still got faster under load: ${took} ${warmupSeconds.toFixed(1)} s${rose ?? ''} (--warmup 0 measures ${it} cold)`;
  },
  'still-faster': (f) =>
    `${f.variant} still got faster${f.against === undefined ? '' : ` than ${f.against}`} within its windows: ${f.metric === 'rps' ? 'requests/s' : 'requests per CPU time'} ${effect(f.ratio, f.interval)} from their first half to their second: begin later (--warmup 5s)`,
  'generator-limit': (f, who) =>
    `${who}: the generator was at its limit (${percent(f.share)} of its available CPU), so the server may be able to do more: ${moreCores}`,
  'also-loaded': ({ by, ...f }, who) =>
    `${who}: ${strangerText(by)} had connections to its server in ${roundsText(f)}, so its figures are not of this load alone: ${by === '' ? 'end that program (ss -tnp)' : `look for code in ${by} that does so`}, and run again`,
  'other-cpus': (f, who) =>
    `${who}: its threads might run on ${coresText(f.cpus)} too, which the servers do not share: find what sets their affinity (sched_setaffinity, taskset, worker_cpu_affinity, cpu-map), and run again`,
  failed: (f, who) =>
    `${who}: ${enumeration([...errorsTexts(f), ...answersTexts(f)])} among ${whole(f.requests)} requests: ${failureCause(f.cause) || 'requests/s alone do not compare'}`,
  hung: (f, who) =>
    `${who}: ${hungText(f.requests)}${f.isOverflowed ? '' : ': the server probably dropped them, or is slow to accept connections (give a longer --duration, or fewer with -c)'}; ${f.requests === 1 ? 'it counts' : 'they count'} as failed`,
  unsent: (f, who) =>
    `${who}: ${whole(f.unsent)} of ${whole(f.due)} requests were due and could not be sent: ${rateCause(f.cause)}`,
  stalled: (f, who) =>
    `${who} stalled for up to ${scaledTime(f.longestMs)} in ${roundsText(f)}, and nothing else is known to have stalled: look at its log and its backend`,
  'generator-stalled': (f, who) =>
    `${who}: the generator stalled in ${percent(f.share)} of the turns (others had its core, or the host took it); such turns are left out and made again, up to a quarter of all`,
  'late-sends': (f, who) =>
    `${who}: one request in a hundred left ${scaledTime(f.lateMs)} late or more, which its latency includes (p99 ${scaledTime(f.latencyMs)}): ${rateCause(f.cause)}`,
  'late-reads': (f, who) =>
    `${who}: half or more of its p99 (${scaledTime(f.latencyMs)}) is the generator's: it read one answer in a hundred ${scaledTime(f.lateMs)} after it was there, or later${lateReadsText(f.waitedShare)}`,
  'few-streams': (f, who) =>
    `${who}: the server allows ${whole(f.allowedStreams)} concurrent streams per connection, the load asks for ${whole(f.streams)}: ${whole(f.allowedStreams)} were used`,
  'not-resumed': (f, who) =>
    `${who}: no TLS session was resumed (tls.resume): ${notResumedTexts[f.cause]}`,
  overflows: ({ queues }) => {
    // A full queue has one more than its backlog.
    const [room] = extent(queues.map(({ backlog = Infinity }) => backlog + 1));
    const always = Number.isFinite(room) ? ` (${whole(room)} always find room)` : '';
    const each = queues.map((queue) => `that of ${queue.variant}${overflowText(queue, '')}`);
    return `full accept queues turned connections away, which then fail, or wait for 0.2 s to some seconds: ${enumeration(each)}: take fewer connections${always}, or give the server a longer backlog (a setting of its own, up to net.core.somaxconn)`;
  },
  'one-turn': (f) =>
    `${enumeration(f.variants)}: some answers took so long that the sides were loaded one after the other within each round: ${noiseIsIn}`,
  'late-link': (f) =>
    `${enumeration(f.variants)}: the link was later than the delay that was asked for, so it may be what is compared: give both sides, on whose cores it runs, more of them ${coreFlags}, or take fewer connections`,
  'tls-differs': ({ part, values }) => {
    const how = values.map(({ value, variants }) => `${value} (${variants.join(', ')})`);
    return `TLS ${part === 'keyExchange' ? 'key exchange' : part} differs: ${how.join(', ')}`;
  },
  'no-baseline': (f) =>
    `${f.variant} is compared with ${f.baseline}, which was not run: name both with --variants for a ratio`,
  'shared-cores': (f) =>
    `server and generator are on threads of the same physical core (${f.cpus.map(formatCpuList).join(' and ')}) and slow each other down: ${f.isOnly ? 'there is no other core here' : `give each side whole ones ${coreFlags}`}`,
  'cpu-quota': (f) =>
    `a quota allows the CPU time of ${coreCount(f.quotaCores)} of the ${f.allowedCores} that are here, and server and generator are on ${f.usedCores}${f.quotaCores < f.usedCores ? `: they are stopped whenever it is used up; name fewer ${coreFlags}, or` : '; to use more,'} ${quotaHelp}`,
  'same-port': (f) =>
    `${f.variant} was loaded alone, and not in turns with the others: it listens on port ${f.port}, as ${f.other} does (write {port} where it can be told one); the machine's noise is in its figures`,
  'no-warm-up': (f) =>
    `${enumeration(f.variants)}: the load counts requests, and has no warm-up: a server that compiles its code or fills caches meanwhile is measured cold, and may differ much from itself. For a warm one give a time instead (--duration 2s, or -D 5 with h2load, -t 5 with ab)`,
  'no-ss': (f) =>
    `ss is missing: whether other programs kept ${enumeration(f.variants)} waiting for a core is not known: install it (package iproute2)`,
  'not-in-turns': (f) => {
    const what = f.of === 'cpuShare' ? "its server's CPU time per second is" : 'its requests/s are';
    const cause =
      f.ratio > 1
        ? 'a rate limit or a quota recovers, or a cache expires, during the turns of others, or a --warmup is too short'
        : 'a server gets slower the longer it runs';
    const remedy =
      f.droppedRounds === undefined
        ? 'and there was no time to load the sides one after the other: give more --max-time, and do not trust these figures'
        : `as where ${cause}; so ${counts(f.droppedRounds, 'round')} were dropped and the sides loaded one after the other: ${noiseIsIn}`;
    return `${f.variant}: in turns ${what} ${effect(f.ratio, f.interval)} against continuous load, ${remedy}`;
  },
  'quota-in-turns': (f) =>
    `its own CPU quota held ${f.variant} back for ${scaledTime(f.heldMs)} (${f.quotas}), and it recovers in the turns of others; ${leftTurns}`,
  'out-of-turn': (f) =>
    `${f.variant} uses ${percent(f.share)} of a core in the turns of others, as servers that poll or run background jobs do; so the sides are loaded one after the other, each with no other server alive: ${noiseIsIn}`,
  'side-as-backend': (f) =>
    `the config of ${f.variant} has the server of ${f.backend} (port ${f.port}) as a backend, and could load it in the turns of ${f.backend}; ${leftTurns}`,
  'log-alarm': (f) => `${f.variant}: the server's log says: ${f.line}`,
  'log-of-failures': (f) =>
    `${f.variant}: the last line of its log after requests had failed: ${f.line}`,
  'other-bodies': (f) =>
    `${f.variant}: under load the bodies had another length on average than when the server was started: part of what is seen is theirs`,
};

const notResumedTexts = {
  http: 'the page is not https',
  kept: 'its connections were kept, and only new ones resume (keepAlive: false, or a server that closes connections)',
  noTickets:
    'the server gave no session tickets, or took none back (nginx: ssl_session_tickets on)',
} as const;

function oneSidedConsequence(
  { kind, unlike, hasVerdict }: Extract<Finding, { code: 'one-sided' }>,
  pair: string,
): string {
  if (hasVerdict) return `part of the difference of ${pair} may come from that, but not all of it`;
  if (unlike === 'jobs') return `CPU per request of ${pair} does not compare`;
  const cpu = kind === 'starved' ? ', latency and CPU per request' : ' and latency';
  return `requests/s${cpu} of ${pair} do not compare`;
}

/** A smaller share of waits for other programs does not make one answer in a hundred late. */
const waitsMatter = 0.01;

/** Returns why the generator reads late, and what to do about that. */
function lateReadsText(waitedShare: number | undefined): string {
  const endOthers = 'end what else runs on its cores';
  if (waitedShare === undefined) return `: ${moreCores}, and ${endOthers}`;
  if (waitedShare < waitsMatter) return `: ${moreCores}`;
  return `, as it waited for its cores in ${percent(waitedShare)} of the time: ${endOthers}`;
}

function holdUpText(cause: HoldUp): string {
  if (cause.kind === 'stopped') return 'it was stopped (SIGSTOP or a debugger)';
  return `other programs, or the host of a virtual machine, had ${percent(cause.share)} of its cores meanwhile: end what else runs there`;
}

const coldText = ({ variant, hadSeconds, beforeUs, afterUs, nextSeconds }: ColdSide): string =>
  `${variant} still got faster after its warm-up of ${hadSeconds.toFixed(1)} s (from ${whole(beforeUs)} to ${whole(afterUs)} µs of CPU time per request), which takes ${nextSeconds.toFixed(1)} s from now on`;

/** "12 % of the server's cores in every round". */
const useText = ({ share, cores, ...rounds }: CoreUse, of: 'server' | 'generator'): string =>
  `${percent(share)} of the ${of}'s ${cores === 1 ? 'core' : 'cores'} in ${roundsText(rounds)}`;

/** "every round", "4 of 10 rounds" or "rounds 2 and 4". */
function roundsText({ rounds, allRounds }: InRounds): string {
  if (rounds.length === allRounds) return `${allRounds === 1 ? 'the only' : 'every'} round`;
  if (rounds.length > 3) return `${rounds.length} of ${allRounds} rounds`;
  return `${rounds.length === 1 ? 'round' : 'rounds'} ${enumeration(rounds)}`;
}

/**
 * Returns the sentences of findings, each once: of variants with the same, one names all.
 * @param all the number of variants in the run
 */
export function sentencesOf(
  findings: readonly AnyFinding[],
  all: number,
  ofFeatures: AnyTemplates = {},
): string[] {
  const known: AnyTemplates = { ...ofFeatures, ...templates };
  const say = (finding: AnyFinding, who: string) =>
    known[finding.code]?.(finding as never, who, all) ?? finding.code;
  const alike = groupedBy(findings, (finding) => say(finding, ''));
  return [...alike.values()].map((same) => {
    const [first] = same;
    const names = same.flatMap((finding) => ('variant' in finding ? String(finding.variant) : []));
    return say(first, variantsText([...new Set(names)], all));
  });
}

/** Returns the result with these findings, and their sentences. */
export function withFindings(
  result: Result,
  findings: AnyFinding[],
  templates: AnyTemplates,
): Result {
  return {
    ...result,
    findings,
    warnings: sentencesOf(findings, result.variants.length, templates),
  };
}

/** The sentence of one finding. */
export const sentenceOf = (finding: Finding): string => sentencesOf([finding], NaN).join('');
