// How far the verdicts go: after how many rounds they were made, what would decide the open ones, and for what they hold.
import { wholeRounds } from '../analysis/phases.ts';
import { enumeration, percent, whole } from '../format.ts';
import type { Comparison, Result } from '../runner/result.ts';

/** How the number of rounds came about, where the verdicts or the time decided on it; a run that ended early says so itself. */
export function roundsLines({ variants, comparisons, looks, state }: Result): string[] {
  const done = wholeRounds(variants);
  const most = looks.at(-1) ?? done;
  if (state === 'partial') return [];
  if (looks.length < 2) return done < most ? [`${done} of ${most} rounds were run: there was no time for more (--max-time).`] : [];
  const passed = looks.filter((look) => look <= done);
  const run = `${done} ${done === 1 ? 'round was' : 'rounds were'} run (--rounds auto), with a look at the verdicts after ${enumeration(passed)}`;
  if (passed.length === 0) return [`${run.slice(0, run.indexOf(','))}: there was no time for a first look after ${looks[0]} (--max-time).`];
  const undecided = comparisons.some(({ verdict }) => verdict === 'inconclusive');
  if (done === passed.at(-1) && !undecided) return [`${run}: nothing was left undecided.`];
  return [`${run}: ${done === most ? 'that is the most' : 'there was no time for more (--max-time)'}.`];
}

/** What would decide an inconclusive comparison. */
export function roundsNeeded({ roundsNeeded: rounds }: Comparison): string {
  return rounds === null ? 'no reasonable number of rounds would decide' : `about ${whole(rounds)} rounds would decide`;
}

/** One line for comparisons that have no sentence of their own. */
export function undecidedLines(comparisons: readonly Comparison[]): string[] {
  const open = comparisons.filter(({ verdict }) => verdict === 'inconclusive').map((one) => `${one.variant} against ${one.baseline} (${roundsNeeded(one)})`);
  return open.length === 0 ? [] : [`Not decided: ${enumeration(open)}.`];
}

/** What a control says of the machine. */
export function noiseFloorLines({ noiseFloor }: Result): string[] {
  if (noiseFloor === null) return [];
  return [`With ${noiseFloor.rounds} rounds this machine shows effects from ±${percent(noiseFloor.ratio - 1)} on.`];
}

/** For what the verdicts hold; nothing where there is none. */
export function scopeLines({ comparisons, environment }: Result): string[] {
  if (!comparisons.some(({ verdict }) => verdict === 'faster' || verdict === 'slower' || verdict === 'same')) return [];
  const since = new Date(environment.bootedAt).toISOString().slice(0, 16).replace('T', ' ');
  return [`Verdicts hold for this machine in this boot (since ${since} UTC).`];
}
