// How far the verdicts go: after how many rounds they were made, what would decide the open ones, and for what they hold.
import { metricNames } from '../analysis/metric.ts';
import { wholeRounds } from '../analysis/phases.ts';
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
  const isVerdict = (verdict: Verdict): boolean =>
    verdict === 'faster' || verdict === 'slower' || verdict === 'same';
  return comparisons.some(
    (one) =>
      isVerdict(one.verdict) || besideVerdicts(one).some(({ verdict }) => isVerdict(verdict)),
  );
}

/** After how many rounds the verdicts were looked at, with `--precision`; a run that ended early says so itself. */
export function roundsLines({ variants, looks, precision = 0, state }: Result): string[] {
  if (state === 'partial' || looks.length < 2) return [];
  const done = wholeRounds(variants);
  // Where the time ends a run, that is a look of its own: the verdicts shown are those of all rounds.
  const looked = [...looks.filter((look) => look < done), done];
  return [
    `With --precision ${tolerance(precision)} the verdicts were looked at after ${enumeration(looked)} ${done === 1 ? 'round' : 'rounds'}.`,
  ];
}

/** What would decide an inconclusive comparison. */
export function roundsNeeded({ roundsNeeded: rounds }: Comparison): string {
  return rounds === null
    ? 'no reasonable number of rounds would decide'
    : `about ${whole(rounds)} rounds would probably decide`;
}

/** One line for comparisons that have no sentence of their own. */
export function undecidedLines(comparisons: readonly Comparison[]): string[] {
  const open = comparisons
    .filter(({ verdict }) => verdict === 'inconclusive')
    .map((one) => `${one.variant} against ${one.baseline} (${roundsNeeded(one)})`);
  return open.length === 0 ? [] : [`Not decided: ${enumeration(open)}.`];
}

/** What a control says of the machine. */
export function noiseFloorLines({
  noiseFloor,
  comparisons: [first],
}: Pick<Result, 'noiseFloor' | 'comparisons'>): string[] {
  if (noiseFloor === null) return [];
  return [
    `Noise floor: with ${noiseFloor.rounds} such rounds this machine shows effects ${first === undefined || first.metric === 'rps' ? '' : `on ${metricNames[first.metric]} `}from about ±${percent(noiseFloor.ratio - 1)} on (one of just that size in about half of all runs).`,
  ];
}

/** For what the verdicts hold; nothing where there is none. */
export function scopeLines({ comparisons, environment }: Result): string[] {
  if (!hasVerdict(comparisons)) return [];
  const { serverHost, bootedAt, cluster } = environment;
  if (cluster !== undefined)
    return [
      `Verdicts hold for these nodes of the cluster ${cluster.name}, and what else ran there.`,
    ];
  const since = new Date(serverHost?.bootedAt ?? bootedAt)
    .toISOString()
    .slice(0, 16)
    .replace('T', ' ');
  return [
    `Verdicts hold for ${serverHost === undefined ? 'this machine in this boot' : `${serverHost.name} in its boot`} (since ${since} UTC).`,
  ];
}
