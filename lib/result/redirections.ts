// The changes to a user's config that code acts on: written and read here, because results keep each as a line for people.

export const loadedToo = (directive: string): string =>
  `${directive}: what runs there is loaded too (CPU µs/req is without it)`;

export const askedToo = (directive: string): string => `${directive}: what runs there is asked too`;

export const stubbed = (directive: string): string =>
  `${directive}, which answers in place of a backend`;

/** Returns whether a line is of a backend or service that listens on the machine's loopback, or in this process. */
export const asksMachine = (line: string): boolean =>
  /: what runs there is (?:loaded|asked) too|, which answers in place of a backend$/.test(line) &&
  !/ (?:\w+:\/\/)?unix:/.test(line);

/** @param place FILE:LINE @param delays the limit may also delay requests @param rate that nginx allows, as written: rate=100r/s */
export function mayTurnAway(
  directive: string,
  place: string,
  delays: boolean,
  rate?: string,
): string {
  const allowed = rate === undefined ? '' : ` (${rate})`;
  return `${directive}${allowed} at ${place}: may turn away ${delays ? 'or delay ' : ''}requests of the load`;
}

/** Returns the directive with its place, if the line is of a limit of requests or connections; otherwise undefined. */
export function limitIn(line: string) {
  const [, text, kind] = /^(limit_(req|conn)\b.* at .*): may turn away/.exec(line) ?? [];
  if (text === undefined) return undefined;
  const [, count, unit] = /\(rate=(\d+)r\/([sm])\) at /.exec(text) ?? [];
  /** Requests/s; NaN if they are not known. */
  const allowedRps = Number(count) / (unit === 'm' ? 60 : 1);
  return { text, isOfRequests: kind === 'req', allowedRps };
}

/** A change that only an Apache's command gets, whatever the program is called. */
export const pidFileMoved = (to: string): string => `PidFile → ${to}`;

export const isOfApache = (line: string): boolean => line.startsWith(pidFileMoved(''));
