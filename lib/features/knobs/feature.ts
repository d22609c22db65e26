import type { Feature } from '../../cli/feature.ts';

/** The usual advice, tried on a config: docs/compare.md. */
export const knobs: Feature = {
  commands: {
    knobs: {
      help: 'try the usual advice on your config',
      run: async (args, additions) => (await import('./command.ts')).knobsCommand(args, additions),
    },
  },
};
