import type { Feature } from '../../cli/feature.ts';
import { storeTemplates } from './findings.ts';
import { influxdbFlags, plannedDatabase } from './flags.ts';
import { storedIn } from './stored.ts';

/** Stores the figures of all runs in InfluxDB, and shows them in Grafana's dashboards: docs/grafana.md. */
export const influxdb: Feature = {
  commands: {
    grafana: {
      help: 'show the dashboards of all runs, until Ctrl-C',
      run: async (args) => (await import('./grafana/command.ts')).grafanaCommand(args),
    },
  },
  run: { flags: influxdbFlags, sink: plannedDatabase },
  templates: storeTemplates,
  // What is counted has no points.
  report: (result) => (result.counts === undefined ? { stored: storedIn(result) } : {}),
  keeps: {
    help: 'delete the InfluxDB and Grafana data too: the figures of all runs, your own dashboards and users',
    folders: [
      { folder: 'grafana', what: "Grafana's data", lock: 'lock' },
      { folder: 'influxdb', what: "InfluxDB's data", lock: 'influxd.lock' },
    ],
  },
};
