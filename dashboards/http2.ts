// The HTTP/2 dashboard: what h2load and vegeta print of a run, published beside measured, and the sweep of streams.
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { benchBucket, benchPhase } from '../lib/store/schema.ts';
import {
  board,
  closedRow,
  openRow,
  runsPanel,
  scenarioVariable,
  unpublished,
  variable,
} from './board.ts';
import { barsPanel } from './charts.ts';
import { pickedRun, tagValues } from './influxql.ts';
import {
  h2loadPanels,
  histogramPanel,
  phasesPanel,
  tlsPanel,
  trafficPanel,
} from './load-phases.ts';

const overHttp2 = { is: { protocol: ['h2', 'h2c'] } } as const;

const sweepPanel = barsPanel({
  id: 10,
  title: 'Requests/s by concurrent streams per connection, beside HTTP/1.1',
  description:
    'HTTP/2 with fewer and fewer requests at once on each connection. The article saw it get slower and slower, and with one about as ' +
    'fast as nginx over HTTP/1.1; it printed no figures.',
  grid: { x: 0, y: 20, w: 24, h: 9 },
  noBars: 'This scenario varies no streams: h2-stream-sweep does.',
});

const variables = [
  scenarioVariable(benchPhase, overHttp2),
  variable({
    name: 'run',
    label: 'Run',
    query: tagValues(benchPhase, 'run', { equal: { scenario: 'scenario' }, ...overHttp2 }),
    newestFirst: true,
  }),
  variable({ name: 'variant', query: tagValues(benchBucket, 'variant', pickedRun), multi: true }),
  unpublished,
];

/** The dashboard as Grafana reads it from a file. */
export function http2Dashboard(): Dashboard {
  return board('http2', {
    description: 'What h2load and vegeta print of a run over HTTP/2, published beside measured.',
    variables,
    from: 'now-15m',
  })
    .withPanel(phasesPanel({ id: 1, y: 0 }))
    .withPanel(trafficPanel({ id: 2, y: 9 }))
    .withRow(
      closedRow(20, 'Answers by latency bucket: of a load at a constant rate', 18, [
        histogramPanel({ id: 3, y: 19 }),
      ]),
    )
    .withRow(closedRow(21, 'Fewer streams: of h2-stream-sweep', 19, [sweepPanel]))
    .withRow(
      closedRow(22, 'Times, requests/s per client, TLS', 20, [
        ...h2loadPanels({ id: 4, y: 21 }),
        tlsPanel({ id: 8, y: 57 }),
      ]),
    )
    .withRow(openRow(23, 'Runs', 21))
    .withPanel(
      runsPanel({
        id: 9,
        y: 22,
        opens: 'http2',
        where: { equal: { scenario: 'scenario' } },
        title: 'Runs of ${scenario}',
      }),
    )
    .build();
}
