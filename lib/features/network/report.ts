// The traffic on the link, as tables.
import { directions, packetsByKind, type Direction, withRounds } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';
import { exactPercent, hundredths, percent, short, whole } from '../../format.ts';
import type { NetworkResult, PacketKind } from '../../result/network-use.ts';
import type { Result, VariantResult } from '../../result/result.ts';
import { packetKinds, type Published } from '../../scenario/published.ts';
import { linkText } from '../../report/heading.ts';
import {
  figure,
  leftColumn,
  rightColumn,
  tableOf,
  type Cell,
  type Part,
  type Table,
} from '../../report/table.ts';
import { delayText } from '../../report/verdict-words.ts';

const places = { toServer: 'to server', toClient: 'to client' };

/** The traffic on the link, a row per variant; empty if all variants used loopback. */
export function linkPart({ variants }: Pick<Result, 'variants'>): Part[] {
  if (variants.every(({ network }) => network === null)) return [];
  const links = new Set(withRounds(variants).map(linkOf));
  const column = (
    group: string,
    title: string,
    cell: (network: NetworkResult, variant: VariantResult) => string,
  ) => {
    const cellOf = (variant: VariantResult) =>
      figure(variant.network, (network) => cell(network, variant));
    return rightColumn(title, cellOf, group);
  };
  const perRequest = (group: string, title: string, value: (network: NetworkResult) => number) =>
    column(group, title, (network, { serverCpuMicrosPerRequest: cpu }) =>
      cpu === null ? '' : hundredths(value(network)),
    );
  const packets = 'packets/request';
  const table = tableOf(variants, [
    leftColumn('variant', ({ name }) => name),
    perRequest(packets, 'to server', ({ packetsPerRequest }) => packetsPerRequest.toServer),
    perRequest(packets, 'to client', ({ packetsPerRequest }) => packetsPerRequest.toClient),
    perRequest(packets, 'in all', ({ packetsPerRequest }) =>
      total(directions, (way) => packetsPerRequest[way]),
    ),
    rightColumn(
      'published',
      ({ published }) => figure(published?.packetsPerRequest, whole),
      packets,
    ),
    ...directions.map((way) =>
      column('dropped', places[way], (network) => droppedText(network, way)),
    ),
    ...directions.map((way) => column('lost', places[way], (_, variant) => lostText(variant, way))),
    column('late', 'p50 ms', ({ latenessMs }) => short(latenessMs.p50)),
    column('late', 'p99 ms', ({ latenessMs }) => short(latenessMs.p99)),
    leftColumn('delay', delayCell),
    perRequest('', 'sent again/req', ({ retransmitsPerRequest }) => retransmitsPerRequest),
    column('', 'listen overflows', ({ listenOverflows }) => whole(listenOverflows)),
    rightColumn(
      'published',
      ({ published }) => figure(published?.serverIdleShare, (share) => `≥ ${percent(share)}`),
      'server idle',
    ),
    column('server idle', 'here', ({ serverIdleShare }) => percent(serverIdleShare)),
    leftColumn('link', (variant) =>
      links.size < 2 || variant.rounds.length === 0 ? '' : linkOf(variant),
    ),
  ]);
  const below =
    'Packets count at the entry of the link, with those that its queue dropped and their retransmissions. Late is the time beyond the asked delay, in the later direction.';
  const tables = hasPublishedKinds({ variants }) ? [table, kindsTable({ variants })] : [table];
  return [{ title: 'What went over the link:', tables, below: [below] }];
}

const kindNames: Readonly<Record<PacketKind, string>> = {
  syn: 'SYN',
  synAck: 'SYN-ACK',
  ack: 'ACK',
  data: 'data',
  dataFin: 'data+FIN',
  fin: 'FIN',
  reset: 'RST',
  other: 'other',
};

/** Packets by kind. Where an article has them, they stand beside the article's table. */
export function loadTables(result: Result): Table[] {
  return hasPublishedKinds(result) ? [] : [kindsTable(result)];
}

/** Returns whether an article counted packets by kind. */
function hasPublishedKinds({ variants }: Pick<Result, 'variants'>): boolean {
  return variants.some(({ published }) => published?.packets !== undefined);
}

/** Returns the packets of a request by direction and kind, published and measured. */
function kindsTable({ variants }: Pick<Result, 'variants'>): Table {
  type Row = { name: string; packets: NonNullable<Published['packets']> };
  const rows: Row[] = [];
  for (const variant of variants) {
    const sources = { published: variant.published?.packets, here: packetsByKind(variant) };
    for (const [source, packets] of Object.entries(sources))
      if (packets !== undefined) rows.push({ name: `${variant.name}  ${source}`, packets });
  }
  const text = (count: number) => String(Number(count.toFixed(2)));
  const all = ({ packets }: Row) =>
    total(directions, (way) => total(packetKinds, (kind) => packets[way][kind] ?? 0));
  const columns = directions.flatMap((way) =>
    packetKinds.map((kind) =>
      rightColumn(
        kindNames[kind],
        ({ packets }: Row) => figure(packets[way][kind], text),
        places[way],
      ),
    ),
  );
  return tableOf(rows, [
    leftColumn('packets of a request', ({ name }) => name),
    ...columns,
    rightColumn('in all', (row) => text(all(row))),
  ]);
}

function linkOf({ network }: VariantResult): string {
  return network === null ? 'loopback' : linkText(network.spec);
}

/** '' for a queue without a limit, which drops nothing. */
function droppedText({ spec, droppedShare }: NetworkResult, direction: Direction): string {
  if (spec[direction].queuePackets === undefined) return '';
  const share = droppedShare[direction];
  if (share === 0) return '0 %';
  return share < 0.0005 ? '<0.1 %' : percent(share);
}

/** The share that was lost in all rounds; '' where none was asked for. */
function lostText({ network, rounds }: VariantResult, direction: Direction): string {
  if (network?.spec[direction].lossShare === undefined) return '';
  const ways = rounds.flatMap(({ phases: [first] }) => first?.network?.[direction] ?? []);
  return exactPercent((100 * total(ways, ({ lost }) => lost)) / total(ways, (way) => way.packets));
}

function delayCell({ network }: VariantResult): Cell {
  if (network === null) return '';
  const text = delayText(network);
  if (network.delayHeld) return text;
  const part = `delay ${text}`;
  return { text: part, part, verdict: 'inconclusive' };
}
