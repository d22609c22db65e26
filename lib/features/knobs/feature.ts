import type { Feature } from '../../feature.ts';

/** The usual advice, tried on a config: docs/compare.md. */
export const knobs: Feature = {
  commands: {
    knobs: {
      help: 'try the usual advice on your config',
      run: async (args) => (await import('./command.ts')).knobsCommand(args),
    },
  },
};
