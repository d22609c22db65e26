// Which output of k6 writes to the database.
import { UserError } from '../../errors.ts';
import { database, type Influx } from '../../influx/address.ts';
import { organizationId } from '../../influx/client.ts';
import { outputEnv, ownOutput } from '../../influx/k6-output.ts';
import type { SampleOutput } from '../../runner/plan.ts';

/** Set by the image, whose k6 has xk6-output-influxdb. */
const outputVariable = 'BAKEOFF_K6_OUTPUT';
const outputs = ['influxdb', 'xk6-influxdb'];

/**
 * xk6-output-influxdb if BAKEOFF_K6_OUTPUT names it and the database is 2.x, else k6's own output. Returns a function,
 * because a local database's port may change.
 * @throws UserError for an unknown output; InfluxError when the organization is unclear
 */
export async function chooseK6Output(influx: Influx, version: string): Promise<() => SampleOutput> {
  const wanted = process.env[outputVariable] || 'influxdb';
  if (!outputs.includes(wanted))
    throw new UserError(
      `${outputVariable}=${wanted} is no output of k6 that bakeoff knows: set it to ${outputs.join(' or ')}, or unset it`,
    );
  if (wanted === 'influxdb' || version.startsWith('1.')) return () => ownOutput(influx);
  const organization = await organizationId(influx);
  return () => ({
    out: [`xk6-influxdb=${influx.url}/${database}`],
    env: {
      K6_INFLUXDB_ORGANIZATION: organization,
      K6_INFLUXDB_TOKEN: influx.credentials?.password ?? '',
      ...outputEnv,
      // A duration, unlike in k6's own output.
      K6_INFLUXDB_PRECISION: '1ns',
    },
  });
}
