// How far the verdicts go: after how many rounds they were made, what would decide the open ones, and for what they hold.
import { metricNames } from '../analysis/metric.ts';
import { wholeRounds } from '../analysis/phases.ts';
import { unsettled } from '../analysis/verdict.ts';
import { enumeration, percent, tolerance, whole } from '../format.ts';
import type { Comparison, Result, Verdict } from '../result/result.ts';
import { besideVerdicts } from './verdict-words.ts';

/** How far a run came that ended early, and that its verdicts were made before their time. */
export function partialLines({ state, variants, comparisons, looks }: Result): string[] {
  if (state === 'complete') return [];
  const rounds = `Ended early: ${wholeRounds(variants)} of ${looks.length > 1 ? 'at most ' : ''}${looks.at(-1)} rounds are whole and count here.`;
  const notFinal = `No verdict is final: they are made after ${enumeration(looks, 'or')} rounds, and to end a run by what it shows so far is one more chance to be wrong.`;
  return [hasVerdict(comparisons) ? `${rounds} ${notFinal}` : rounds];
}

function hasVerdict(comparisons: readonly Comparison[]): boolean {
  const isVerdict = (verdict: Verdict): boolean => verdict === 'faster' || verdict === 'slower' || verdict === 'same';
  return comparisons.some((one) => isVerdict(one.verdict) || besideVerdicts(one).some(({ verdict }) => isVerdict(verdict)));
}

/** After how many rounds the verdicts were looked at, with `--precision`. A warning says so where the time ended it. */
export function roundsLines({ variants, comparisons, looks, precision = 0, state }: Result): string[] {
  const done = wholeRounds(variants);
  // A run that ended early says so itself.
  if (state === 'partial' || looks.length < 2) return [];
  // Where the time ends a run, that is a look of its own: the verdicts shown are those of all rounds.
  const looked = [...looks.filter((look) => look < done), done];
  const ended = !looks.includes(done) ? ', when the time was over'
    : unsettled(comparisons, precision).length === 0 ? settledPart(comparisons, precision) : done === looks.at(-1) ? ': it runs no more' : '';
  return [`${done} ${done === 1 ? 'round was' : 'rounds were'} run (--precision ${tolerance(precision)}), with a look at the verdicts after ${enumeration(looked)}${ended}.`];
}

function settledPart(comparisons: readonly Comparison[], precision: number): string {
  const without = comparisons.filter(({ verdict }) => verdict === 'none').length;
  if (without === comparisons.length) return ': more rounds would bring no verdict';
  return `: each is decided, or known to within ${tolerance(precision)}${without === 0 ? '' : `, but for ${whole(without)} to which more rounds would bring no verdict`}`;
}

/** What would decide an inconclusive comparison. */
export function roundsNeeded({ roundsNeeded: rounds }: Comparison): string {
  return rounds === null ? 'no reasonable number of rounds would decide' : `about ${whole(rounds)} rounds would probably decide`;
}

/** One line for comparisons that have no sentence of their own. */
export function undecidedLines(comparisons: readonly Comparison[]): string[] {
  const open = comparisons.filter(({ verdict }) => verdict === 'inconclusive').map((one) => `${one.variant} against ${one.baseline} (${roundsNeeded(one)})`);
  return open.length === 0 ? [] : [`Not decided: ${enumeration(open)}.`];
}

/** What a control says of the machine. */
export function noiseFloorLines({ noiseFloor, comparisons: [first] }: Pick<Result, 'noiseFloor' | 'comparisons'>): string[] {
  if (noiseFloor === null) return [];
  return [
    `Noise floor: with ${noiseFloor.rounds} such rounds this machine shows effects ${first === undefined || first.metric === 'rps' ? '' : `on ${metricNames[first.metric]} `}from about ±${percent(noiseFloor.ratio - 1)} on (one of just that size in about half of all runs).`,
  ];
}

/** For what the verdicts hold; nothing where there is none. */
export function scopeLines({ comparisons, environment }: Result): string[] {
  if (!hasVerdict(comparisons)) return [];
  const { serverHost, bootedAt, cluster } = environment;
  if (cluster !== undefined) return [`Verdicts hold for these nodes of the cluster ${cluster.name}, and what else ran there.`];
  const since = new Date(serverHost?.bootedAt ?? bootedAt).toISOString().slice(0, 16).replace('T', ' ');
  return [`Verdicts hold for ${serverHost === undefined ? 'this machine in this boot' : `${serverHost.name} in its boot`} (since ${since} UTC).`];
}
