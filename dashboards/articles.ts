// The Articles dashboard: what an article claims, whether that holds here, and its tables beside what was measured here.
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';
import { benchClaim, benchRun } from '../lib/features/influxdb/schema.ts';
import { board, runsPanel, scenarioVariable, unpublished, variable } from './board.ts';
import { verdictColumn } from './certainty.ts';
import { barsPanel } from './charts.ts';
import { pickedRun, tagValues } from './influxql.ts';
import { outcomesPanel } from './load-phases.ts';
import { dashboardNames } from './names.ts';
import { colours, noteColumn, nullAs, tablePanel, variantColumn } from './tables.ts';

const ofArticle = { equal: { article: 'article' } } as const;

const places = tablePanel({
  id: 1,
  title: 'Article ${article}',
  description: 'What it is called, what it measured on, and what its newest run here did.',
  grid: { x: 0, y: 0, w: 24, h: 4 },
  from: benchRun,
  where: ofArticle,
  newest: 1,
  columns: [
    { name: 'article_title', title: 'article', width: 260, wrapped: true },
    { name: 'article_machine', title: 'its machine', minWidth: 400, wrapped: true },
    { name: 'machine', title: 'this machine', minWidth: 400, wrapped: true },
    { name: 'started', title: 'newest run', width: 160 },
  ],
});

/** The same as in an article's page. */
const stateColours = {
  'holds here': 'green',
  'holds here, but not the size': 'semi-dark-green',
  'does not hold here': 'blue',
  'opposite here': 'red',
  'not decided': 'orange',
  'cannot be run': 'text',
};

const claims = tablePanel({
  id: 2,
  title: 'What it claims, and whether that holds here',
  description:
    'A row per claim, as the newest run that decides it found: the figures of the article, the effect here with its 95 % interval, and whether the claim holds. ' +
    'A click on a claim shows its scenario below. A claim is not decided if the interval leaves it open: more rounds may.',
  grid: { x: 0, y: 4, w: 24, h: 12 },
  from: benchClaim,
  where: ofArticle,
  newestPer: ['claim', 'scenario'],
  noRows: 'Nothing is known of its claims yet: npm run scenario -- and its number decides them.',
  columns: [
    {
      name: 'text',
      title: 'the article says',
      minWidth: 270,
      wrapped: true,
      link: {
        title: 'Show the run that says so',
        url: `/d/${dashboardNames.articles.uid}?\${datasource:queryparam}&\${article:queryparam}&var-scenario=\${__data.fields.scenario}&var-run=\${__data.fields.run}`,
      },
    },
    { name: 'figures', title: 'its figures', minWidth: 270, wrapped: true },
    // Narrower, a pair of percentiles gets more lines than Grafana gives its row.
    { name: 'makes', title: 'which make', width: 165, wrapped: true },
    { name: 'seen', title: 'here', minWidth: 270, wrapped: true },
    {
      name: 'state',
      title: 'so it',
      width: 150,
      wrapped: true,
      coloured: true,
      mappings: [colours(stateColours)],
    },
    { name: 'scenario', width: 190 },
    { name: 'run', width: 0, hidden: true },
  ],
});

const table = tablePanel({
  id: 3,
  title: '${scenario}: published beside measured',
  description:
    'One row per variant, in the order of the article. "published" figures are of its machine, the others of the run that is picked: the two compare by their ratios and effects, not by their requests/s. ' +
    '"errors/M" are attempts without a response per million requests.',
  grid: { x: 0, y: 16, w: 24, h: 9 },
  from: benchComparison,
  where: pickedRun,
  columns: [
    { ...variantColumn, minWidth: 140, wrapped: true },
    { name: 'published_rps', title: 'published req/s', width: 88 },
    { name: 'published_ratio', title: 'published ratio', width: 88 },
    { name: 'measured_rps', title: 'req/s', width: 85, mappings: [nullAs('not run')] },
    { name: 'effect', title: 'effect, 95 %', width: 175 },
    { ...verdictColumn, width: 180 },
    { name: 'p99_ms', title: 'p99', width: 85 },
    { name: 'published_errors_per_million', title: 'published errors/M', width: 88 },
    { name: 'errors_per_million', title: 'errors/M', width: 78 },
    {
      name: 'published_success_ratio',
      title: 'published success',
      width: 88,
      percent: true,
      decimals: 2,
    },
    { name: 'success_ratio', title: 'success', width: 73, percent: true, decimals: 2 },
    noteColumn,
  ],
});

const alsoPrinted = tablePanel({
  id: 6,
  title: '${scenario}: what else the article prints of a row',
  description:
    "Whether the article counts a difference as an effect; header bytes of an answer; packets of a request, of both directions; the least unused part of the server's cores; " +
    "kinds of lines on clients in the server's log, and how often each was there here.",
  grid: { x: 0, y: 25, w: 24, h: 8 },
  from: benchComparison,
  where: pickedRun,
  columns: [
    { ...variantColumn, minWidth: 140, wrapped: true },
    { name: 'published_effect', title: 'published effect', width: 88 },
    {
      name: 'published_header_bytes_per_request',
      title: 'published header/answer',
      width: 112,
      decimals: 2,
    },
    { name: 'header_bytes_per_request', title: 'header/answer', width: 112, decimals: 2 },
    { name: 'published_packets_per_request', title: 'published packets', width: 88 },
    { name: 'packets_to_server_per_request', title: 'to server', width: 80 },
    { name: 'packets_to_client_per_request', title: 'to client', width: 80 },
    { name: 'published_server_idle_share', title: 'published idle', width: 88, percent: true },
    { name: 'server_idle_share', title: 'idle', width: 60, percent: true },
    {
      name: 'published_client_errors',
      title: "published nginx's log",
      minWidth: 140,
      wrapped: true,
    },
    { name: 'client_errors', title: "nginx's log", minWidth: 140, wrapped: true },
  ],
});

const bars = barsPanel({
  id: 4,
  title: "${scenario}: requests/s, of the first row's",
  description:
    'Published beside here: each as a multiple of the first row with both, so that the two machines compare. At a constant rate the load sets requests/s, and all bars are alike.',
  grid: { x: 0, y: 42, w: 24, h: 10 },
  noBars: 'This run has no figures yet.',
});

const variables = [
  variable({ name: 'article', label: 'Article', query: tagValues(benchComparison, 'article') }),
  scenarioVariable(ofArticle),
  variable({
    name: 'run',
    label: 'Run',
    query: tagValues(benchComparison, 'run', { equal: { scenario: 'scenario' } }),
    newestFirst: true,
  }),
  unpublished,
];

/** The dashboard as Grafana reads it from a file. */
export function articlesDashboard(): Dashboard {
  return board('articles', {
    description: 'What an article claims, whether that holds here, and its tables.',
    variables,
    from: 'now-15m',
  })
    .withPanel(places)
    .withPanel(claims)
    .withPanel(table)
    .withPanel(alsoPrinted)
    .withPanel(outcomesPanel({ id: 7, y: 33 }))
    .withPanel(bars)
    .withPanel(
      runsPanel({
        id: 5,
        y: 52,
        opens: 'articles',
        where: ofArticle,
        title: 'Runs of article ${article}',
      }),
    )
    .build();
}
