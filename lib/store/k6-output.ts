// How k6 is told to write to the database: by the output that every k6 has, or by xk6-output-influxdb, which speaks the
// API of InfluxDB 2.x.
import { UserError } from '../errors.ts';
import { organizationId, type Influx } from './client.ts';

/** Tags that k6 turns into string fields (the default of its own output, stated so that nothing else changes it). */
export const tagsAsFields = ['vu', 'iter', 'url'] as const;

export interface K6Output {
  /** Values of k6's --out. */
  out: string[];
  env: Record<string, string>;
}

/** Names an output that the k6 at hand has; the image sets it for the k6 in it. */
const outputVariable = 'BAKEOFF_K6_OUTPUT';
const outputs = ['influxdb', 'xk6-influxdb'];

/**
 * Chooses the output: xk6-output-influxdb where BAKEOFF_K6_OUTPUT says that k6 has it and the database is 2.x, otherwise
 * k6's own. Returns what makes k6's options; ask it anew for every round, since a local database's port may change.
 * @param version of the database, as ping() says
 * @throws UserError for an output that there is not; InfluxError when the organization cannot be found out
 */
export async function chooseK6Output(
  influx: Influx,
  version: string,
  wanted: string | undefined = process.env[outputVariable],
): Promise<() => K6Output> {
  if (wanted !== undefined && wanted !== '' && !outputs.includes(wanted)) {
    throw new UserError(
      `${outputVariable}=${wanted} is no output of k6 that bakeoff knows: set it to ${outputs.join(' or ')}, or unset it`,
    );
  }
  if (wanted !== 'xk6-influxdb' || version.startsWith('1.')) return () => ownOutput(influx);
  const organization = await organizationId(influx);
  return () => extensionOutput(influx, organization);
}

/** Settings are in the environment, since every user of the machine may read a command line. */
export function ownOutput(influx: Influx): K6Output {
  return {
    out: [`influxdb=${influx.url}/${influx.database}`],
    env: {
      K6_INFLUXDB_USERNAME: influx.credentials?.user ?? '',
      K6_INFLUXDB_PASSWORD: influx.credentials?.password ?? '',
      K6_INFLUXDB_TAGS_AS_FIELDS: tagsAsFields.join(','),
      K6_INFLUXDB_PUSH_INTERVAL: '1s',
      K6_INFLUXDB_PRECISION: 'ns',
      K6_INFLUXDB_RETENTION: '',
    },
  };
}

function extensionOutput(influx: Influx, organization: string): K6Output {
  return {
    out: [`xk6-influxdb=${influx.url}/${influx.database}`],
    env: {
      K6_INFLUXDB_ORGANIZATION: organization,
      K6_INFLUXDB_TOKEN: influx.credentials?.password ?? '',
      K6_INFLUXDB_TAGS_AS_FIELDS: tagsAsFields.join(','),
      K6_INFLUXDB_PUSH_INTERVAL: '1s',
      // A duration here, unlike that of k6's own.
      K6_INFLUXDB_PRECISION: '1ns',
    },
  };
}
