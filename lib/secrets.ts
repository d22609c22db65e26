// Hides credentials wherever a load, a command, an address or a log is shown or stored.

type Headers = Readonly<Record<string, string>>;

/** Printed in place of credentials, which are sent but neither shown nor stored. */
export const hidden = '***';

const secretName =
  /^(?:cookie|key|sig)$|auth(?!or$)|token|secret|passw|credential|session|signature|api-?key|access-?key|[-_]key$|^(?:pass|pwd|pw)$/i;

/** The headers with the values of credentials hidden. */
export function shownHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secretName.test(name) ? hidden : value]),
  );
}

/** Returns a load as it is stored: without the values of headers with credentials, and without the body, which may have some. */
export function keptLoad<T extends { headers?: Headers; body?: string | null }>(load: T): T {
  return {
    ...load,
    ...(load.headers && { headers: shownHeaders(load.headers) }),
    ...(load.body && { body: hidden }),
  };
}

/** Hides the credentials of a text's addresses: those before an @, and query parameters with names such as token. */
export function shownUrl(text: string): string {
  return text
    .replace(/(:\/\/)[^/\s]+@/g, `$1${hidden}@`)
    .replace(/([?&]([^=&#\s'"]+)=)[^&#\s'"]+/g, (all, before: string, name: string) =>
      secretName.test(name) ? before + hidden : all,
    );
}

/** A word's end, also in quotes. */
const value = /('[^']*'|"[^"]*"|[^\s'"&]+)/.source;
const inCommands = [
  // TOKEN=…, --token=…, --token …, 'Authorization: …'
  new RegExp(`()(?<![\\w.-])([\\w.-]+)(=)${value}`, 'g'),
  new RegExp(`(^|[\\s'"])(--?[\\w.-]+)(\\s+)(?!-)${value}`, 'g'),
  /(['"])([\w-]+)(: *)([^'"]+)/g,
];

/** Hides the values of flags, variables and headers with names such as token, and credentials in addresses. */
export function shownCommand(command: string): string {
  return inCommands.reduce(
    (text, form) =>
      text.replace(form, (all, before: string, name: string, sign: string) =>
        secretName.test(name.replace(/^-+/, '')) ? before + name + sign + hidden : all,
      ),
    shownUrl(command),
  );
}

/** A header's line, with the value of a credential hidden. */
export function shownHeader(line: string): string {
  const [, name = line] = /^([^:]*):/.exec(line) ?? [];
  return secretName.test(name) ? `${name}: ${hidden}` : line;
}
