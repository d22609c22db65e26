// What is shown and kept of loads, commands, addresses and logs instead of credentials.

type Headers = Readonly<Record<string, string>>;

/** Stands for credentials. */
export const hidden = '***';

const secretName =
  /^(?:cookie|key|sig)$|auth(?!or$)|token|secret|passw|credential|session|signature|api-?key|access-?key|[-_]key$|^(?:pass|pwd|pw)$/i;

/** The headers with the values of credentials hidden. */
export function shownHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secretName.test(name) ? hidden : value]),
  );
}

/** Leaves out header values with credentials, and the body, which may have some. */
export function keptLoad<T extends { headers?: Headers; body?: string | null }>(load: T): T {
  return {
    ...load,
    ...(load.headers && { headers: shownHeaders(load.headers) }),
    ...(load.body && { body: hidden }),
  };
}

/** Hides credentials before an @, and query parameters of such names. */
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

/** Hides values of flags, variables and headers of such names, and in addresses. */
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
