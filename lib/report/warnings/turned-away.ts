// Why requests failed, were turned away or left late, and what to do.
import { counts, enumeration, whole } from '../../format.ts';
import type { Phase, VariantResult } from '../../result/result.ts';
import { answersByStatus, phasesIn, succeeded } from '../../analysis/phases.ts';
import { extent, total } from '../../analysis/statistics.ts';
import { type Limit, limitOf, type Overflows, rateOf } from '../../analysis/limit.ts';

/** What servers answer with beyond a limit of requests or connections. */
const limitStatuses = ['429', '503'];

/** The line on a limit in nginx's config, as bakeoff prints it when it takes over the config. */
const limitLine = /^(limit_(req|conn)\b.* at .*): may turn away/;

/** The line on a change that lib/servers/own/other-servers.ts makes only to an Apache's command, whatever the program is called. */
const apachesChange = /^PidFile → /;

type Failing = Pick<VariantResult, 'server' | 'rounds'>;

/**
 * Says why most of a variant's failed requests failed, and what to do. The text follows a count of failures; '' if the cause is unknown.
 */
export function failureCause({ server, rounds }: Failing): string {
  const phases = phasesIn(rounds);
  const failed = total(phases, (phase) => phase.requests - succeeded(phase));
  const isMost = (count: number) => count > 0 && 2 * count > failed;
  const limited = answersByStatus(phases).filter(([status]) => limitStatuses.includes(status));
  if (isMost(total(limited, ([, count]) => count))) {
    const lines = (server?.redirections ?? []).flatMap((line) => {
      const [, text, kind] = limitLine.exec(line) ?? [];
      return text === undefined ? [] : [{ text, kind }];
    });
    const isTold = limited.every(([status]) => status === '429');
    return limitCause(lines, phases, isTold);
  }
  const isApache = server?.redirections.some((line) => apachesChange.test(line)) === true;
  if (isApache && isMost(total(phases, ({ errorCauses }) => errorCauses.short)))
    return 'Apache closes connections that wait for a request when its threads are used up: give it a thread for each connection (ThreadsPerChild and MaxRequestWorkers), or load fewer connections, such as "wrk -c 20"';
  return '';
}

interface LimitLine {
  text: string;
  kind: string | undefined;
}

/** @param isTold the status says that it is a limit */
function limitCause(
  lines: readonly LimitLine[],
  phases: readonly Phase[],
  isTold: boolean,
): string {
  if (lines.length === 0 && !isTold) return '';
  const rate = rateWithin(phases);
  const isOfRequests = lines.every(({ kind }) => kind === 'req');
  let less = 'with fewer connections, such as "wrk -c 10"';
  if (isOfRequests && rate !== undefined)
    less = `at ${counts(rate, 'request')}/s or less, such as "vegeta attack -rate ${rate}"`;
  if (lines.length === 0) return `a limit of the server turned them away: lift it, or load ${less}`;
  const who = lines.map(({ text }) => text).join(' and ');
  const them = lines.length === 1 ? 'it' : 'them';
  return `${who} turned them away: take ${them} out of a copy of the config, or load ${less}`;
}

/** Returns 80 % of the requests/s that succeeded, rounded down to one digit; undefined below 2. */
function rateWithin(phases: readonly Phase[]): number | undefined {
  const seconds = total(phases, (phase) => phase.seconds);
  const rate = (0.8 * total(phases, succeeded)) / seconds;
  if (!(rate >= 2)) return undefined;
  const digit = 10 ** Math.floor(Math.log10(rate));
  return Math.floor(rate / digit) * digit;
}

/** "its accept queue (for 5) overflowed 1,809 times"; '' if it did not. */
export function overflowClause(queue: Overflows): string {
  return queue.count === 0 ? '' : `its accept queue${whose(queue)} overflowed ${times(queue)}`;
}

const times = ({ count }: Overflows): string => (count === 1 ? 'once' : `${whole(count)} times`);
const whose = ({ backlog }: Overflows): string =>
  backlog === undefined ? ", or another side's," : ` (for ${whole(backlog)})`;

/** Says which accept queues overflowed, with the next step; empty if none did. */
export function overflowTexts(all: readonly Overflows[]): string[] {
  const overflowed = all.filter(({ count }) => count > 0);
  if (overflowed.length === 0) return [];
  // A full queue has one more than its backlog.
  const [room] = extent(overflowed.map(({ backlog = Infinity }) => backlog + 1));
  const always = Number.isFinite(room) ? ` (${whole(room)} always find room)` : '';
  const each = overflowed.map((queue) => `that of ${queue.name}${whose(queue)} ${times(queue)}`);
  return [
    `full accept queues turned connections away, which then fail, or wait for 0.2 s to some seconds: ${enumeration(each)}: take fewer connections${always}, or give the server a longer backlog (a setting of its own, up to net.core.somaxconn)`,
  ];
}

const causes: Readonly<Record<Limit, string>> = {
  both: 'both sides were at their limit',
  server: 'the server was at its limit',
  generator: 'the generator was at its limit',
  neither:
    'neither side was at its limit (run again on a quieter machine, or with more connections)',
};

/** Whether all connections may have been busy at once, by Little's law with the longest latency and a burst of ten times the rate. */
function mayLackConnections({ load, rps, latencyMs }: VariantResult): boolean {
  if (rps === null || latencyMs === null) return false;
  const busy = (10 * rps.median * latencyMs.max) / 1000;
  return busy >= (load.connections ?? 0);
}

/** Why requests left late, or not at all. */
export function rateCause(variant: VariantResult): string {
  const limit = limitOf(variant);
  const { growthPerSecond = 0 } = rateOf(variant) ?? {};
  if (growthPerSecond > 0 && limit !== 'generator')
    return `its queue grows by ${whole(growthPerSecond)} each second, so it cannot serve more`;
  if (variant.load['arrivals'] === 'logged' && limit === 'neither' && mayLackConnections(variant))
    return 'they waited for a free connection (more connections move that queue into the server)';
  if (limit === null)
    return 'the generator was not at its limit, so the server or the way to it probably was (ask for fewer requests/s, or see how busy the server is)';
  return causes[limit];
}
