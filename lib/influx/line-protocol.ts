// InfluxDB's line protocol, byte for byte as k6 writes it, and the quoting of InfluxQL:
// https://docs.influxdata.com/influxdb/v1/write_protocols/line_protocol_reference/

/**
 * Returns a line; '' if no field is left. Leaves out empty tags, and fields that are null, undefined or not finite. Numbers are written as
 * floats.
 * @param timestampNs nanoseconds since 1970; default: the time at which the database gets the line
 */
export function line(
  measurement: string,
  tags: Readonly<Record<string, string | undefined>>,
  fields: Readonly<Record<string, number | string | null | undefined>>,
  timestampNs?: bigint,
): string {
  let head = plain(measurement).replaceAll(/[, ]/g, '\\$&');
  for (const key of Object.keys(tags).sort()) {
    const value = tags[key];
    if (value !== undefined && value !== '' && key !== '')
      head += `,${escapeTag(key)}=${escapeTag(value)}`;
  }
  const parts: string[] = [];
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value === 'string')
      parts.push(`${escapeTag(key)}="${value.replaceAll(/["\\]/g, '\\$&')}"`);
    else if (typeof value === 'number' && Number.isFinite(value))
      parts.push(`${escapeTag(key)}=${value}`);
  }
  if (parts.length === 0) return '';
  return `${head} ${parts.join(',')}${timestampNs === undefined ? '' : ` ${timestampNs}`}`;
}

/** Returns nanoseconds since 1970. @param instant milliseconds since 1970 (fractions count), or a text in ISO 8601 */
export function toNanoseconds(instant: number | string): bigint {
  const ms = typeof instant === 'string' ? Date.parse(instant) : instant;
  if (!Number.isFinite(ms)) throw new RangeError(`not an instant: ${instant}`);
  const whole = Math.floor(ms);
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6));
}

/** An InfluxQL string literal, e.g. a tag's value in a WHERE clause. */
export function quoteString(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
}

/** An InfluxQL identifier: a measurement, tag, field or database name. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;
}

// A line break would end a point, and a backslash at the end escape the separator.
function plain(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ').replace(/\\+$/, '');
}

function escapeTag(text: string): string {
  return plain(text).replaceAll(/[,= ]/g, '\\$&');
}
