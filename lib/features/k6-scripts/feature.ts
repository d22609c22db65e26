import type { Feature } from '../../feature.ts';

/** k6 scripts of one's own: xk6-loadgen/README.md. */
export const k6Scripts: Feature = {
  commands: {
    k6: {
      help: 'run the k6 with k6/x/loadgen (run script.js), or print its path',
      run: async (args) => (await import('./command.ts')).k6Command(args),
    },
  },
};
