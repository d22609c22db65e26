// The closed list of what a reader of the table has to know before trusting it.
import { percent, whole } from '../report/format.ts';

export type Warning =
  | { kind: 'generator-limit'; variant: string; generatorShare: number; serverShare: number }
  | { kind: 'failures'; variant: string; requests: number; errors: number; not2xx: number; example: string }
  | { kind: 'load-average'; perMinute: number; cores: number }
  | { kind: 'few-rounds'; rounds: number; needed: number }
  | { kind: 'quick' }
  | { kind: 'no-baseline'; variant: string; baseline: string }
  | { kind: 'repeated'; round: number; why: string }
  | { kind: 'not-stored'; problem: string };

/** The warning in words, with the next step where there is one. */
export function warningText(warning: Warning): string {
  switch (warning.kind) {
    case 'generator-limit':
      return `${warning.variant}: the generator was at its limit (${percent(warning.generatorShare)} of the cores that it can use) and the server was not `
        + `(${percent(warning.serverShare)}): the server can do more than this; give the generator more cores with --generator-cpus`;
    case 'failures':
      return `${warning.variant}: ${failures(warning)} among ${whole(warning.requests)} requests: requests/s alone do not compare`;
    case 'load-average':
      return `load average ${warning.perMinute.toFixed(1)} on ${warning.cores} cores at the start: something else, or set-up just before, used the machine; run again to be sure`;
    case 'few-rounds':
      return `${warning.rounds} ${warning.rounds === 1 ? 'round' : 'rounds'}: a verdict needs ${warning.needed}`;
    case 'quick':
      return 'quick run with short rounds: a first look, not a measurement';
    case 'no-baseline':
      return `${warning.variant} is compared with ${warning.baseline}, which was not run: name both with --variants for a ratio`;
    case 'repeated':
      return `round ${warning.round} was dropped and repeated: ${warning.why}`;
    case 'not-stored':
      return warning.problem;
  }
}

function failures({ errors, not2xx, example }: { errors: number; not2xx: number; example: string }): string {
  const parts = [];
  if (errors > 0) parts.push(`${whole(errors)} ${errors === 1 ? 'error' : 'errors'}${example === '' ? '' : ` (${example})`}`);
  if (not2xx > 0) parts.push(`${whole(not2xx)} ${not2xx === 1 ? 'answer' : 'answers'} other than 2xx`);
  return parts.join(' and ');
}
