// Recorded requests: access logs, a browser's HAR, targets of vegeta (docs/compare.md).
import { oneOfNames, type Arguments, type Flag } from '../../cli/arguments.ts';
import type { Given } from '../../cli/sides.ts';
import type { Feature } from '../../cli/feature.ts';
import type { AskedRequests } from '../../scenario/pages.ts';

const requestFlags: Readonly<Record<string, Flag>> = {
  log: {
    group: 'request',
    value: 'access.log',
    namesRequests: true,
    repeated: true,
    help: 'the requests of an access log, by their shares; - is stdin',
  },
  har: {
    group: 'request',
    rare: true,
    value: 'FILE',
    namesRequests: true,
    help: "the requests that a browser's developer tools have saved",
  },
  targets: {
    group: 'request',
    rare: true,
    value: 'FILE',
    namesRequests: true,
    help: 'the targets of vegeta, as text or JSON',
  },
  methods: {
    group: 'request',
    rare: true,
    value: 'all',
    needs: ['log', 'har'],
    help: 'of a log or HAR not only GET and HEAD: the others may change data',
  },
  site: {
    group: 'request',
    rare: true,
    value: 'HOST',
    needs: ['log', 'har'],
    help: 'the host whose requests are taken from a log or HAR (the most frequent)',
  },
  'accept-differences': {
    group: 'request',
    rare: true,
    help: 'more than 5 % of the requests may have another status than the log',
  },
};

export const traffic: Feature = { run: { requestFlags, requests: recordedRequests } };

/** Returns the requests that the flags ask for; undefined if none does. Throws UserError (exit code 2). */
async function recordedRequests(
  parsed: Arguments,
  sides: readonly Given[],
): Promise<AskedRequests | undefined> {
  const recorded = await readRecorded(parsed, sides);
  if (recorded !== undefined && parsed.flags.has('accept-differences'))
    recorded.acceptsDifferences = true;
  return recorded;
}

async function readRecorded({ flags, lists, read }: Arguments, sides: readonly Given[]) {
  const methods = read('methods', oneOfNames(['all'])) ?? 'safe';
  const host = flags.get('site')?.toLowerCase();
  const [har, targets, log] = [flags.get('har'), flags.get('targets'), lists.get('log')];
  if (har !== undefined) return (await import('./lists.ts')).readHar(har, methods, host);
  if (targets !== undefined) return (await import('./lists.ts')).readTargets(targets);
  if (log === undefined) return undefined;
  const formats = sides.flatMap(({ source }) =>
    source.kind === 'config' ? (source.config.logFormats ?? []) : [],
  );
  return (await import('./log.ts')).readLog(log, { methods, host, formats });
}
