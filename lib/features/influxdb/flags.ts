// Which database a run has, by its flags.
import { join } from 'node:path';
import { oneOfNames, type Flag } from '../../cli/arguments.ts';
import { usageError } from '../../errors.ts';
import { requireSpace } from '../../files.ts';
import { parseInfluxUrl } from '../../influx/address.ts';
import type { PlannedSink } from '../../runner/plan.ts';
import { bakeoffFolder } from '../../setup/paths.ts';

export const influxdbFlags = {
  store: {
    group: 'output',
    rare: true,
    value: 'influx|none',
    help: 'where samples go (influx)',
  },
  influx: {
    group: 'output',
    rare: true,
    value: 'URL',
    help: 'an InfluxDB 1.x or 2.x that runs already, instead of a local one',
  },
} as const satisfies Record<string, Flag>;

/** The folder with the data of the influxd that bakeoff starts. */
export const influxdbFolder = join(bakeoffFolder, 'influxdb');

/** Returns the database at --influx, or a local one; undefined with --store none. Throws UserError (exit code 2). */
export function plannedDatabase(flags: ReadonlyMap<string, string>): PlannedSink | undefined {
  const where = oneOfNames(['influx', 'none'])('--store', flags.get('store') ?? 'influx');
  const url = flags.get('influx');
  if (where === 'none') {
    if (url !== undefined)
      throw usageError('--store none and --influx do not go together: leave one out');
    return undefined;
  }
  if (url !== undefined) parseInfluxUrl(url);
  const isLocal = url === undefined;
  return {
    tools: isLocal ? ['influxd'] : [],
    requireSpace: async (bytes) => {
      if (isLocal)
        await requireSpace(bakeoffFolder, bytes, 'InfluxDB', 'name another folder in BAKEOFF_HOME');
    },
    open: async ({ tools: { influxd }, cpus, signal, folder }) => {
      const { openSink } = await import('./sink.ts');
      const options = { url, influxdBinary: influxd, cpus, signal };
      if (folder !== undefined) return openSink({ ...options, folder, mustStart: true });
      return openSink({ ...options, folder: influxdbFolder });
    },
  };
}
