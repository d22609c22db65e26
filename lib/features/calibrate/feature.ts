import type { Feature } from '../../cli/feature.ts';

/** Servers of known figures: docs/proof.md. */
export const calibrate: Feature = {
  commands: {
    calibrate: {
      help: 'load servers whose figures are known, by bakeoff and by wrk, h2load, vegeta and others',
      run: async (args, additions) =>
        (await import('./command.ts')).calibrateCommand(args, additions),
    },
  },
};
