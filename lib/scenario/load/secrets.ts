// Credentials in a load: they are sent, and neither shown nor kept.

/** What stands in their places. */
export const hidden = '***';

/** Headers that may let somebody in who reads them. */
const secretName =
  /^cookie$|auth|token|secret|passw|credential|session|signature|api-?key|access-?key|-key$/i;

/** The headers of a load as they may be shown: the values of credentials are left out. */
export function shownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secretName.test(name) ? hidden : value]),
  );
}

/** The same of one as a command line has it, `Name: value`. */
export function shownHeader(line: string): string {
  const [, name = line] = /^([^:]*):/.exec(line) ?? [];
  return secretName.test(name) ? `${name}: ${hidden}` : line;
}
