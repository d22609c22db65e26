// How k6's own output writes to an InfluxDB.
import { database, type Influx } from './address.ts';

/** Tags that k6 turns into string fields: its default, stated so that nothing else changes it. */
export const tagsAsFields = ['vu', 'iter', 'url'] as const;

export const outputEnv = {
  K6_INFLUXDB_TAGS_AS_FIELDS: tagsAsFields.join(','),
  K6_INFLUXDB_PUSH_INTERVAL: '1s',
};

/** k6's options for writing to the database. Settings are in the environment, because every user of the machine may read a command line. */
export function ownOutput(influx: Influx) {
  return {
    out: [`influxdb=${influx.url}/${database}`],
    env: {
      ...outputEnv,
      K6_INFLUXDB_USERNAME: influx.credentials?.user ?? '',
      K6_INFLUXDB_PASSWORD: influx.credentials?.password ?? '',
      K6_INFLUXDB_PRECISION: 'ns',
      K6_INFLUXDB_RETENTION: '',
    },
  };
}

/** Counts the writes that failed, in the log of a k6 with its own output or with xk6-output-influxdb. */
export function failedWritesIn(log: string): number {
  return log.match(/^Couldn't (?:write stats|send metrics points)/gm)?.length ?? 0;
}
