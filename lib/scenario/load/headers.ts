// Request headers: those of a load generator's line, and which the engine can send.
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import { isHttp2 } from '../protocols.ts';

type Headers = Readonly<Record<string, string>>;

/**
 * The headers of a line's flags, each as `Name: value`. Those of one name are joined as in RFC 9110, section 5.3 (cookies: RFC 6265).
 * Throws UserError naming what cannot be sent. @param flag as the person wrote it, e.g. `wrk -H`
 */
export function headersOf(
  flag: string,
  lines: readonly string[],
  protocol: LoadProfile['protocol'],
): { headers?: Headers; keepAlive?: boolean } {
  const headers = new Map<string, string>();
  let keepAlive: boolean | undefined;
  for (const line of lines) {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    if (colon < 1)
      throw new UserError(`${flag} "${line}" has to be a header such as 'Accept-Encoding: gzip'`);
    if (
      name.toLowerCase() === 'connection' &&
      !isHttp2(protocol) &&
      /^(close|keep-alive)$/i.test(value)
    ) {
      keepAlive = value.toLowerCase() === 'keep-alive';
      continue;
    }
    const problem = problemOfHeader(name, value, protocol);
    if (problem !== undefined) throw new UserError(`${flag} "${line}": ${problem}`);
    const before = [...headers.keys()].find((one) => one.toLowerCase() === name.toLowerCase());
    if (before !== undefined && name.toLowerCase() === 'host')
      throw new UserError(`${flag} "${line}": Host is given twice`);
    if (before === undefined) headers.set(name, value);
    else
      headers.set(
        before,
        [headers.get(before), value].join(name.toLowerCase() === 'cookie' ? '; ' : ', '),
      );
  }
  return {
    ...(headers.size === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(keepAlive === undefined ? {} : { keepAlive }),
  };
}

/** Why the engine cannot send it, in words; undefined when it can. */
export function problemOfHeader(
  name: string,
  value: string,
  protocol: LoadProfile['protocol'],
): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return `"${name}" is not a header name`;
  if (/[\r\n\0]/.test(value)) return `the value of ${name} has a line break or NUL in it`;
  const lower = name.toLowerCase();
  if (['connection', 'content-length', 'transfer-encoding'].includes(lower))
    return `${name} is set by the load generator (from keepAlive and body)`;
  if (isHttp2(protocol) && ['te', 'upgrade', 'keep-alive', 'proxy-connection'].includes(lower))
    return `${name} is not allowed in HTTP/2`;
  return undefined;
}

/** The value of a header whatever its name's case, and the others. */
export function takeHeader(
  headers: Headers | undefined,
  name: string,
): { value?: string; rest: Headers } {
  const entries = Object.entries(headers ?? {});
  const found = entries.find(([one]) => one.toLowerCase() === name.toLowerCase());
  return {
    ...(found === undefined ? {} : { value: found[1] }),
    rest: Object.fromEntries(entries.filter((entry) => entry !== found)),
  };
}
