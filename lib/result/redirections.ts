// The changes to a user's config that code acts on: written and read here, because results keep each as a line for people.

export const loadedToo = (directive: string): string =>
  `${directive}: what runs there is loaded too (CPU µs/req is without it)`;

export const askedToo = (directive: string): string => `${directive}: what runs there is asked too`;

export const stubbed = (directive: string): string =>
  `${directive}, which answers in place of a backend`;

/** Whether a line is of a backend or service that listens on the machine's loopback, or in this process. */
export const asksMachine = (line: string): boolean =>
  /: what runs there is (?:loaded|asked) too|, which answers in place of a backend$/.test(line) &&
  !/ (?:\w+:\/\/)?unix:/.test(line);

/** @param place FILE:LINE @param delays the limit may also delay requests */
export const mayTurnAway = (directive: string, place: string, delays: boolean): string =>
  `${directive} at ${place}: may turn away ${delays ? 'or delay ' : ''}requests of the load`;

/** Returns the directive with its place, if the line is of a limit of requests or connections; otherwise undefined. */
export function limitIn(line: string): { text: string; isOfRequests: boolean } | undefined {
  const [, text, kind] = /^(limit_(req|conn)\b.* at .*): may turn away/.exec(line) ?? [];
  return text === undefined ? undefined : { text, isOfRequests: kind === 'req' };
}

/** A change that only an Apache's command gets, whatever the program is called. */
export const pidFileMoved = (to: string): string => `PidFile → ${to}`;

export const isOfApache = (line: string): boolean => line.startsWith(pidFileMoved(''));
