// Why requests failed and what to do, where the answers, the config or the program tell it.
import { counts } from '../../format.ts';
import type { Phase, VariantResult } from '../../result/result.ts';
import { answersByStatus, phasesIn, succeeded } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';

/** What servers answer with beyond a limit of requests or connections. */
const limitStatuses = ['429', '503'];

/** A line of nginx's config, as its adoption says it. */
const limitLine = /^(limit_(req|conn)\b.* at .*): may turn away/;

/** A change to the command of an Apache, whatever its program is called: lib/servers/own/other-servers.ts makes it. */
const apachesChange = /^PidFile → /;

type Failing = Pick<VariantResult, 'server' | 'rounds'>;

/** Why most of a variant's failed requests failed, and what to do, to follow a count of them; '' if that is unknown. */
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

/** Most of the requests per second that succeeded, in one digit; undefined below 2. */
function rateWithin(phases: readonly Phase[]): number | undefined {
  const seconds = total(phases, (phase) => phase.seconds);
  const rate = (0.8 * total(phases, succeeded)) / seconds;
  if (!(rate >= 2)) return undefined;
  const digit = 10 ** Math.floor(Math.log10(rate));
  return Math.floor(rate / digit) * digit;
}
