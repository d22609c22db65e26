import type { Feature } from '../../feature.ts';

/** Grafana with the dashboards of all runs: docs/grafana.md. */
export const grafana: Feature = {
  commands: {
    grafana: {
      help: 'show the dashboards of all runs, until Ctrl-C',
      run: async (args) => (await import('./command.ts')).grafanaCommand(args),
    },
  },
};
