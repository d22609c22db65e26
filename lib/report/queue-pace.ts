// What is said of a link whose queue set the pace: why requests/s are what they are there.
import { namesOfDirections } from '../analysis/network.ts';
import { queuePace, type QueuePace } from '../analysis/queue-pace.ts';
import { enumeration, hundredths, percentRange, perSecond, whole } from '../format.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { groupedBy } from './grouped.ts';

interface Paced { variant: VariantResult; pace: QueuePace }

/** One line for each queue that differs, with all variants that it set the pace of; none where no queue did. */
export function queuePaceLines({ variants }: Pick<Result, 'variants'>): string[] {
  const paced = variants.flatMap((variant): Paced[] => {
    const pace = queuePace(variant);
    return pace === null ? [] : [{ variant, pace }];
  });
  const queues = groupedBy(paced, ({ pace: { direction, queuePackets, delayMs } }) => JSON.stringify([direction, queuePackets, delayMs]));
  return [...queues.values()].map(queueLine);
}

function queueLine(paced: readonly Paced[]): string {
  const { direction, queuePackets, delayMs, packetsPerSecond } = (paced[0] as Paced).pace;
  const each = paced.map(({ variant: { name, rps }, pace: { packetsPerRequest } }, index) => (
    `${perSecond(rps?.median ?? 0)}${index === 0 ? ' requests/s' : ''} with ${name} (${hundredths(packetsPerRequest)})`
  ));
  return `The link's queue set the pace, and neither server nor generator: ${whole(queuePackets)} packets in ${delayMs} ms are ${whole(packetsPerSecond)} packets/s `
    + `${namesOfDirections[direction]}, of which ${percentRange(paced.map(({ pace }) => pace.usedShare))} came through. `
    + `Divided by those that came through for each request, that is ${enumeration(each)}.`;
}

/** What stands behind the figure of a comparison of which a queue set the pace: "; the link's queue, not the server, set the pace of both"; '' elsewhere. */
export function queuePart({ variant, baseline }: Comparison, { variants }: Pick<Result, 'variants'>): string {
  const names = variants.filter((one) => (one.name === variant || one.name === baseline) && queuePace(one) !== null).map(({ name }) => name);
  return names.length === 0 ? '' : `; the link's queue, not the server, set the pace of ${names.length === 2 ? 'both' : names.join()}`;
}
