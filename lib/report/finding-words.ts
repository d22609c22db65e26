// A sentence for each finding, with a next step.
import { extent, groupedBy } from '../analysis/statistics.ts';
import {
  coreCount,
  counts,
  duration,
  effect,
  enumeration,
  formatCpuList,
  percent,
  scaledTime,
  variantsText,
  whole,
} from '../format.ts';
import { quotaHelp } from '../machine/cores.ts';
import type { AnyFinding, CoreUse, Finding, Ratio } from '../result/finding.ts';
import {
  answersTexts,
  errorsTexts,
  failureCause,
  hungText,
  overflowText,
  rateCause,
} from './causes.ts';
import type { Result } from '../result/result.ts';
import { coresText, oneSidedText, remedies, strangerText } from './reasons.ts';

/**
 * Returns the sentence of a finding. @param who the variants with a finding like this: the text begins with it.
 * @param all the number of variants in the run
 */
type Template<F> = (finding: F, who: string, all: number) => string;

/** A template for each code. */
export type Templates<F extends AnyFinding> = {
  [Code in F['code']]: Template<Extract<F, { code: Code }>>;
};

/** Templates of features, by code. */
export type AnyTemplates = Readonly<Record<string, Template<never>>>;

const moreCores = 'give the generator more cores (--generator-cpus) or the load more threads (-t)';
const coreFlags = '(--server-cpus, --generator-cpus)';
const noiseIsIn = "the machine's noise is in their ratios";

const templates: Templates<Finding> = {
  'quick-run': () => 'quick run with short rounds: a first look, not a measurement',
  'few-rounds': ({ rounds, neededRounds }) =>
    `${counts(rounds, 'round')}: a verdict needs ${neededRounds}`,
  outlier: ({ variant, baseline, round, hasVerdict }) =>
    `${variant} against ${baseline}: round ${round} is an outlier and alone ${hasVerdict ? 'decides' : 'prevents a verdict'}: run again, with more --rounds`,
  drift: ({ ratio, ...pair }) =>
    dependenceText(pair, `from the first round to the last the ratio moved by ${effect(ratio)}`),
  echo: ({ correlation, ...pair }) =>
    dependenceText(pair, `rounds resemble the one before (correlation ${correlation.toFixed(2)})`),
  'one-sided': ({ variant, baseline, hasVerdict, ...disturbance }) => {
    const { kind } = disturbance;
    const pair = `${variant} and ${baseline}`;
    const figures =
      kind === 'starved' ? 'requests/s, latency and CPU per request' : 'requests/s and latency';
    const consequence = hasVerdict
      ? `the difference of ${pair} is not as large as measured, and too large to come from that alone`
      : `${figures} of ${pair} do not compare`;
    return `${oneSidedText(disturbance)}, so ${consequence}: ${remedies[kind]}, and run again`;
  },
  pauses: ({ variants, usualMs, loadSeconds, neededSeconds }) =>
    `${enumeration(variants)} paused for about ${scaledTime(usualMs)} at a time, and a round of ${duration(loadSeconds)} with one pause more has fewer requests: longer rounds even that out (--duration ${neededSeconds}s)`,
  steal: ({ of, ...use }) =>
    `steal time: the host gave others up to ${useText(use, of)}: run again when it is quieter, or on a machine of your own`,
  'others-beside-generator': ({ variants, isAtRate, ...use }, _, all) =>
    `others used up to ${useText(use, 'generator')}, when ${variantsText(variants, all)} had time left: ${isAtRate ? '' : 'requests/s are understated; '}latency is overstated: end what else runs on this machine and run again`,
  'busy-backend': (use) =>
    `the backend used up to ${useText(use, 'server')}: it is not in the server's CPU time; run it on other cores (taskset) to see the server alone`,
  'others-beside-server': ({ backend, host = 'this machine', ...use }) => {
    const share = useText(use, 'server');
    if (backend === 'unknown')
      return `the backend and other programs used up to ${share}: bakeoff cannot tell them apart here; run the backend on other cores (taskset), or bakeoff as the backend's user`;
    return `others used up to ${share}: end what else runs on ${host}${backend === 'apart' ? ', but not the backend,' : ''} and run again`;
  },
  'long-warm-up': ({ variants, warmupSeconds, gain }) => {
    const isOne = variants.length === 1;
    const took = `${isOne ? 'a warm-up took' : 'warm-ups took up to'} ${warmupSeconds.toFixed(1)} s`;
    const upTo = isOne ? '' : 'up to ';
    const rose =
      gain === undefined ? '' : `, in which requests/s rose to ${upTo}${gain.toFixed(1)} times`;
    return `${enumeration(variants)} still got faster under load: ${took}${rose} (--warmup 0 measures ${isOne ? 'it' : 'them'} cold)`;
  },
  'still-faster': ({ variant, against, metric, ratio, interval }) =>
    `${variant} still got faster${against === undefined ? '' : ` than ${against}`} within its windows: ${metric === 'rps' ? 'requests/s' : 'requests per CPU time'} ${effect(ratio, interval)} from their first half to their second: begin later (--warmup 5s)`,
  'generator-limit': ({ generatorShare }, who) =>
    `${who}: the generator was at its limit (${percent(generatorShare)} of its available CPU), so the server may be able to do more: ${moreCores}`,
  'also-loaded': ({ by, rounds, allRounds }, who) => {
    const remedy = by === '' ? 'end that program (ss -tnp)' : `look for code in ${by} that does so`;
    return `${who}: ${strangerText(by)} had connections to its server in ${roundsText(rounds, allRounds)}, so its figures are not of this load alone: ${remedy}, and run again`;
  },
  'other-cpus': ({ cpus }, who) =>
    `${who}: its threads might run on ${coresText(cpus)} too, which the servers do not share: find what sets their affinity (sched_setaffinity, taskset, worker_cpu_affinity, cpu-map), and run again`,
  failed: ({ requests, cause, ...failures }, who) =>
    `${who}: ${enumeration([...errorsTexts(failures), ...answersTexts(failures)])} among ${whole(requests)} requests: ${failureCause(cause) || 'requests/s alone do not compare'}`,
  hung: ({ requests, isOverflowed }, who) =>
    `${who}: ${hungText(requests)}${isOverflowed ? '' : ': the server has probably forgotten them, or is slow to accept connections (give a longer --duration, or fewer with -c)'}; they count as failed`,
  unsent: ({ unsent, due, cause }, who) =>
    `${who}: ${whole(unsent)} of ${whole(due)} requests were due and could not be sent: ${rateCause(cause)}`,
  stalled: ({ longestMs, rounds, allRounds }, who) =>
    `${who} stalled for up to ${scaledTime(longestMs)} in ${roundsText(rounds, allRounds)}, and nothing else is known to have: look at its log and its backend`,
  'generator-stalled': ({ share }, who) =>
    `${who}: the generator stalled in ${percent(share)} of the turns (others had its core, or the host took it); those were left out and made again, up to a quarter of all`,
  'late-sends': ({ lateMs, latencyMs, cause }, who) =>
    `${who}: one request in a hundred left ${scaledTime(lateMs)} late or more, which its latency includes (p99 ${scaledTime(latencyMs)}): ${rateCause(cause)}`,
  'late-reads': ({ lateMs, latencyMs }, who) =>
    `${who}: half or more of its p99 (${scaledTime(latencyMs)}) is the generator's: it read one answer in a hundred ${scaledTime(lateMs)} after it was there, or later: ${moreCores}, and end what else runs on its cores`,
  'few-streams': ({ streams, allowedStreams }, who) =>
    `${who}: the server allows ${whole(allowedStreams)} concurrent streams per connection, the load asks for ${whole(streams)}: ${whole(allowedStreams)} were used`,
  'not-resumed': ({ cause }, who) =>
    `${who}: no TLS session was resumed (tls.resume): ${notResumedTexts[cause]}`,
  overflows: ({ queues }) => {
    // A full queue has one more than its backlog.
    const [room] = extent(queues.map(({ backlog = Infinity }) => backlog + 1));
    const always = Number.isFinite(room) ? ` (${whole(room)} always find room)` : '';
    const each = queues.map((queue) => `that of ${queue.variant}${overflowText(queue, '')}`);
    return `full accept queues turned connections away, which then fail, or wait for 0.2 s to some seconds: ${enumeration(each)}: take fewer connections${always}, or give the server a longer backlog (a setting of its own, up to net.core.somaxconn)`;
  },
  'one-turn': ({ variants }) =>
    `${enumeration(variants)}: answers take so long that the sides were loaded one after the other within each round: ${noiseIsIn}`,
  'late-link': ({ variants }) =>
    `${enumeration(variants)}: the link was later than the delay that was asked for, so it may be what is compared: give both sides, on whose cores it runs, more of them ${coreFlags}, or take fewer connections`,
  'tls-differs': ({ part, values }) => {
    const how = values.map(({ value, variants }) => `${value} (${variants.join(', ')})`);
    return `TLS ${part === 'keyExchange' ? 'key exchange' : part} differs: ${how.join(', ')}`;
  },
  'no-baseline': ({ variant, baseline }) =>
    `${variant} is compared with ${baseline}, which was not run: name both with --variants for a ratio`,
  'shared-cores': ({ cpus, isOnly }) =>
    `server and generator are on threads of the same physical core (${cpus.map(formatCpuList).join(' and ')}) and slow each other down: ${isOnly ? 'there is no other core here' : `give each side whole ones ${coreFlags}`}`,
  'cpu-quota': ({ quotaCores, allowedCores, usedCores }) => {
    const how =
      quotaCores < usedCores
        ? `: they are stopped whenever it is used up; name fewer ${coreFlags}, or`
        : '; to use more,';
    return `a quota allows the CPU time of ${coreCount(quotaCores)} of the ${allowedCores} that are here, and server and generator are on ${usedCores}${how} ${quotaHelp}`;
  },
  'same-port': ({ variant, other, port }) =>
    `${variant} was loaded alone, and not in turns with the others: it listens on port ${port}, as ${other} does (write {port} where it can be told one); the machine's noise is in its figures`,
  'no-warm-up': ({ variants }) =>
    `${enumeration(variants)}: the load counts requests, and has no warm-up: a server that compiles its code or fills caches meanwhile is measured cold, and may differ much from itself. For a warm one give a time instead (--duration 2s, or -D 5 with h2load, -t 5 with ab)`,
  'no-ss': ({ variants }) =>
    `ss is missing: whether other programs kept ${enumeration(variants)} waiting for a core is not known: install it (package iproute2)`,
  'time-over': ({ rounds, mostRounds }) =>
    `--max-time ended the run after ${rounds} of at most ${mostRounds} rounds`,
  'not-in-turns': ({ droppedRounds, ...turns }) =>
    `${turnsText(turns)}, as where a rate limit or a quota recovers during the turns of others; so ${counts(droppedRounds, 'round')} were dropped and the sides loaded one after the other: ${noiseIsIn}`,
  'turns-differ': (turns) =>
    `${turnsText(turns)}, and there was no time to load the sides one after the other: give more --max-time, and do not trust these figures`,
  'quota-in-turns': ({ variant, heldMs, quotas }) =>
    `a CPU quota of its own held ${variant} back for ${scaledTime(heldMs)} (${quotas}), and it recovers in the turns of others; so the sides are loaded one after the other: ${noiseIsIn}`,
  'out-of-turn': ({ variant, share }) =>
    `${variant} uses ${percent(share)} of a core in the turns of others, as servers that poll or have jobs of their own do; so the sides are loaded one after the other, each with no other server alive: ${noiseIsIn}`,
  'side-as-backend': ({ variant, backend, port }) =>
    `the config of ${variant} has the server of ${backend} (port ${port}) as a backend, and could load it in the turns of ${backend}; so the sides are loaded one after the other: ${noiseIsIn}`,
  'log-alarm': ({ variant, line }) => `${variant}: the server's log says: ${line}`,
  'log-of-failures': ({ variant, line }) =>
    `${variant}: the last line of its log after requests had failed: ${line}`,
  'other-bodies': ({ variant }) =>
    `${variant}: under load the bodies had another length on average than when the server was started: part of what is seen is theirs`,
  dropped: ({ round, repeatedAs, why, farthest }) => {
    const repeated = repeatedAs === undefined ? '' : ` and repeated as round ${repeatedAs}`;
    const figures = farthest
      ? `; ${farthest.variant} had ${whole(farthest.rps)} requests/s in it, ${whole(farthest.othersRps)} in the others`
      : '';
    return `round ${round} was dropped${repeated}: ${why}${figures}`;
  },
};

const turnsText = ({ variant, ratio, interval }: { variant: string } & Ratio) =>
  `${variant}: requests/s in turns against continuous load are ${effect(ratio, interval)}`;

const notResumedTexts = {
  http: 'the page is not https',
  kept: 'its connections were kept, and only new ones resume (keepAlive: false, or a server that closes connections)',
  noTickets:
    'the server gave no session tickets, or took none back (nginx: ssl_session_tickets on)',
} as const;

function dependenceText(
  { variant, baseline }: { variant: string; baseline: string },
  how: string,
): string {
  return `${variant} against ${baseline}: ${how}, so the interval is too narrow and the verdict less sure than it says: look for what changes during the run (heat, caches, growing logs, other programs), and run again`;
}

/** "12 % of the server's cores in every round". */
function useText({ share, cores, rounds, allRounds }: CoreUse, of: 'server' | 'generator'): string {
  return `${percent(share)} of the ${of}'s ${cores === 1 ? 'core' : 'cores'} in ${roundsText(rounds, allRounds)}`;
}

/** "every round", "4 of 10 rounds" or "rounds 2 and 4". */
function roundsText(numbers: readonly number[], all: number): string {
  if (numbers.length === all) return `${all === 1 ? 'the only' : 'every'} round`;
  if (numbers.length > 3) return `${numbers.length} of ${all} rounds`;
  return `${numbers.length === 1 ? 'round' : 'rounds'} ${enumeration(numbers)}`;
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
    const names = same.flatMap((finding) => ('variant' in finding ? String(finding.variant) : []));
    return say(same[0] as AnyFinding, variantsText([...new Set(names)], all));
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
export const sentenceOf = (finding: Finding): string => sentencesOf([finding], NaN)[0] as string;
