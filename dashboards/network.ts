// Panels on a network of the run's own, and on what failed: what explains requests/s that a link and its queue decide.
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';
import { pickedRun } from './influxql.ts';
import { colours, matched, nullAs, tablePanel, variantColumn } from './tables.ts';

const noLink = "This run went over the machine's loopback: it had no link of its own.";

/** A row per variant, in the order of the article's table. */
export const linkPanel = tablePanel({
  id: 24,
  title: 'What went over the link',
  description:
    '"to server" and "to client" are the packets that came to the link, per request; "drops" are the share of them for which its queue had no place. "late" is how much later ' +
    'than they were due packets left the link, in the direction in which they were later: where that is much beside the delay, the delay was not held ' +
    'and the difference of two rows may be the link\'s. "sent again" are TCP segments of both sides per request, "turned away" connections ' +
    "that found the server's accept queue full." +
    ' Medians over the rounds. "published packets" are those of both directions.',
  grid: { x: 0, y: 94, w: 24, h: 9 },
  from: benchComparison,
  where: pickedRun,
  noRows: noLink,
  columns: [
    { ...variantColumn, minWidth: 174 },
    { name: 'published_packets_per_request', title: 'published packets', width: 88 },
    { name: 'packets_to_server_per_request', title: 'to server', width: 82 },
    { name: 'packets_to_client_per_request', title: 'to client', width: 78 },
    {
      name: 'dropped_to_server_share',
      title: 'drops to server',
      width: 124,
      percent: true,
      decimals: 2,
    },
    {
      name: 'dropped_to_client_share',
      title: 'drops to client',
      width: 119,
      percent: true,
      decimals: 2,
    },
    { name: 'lateness_p50_ms', title: 'late p50', width: 75 },
    { name: 'lateness_p99_ms', title: 'late p99', width: 77 },
    { name: 'retransmits_per_request', title: 'sent again', width: 86, decimals: 3 },
    { name: 'listen_overflows', title: 'turned away', width: 103 },
    { name: 'server_idle_share', title: 'server idle', width: 90, percent: true },
    {
      name: 'delay',
      width: 155,
      coloured: true,
      mappings: [
        matched('not held.*', { color: 'orange' }),
        colours({ held: 'text' }),
        nullAs('–', 'text'),
      ],
    },
  ],
});

/** A row per variant of which something failed, here or in the article. */
export const errorsPanel = tablePanel({
  id: 25,
  title: 'Attempts that failed, by cause',
  description:
    'Per million requests, in the article and here, and as counts of all rounds: no address and port was left to connect from ' +
    '(EADDRNOTAVAIL), refused by the server, reset by it, no answer in time, an answer that ended before it was whole, something else. ' +
    'Rows without any, here and in the article, are left out.',
  grid: { x: 0, y: 85, w: 24, h: 9 },
  from: benchComparison,
  where: { ...pickedRun, above0: ['errors_per_million', 'published_errors_per_million'] },
  noRows: 'No attempt of this run failed.',
  columns: [
    variantColumn,
    { name: 'published_errors_per_million', title: 'published errors/M', width: 90 },
    { name: 'errors_per_million', title: 'errors/M', width: 100 },
    { name: 'requests', width: 110 },
    { name: 'errors_address_not_available', title: 'no address left', width: 125 },
    { name: 'errors_refused', title: 'refused', width: 100 },
    { name: 'errors_reset', title: 'reset', width: 100 },
    { name: 'errors_timed_out', title: 'timed out', width: 100 },
    { name: 'errors_short', title: 'cut short', width: 100 },
    { name: 'errors_other', title: 'other', width: 100 },
  ],
});
