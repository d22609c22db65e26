// What a network of the run's own was, and what went over its link.
import { delayText } from '../analysis/network.ts';
import { hundredths, percent, short, tolerance, whole } from '../format.ts';
import type { NetworkResult, Result, VariantResult } from '../result/result.ts';
import type { LinkDirection, NetworkSpec } from '../scenario/model.ts';
import {
  type Cell,
  type Column,
  type Part,
  figure,
  leftColumn,
  rightColumn,
  tableOf,
} from './table.ts';

/** A link in words: "100 ms to the server, queue of 1,000 packets". */
export function linkText({ toServer, toClient }: NetworkSpec): string {
  if (directionText(toServer, '') === directionText(toClient, ''))
    return directionText(toServer, ' each way') || 'no delay';
  return [directionText(toServer, ' to the server'), directionText(toClient, ' to the client')]
    .filter((text) => text !== '')
    .join('; ');
}

/** '' where it does nothing to the packets. */
function directionText(
  { delayMs, queuePackets, bytesPerSecond, lossShare }: LinkDirection,
  where: string,
): string {
  const queue =
    queuePackets === undefined
      ? delayMs > 0
        ? ['no queue limit']
        : []
      : [`queue of ${whole(queuePackets)} packets`];
  const limits = [
    ...queue,
    ...(bytesPerSecond === undefined
      ? []
      : [`${Number(((8 * bytesPerSecond) / 1e6).toPrecision(3))} Mbit/s`]),
    ...(lossShare === undefined || lossShare === 0 ? [] : [`${tolerance(lossShare)} lost`]),
  ];
  return delayMs === 0 && limits.length === 0
    ? ''
    : [`${delayMs === 0 ? 'no delay' : `${delayMs} ms`}${where}`, ...limits].join(', ');
}

/** The networks of a run's variants for its heading, undefined being loopback; '' where all are that. */
export function networksText(specs: readonly (NetworkSpec | undefined)[]): string {
  const [first, ...others] = new Set(
    specs.map((spec) => (spec === undefined ? loopback : linkText(spec))),
  );
  if (first === undefined || (first === loopback && others.length === 0)) return '';
  return others.length === 0 ? first : `${others.length + 1} different networks`;
}

const loopback = 'loopback';

/** One row per variant, in the order of the article's table; nothing where all went over loopback. */
export function linkPart({ variants }: Pick<Result, 'variants'>): Part[] {
  if (variants.every(({ network }) => network === null)) return [];
  const links = new Set(variants.filter(({ rounds }) => rounds.length > 0).map(linkOf));
  const count =
    (value: (network: NetworkResult) => number, format = hundredths) =>
    (variant: VariantResult): string =>
      // Without an answer there is nothing to count by.
      variant.serverCpuMicrosPerRequest === null
        ? ''
        : figure(variant.network === null ? null : value(variant.network), format);
  const column = (
    group: string,
    title: string,
    cell: (variant: VariantResult) => Cell,
  ): Column<VariantResult> => rightColumn(title, cell, { group });
  const joined = (
    group: string,
    title: string,
    cell: (variant: VariantResult) => Cell,
  ): Column<VariantResult> => rightColumn(title, cell, { group, joined: true });
  return [
    {
      title: 'What went over the link:',
      tables: [
        tableOf(variants, [
          leftColumn('variant', ({ name }) => name),
          column(
            packets,
            'to server',
            count(({ packetsPerRequest }) => packetsPerRequest.toServer),
          ),
          joined(
            packets,
            'to client',
            count(({ packetsPerRequest }) => packetsPerRequest.toClient),
          ),
          joined(
            packets,
            'in all',
            count(({ packetsPerRequest: { toServer, toClient } }) => toServer + toClient),
          ),
          joined(packets, 'published', ({ published }) =>
            figure(published?.packetsPerRequest, whole),
          ),
          column('dropped', 'to server', droppedCell('toServer')),
          joined('dropped', 'to client', droppedCell('toClient')),
          column('late', 'p50 ms', ({ network }) => figure(network?.latenessMs.p50, short)),
          joined('late', 'p99 ms', ({ network }) => figure(network?.latenessMs.p99, short)),
          leftColumn('delay', delayCell, { joined: true }),
          rightColumn(
            'sent again/req',
            count(({ retransmitsPerRequest }) => retransmitsPerRequest),
          ),
          rightColumn('listen overflows', ({ network }) => figure(network?.listenOverflows, whole)),
          rightColumn('server idle', ({ network }) => figure(network?.serverIdleShare, percent)),
          ...(links.size < 2
            ? []
            : [
                leftColumn('link', (variant: VariantResult) =>
                  variant.rounds.length === 0 ? '' : linkOf(variant),
                ),
              ]),
        ]),
      ],
      below: [
        'Packets as they came to the link, those that its queue dropped and what was sent again for them included; late is how much after the asked delay they left it, in the later direction.',
      ],
    },
  ];
}

const packets = 'packets/request';

function linkOf({ network }: VariantResult): string {
  return network === null ? loopback : linkText(network.spec);
}

/** A queue without a limit drops nothing. */
function droppedCell(direction: 'toServer' | 'toClient'): (variant: VariantResult) => string {
  return ({ network }) => {
    if (network === null || network.spec[direction].queuePackets === undefined) return '';
    const share = network.droppedShare[direction];
    return share === 0 ? '0 %' : share < 0.0005 ? '<0.1 %' : percent(share);
  };
}

function delayCell({ network }: VariantResult): Cell {
  const text = network === null ? '' : delayText(network);
  if (network === null || network.delayHeld) return text;
  const part = `delay ${text}`;
  return { text: part, part, verdict: 'inconclusive' };
}
