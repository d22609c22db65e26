import type { Feature } from '../../cli/feature.ts';

/** The page of a run again, and a comparison over all its runs: docs/questions.md. */
export const report: Feature = {
  commands: {
    report: {
      help: 'make the page of a run again, or show a comparison over all its runs',
      run: async (args, { contributionsTo }) =>
        (await import('./command.ts')).reportCommand(args, contributionsTo),
    },
  },
};
