import type { Feature } from '../../cli/feature.ts';
import { aloneTemplates, heldLines } from './held.ts';
import { expectedLook } from './length.ts';
import { whyLines, whyPart } from './report.ts';

/** Looks at each side alone after the rounds: whether the verdict holds, and what causes it, by perf (docs/verdicts.md). */
export const why: Feature = {
  run: {
    flags: {
      why: {
        group: 'verdict',
        rare: true,
        notInSteps: true,
        without: ['no-why', 'no-look'],
        help: 'after the verdict look at its cause with perf, with --quick too (5 s per side)',
      },
      'no-why': { group: 'verdict', rare: true, help: 'leave that out' },
      'no-look': {
        group: 'verdict',
        rare: true,
        help: 'skip the check of the verdict with each side alone, and the look at its cause',
      },
    },
    examiner: {
      expectedSeconds: expectedLook,
      examine: async (run) => (await import('./after-rounds.ts')).lookAfterRounds(run),
    },
    callCounter: async (signal) => (await import('./calls.ts')).callCounter(signal),
  },
  templates: aloneTemplates,
  report: (result) => ({
    sentences: [...heldLines(result), ...whyLines(result)],
    parts: whyPart(result),
    sections: async (folder) => (await import('./section.ts')).whySections(result, folder),
  }),
};
