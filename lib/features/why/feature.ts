import type { Feature } from '../../feature.ts';
import { whyLines, whyPart } from './report.ts';

/** The causes of verdicts, by a look of perf after the rounds: docs/why.md. */
export const why: Feature = {
  flags: {
    why: {
      group: 'verdict',
      rare: true,
      notInSteps: true,
      without: ['no-why'],
      help: 'after the verdict look at its cause with perf, with --quick too (5 s per side)',
    },
    'no-why': { group: 'verdict', rare: true, help: 'leave that out' },
  },
  afterRounds: async (run) => (await import('./after-rounds.ts')).lookAfterRounds(run),
  sentences: whyLines,
  parts: whyPart,
  sections: async (...run) => (await import('./section.ts')).whySections(...run),
};
