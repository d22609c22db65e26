// calibration.html and calibration.md.
import { counts, duration, whole, formatCpuList } from '../../format.ts';
import type { Lines } from '../../report/html/figure.ts';
import {
  figureHtml,
  html,
  page,
  paragraphs,
  tableHtml,
  type Figure,
} from '../../report/html/page.ts';
import { leftColumn, rightColumn, tableOf, type Table } from '../../report/table.ts';
import { markdownTable } from '../../report/texts.ts';
import { arrangements } from './measure.ts';
import {
  judgedFigure,
  outcome,
  tableOfCases,
  tableOfDeviations,
  tableOfServers,
  voidReasons,
  type Calibration,
} from './judge.ts';
import { allNames } from '../../present.ts';

const title = 'Servers of known figures, as bakeoff and other generators see them';

const known =
  'The figures of these servers are known by arithmetic: how long an answer waits, how much CPU time it takes, how many answers there are in a second. bakeoff loads each server alone, in turns with one other, and in turns with seven; each other generator that is installed here loads it alone.';

const bounds =
  "✗: bakeoff is off by more than 3 % (requests/s, CPU time, Little's law; p50 where that is more than 0.1 ms), 10 % (p99, where that is more than 1 ms), or 5 % (the queue's growth, where that is more than 20 requests), or has an error. Each figure is measured once. Where requests come at random, a figure may also be off by three times what such a load is off by chance (its standard error). Little's law: requests/s × mean latency, as a share of the requests that are under way.";

const about = `${known} In brackets: how far a figure is from the truth. ${bounds}`;

/** What takes away from the table, as lines. */
function reservations({ cases, failures, isPartial }: Calibration): string[] {
  const early = isPartial ? ['Ended early: not all was measured.'] : [];
  return [...early, ...voidReasons(cases), ...failures];
}

function outcomeLine({ cases }: Calibration): string {
  const { known, beyond } = outcome(cases);
  if (beyond.length === 0)
    return `All ${whole(known)} figures of bakeoff whose truth is known are within their bounds.`;
  return `Beyond their bounds are ${beyond.length} of bakeoff's ${whole(known)} figures: ${beyond.join('; ')}.`;
}

function circumstances({ command, startedAt, endedAt, ...where }: Calibration): string {
  const seconds = (Date.parse(endedAt) - Date.parse(startedAt)) / 1000;
  return `${startedAt.slice(0, 16).replace('T', ' ')} UTC, ${duration(seconds)}, \`${command}\`. ${placeText(where)}`;
}

/** The machine, its cores and the programs. */
export function placeText({
  environment,
  peers,
}: Pick<Calibration, 'environment' | 'peers'>): string {
  const { cpuModel, cores, os, kernel, serverCpus, generatorCpus, versions, loadAverage } =
    environment;
  const programs = [
    ...Object.entries(versions).map(([name, version]) => `${name} ${version}`),
    ...peers.map(({ name, version }) => `${name} ${version}`),
  ];
  const where = `server on core ${formatCpuList(serverCpus)}, generator on core ${formatCpuList(generatorCpus)}`;
  return `${cpuModel}, ${counts(cores, 'core')}, ${os}, ${kernel}; ${where}; load average ${loadAverage[0].toFixed(2)} before. ${programs.join(', ')}.`;
}

const namesOf = ({ peers }: Calibration): string[] => allNames(peers);

/** Returns the page as Markdown with one table; the HTML page has all figures, and how they are known. */
export function calibrationText(calibration: Calibration): string {
  return [
    `# ${title}`,
    '',
    `${known} A row of bakeoff has the truth and, in brackets, how far the farthest of its figures is from it; a row of another generator has how far it is off. ${bounds}`,
    '',
    circumstances(calibration),
    '',
    ...reservations(calibration).flatMap((line) => [`**${line}**`, '']),
    outcomeLine(calibration),
    '',
    ...markdownTable(tableOfDeviations(calibration.cases, namesOf(calibration))),
    '',
  ].join('\n');
}

/** The page as HTML, in one file. */
export function calibrationPage(calibration: Calibration): Promise<string> {
  const { cases } = calibration;
  const figures = [
    deviations(calibration, 'rps', 'Requests/s'),
    deviations(calibration, 'p50Ms', 'p50'),
    deviations(calibration, 'p99Ms', 'p99'),
  ];
  const body = html`<header><h1>${title}</h1></header>
${paragraphs([about, circumstances(calibration), ...reservations(calibration), outcomeLine(calibration)])}
<section>${tableHtml(tableOfCases(cases, namesOf(calibration)), 'the figures')}</section>
<section>${figures.map(figureHtml)}</section>
<section><h2>How the figures are known</h2>${tableHtml(tableOfServers(cases), 'the servers', { wraps: true })}</section>`;
  return page(title, body, figures);
}

/** A plot of a figure, measured by truth, for each server and place. */
function deviations(
  calibration: Calibration,
  name: 'rps' | 'p50Ms' | 'p99Ms',
  figureTitle: string,
): Figure {
  const places = [...arrangements, ...namesOf(calibration)];
  const marks: Lines['marks'] = [];
  for (const [index, testCase] of calibration.cases.entries()) {
    for (const [place, where] of places.entries()) {
      const off = judgedFigure(testCase, where, name)?.off ?? null;
      if (off === null) continue;
      marks.push({
        name: where,
        // Side by side within the server's place.
        x: index + 1 + (0.7 * (place - (places.length - 1) / 2)) / places.length,
        y: 1 + off,
        title: `${testCase.known.name}, ${where}: ×${(1 + off).toFixed(3)} of the truth`,
      });
    }
  }
  const servers = calibration.cases.map(({ known }, index) => ({
    number: index + 1,
    name: known.name,
  }));
  const numbers: Table = tableOf(servers, [
    rightColumn('number', ({ number }) => String(number)),
    leftColumn('server', (server) => server.name),
  ]);
  return {
    title: `${figureTitle}: measured by true`,
    text: '1 is right. Each number below is a server, in the order of the table.',
    data: {
      kind: 'lines',
      x: {
        title: 'server',
        ticks: servers.map(({ number }) => ({ at: number, text: String(number) })),
      },
      y: { title: 'measured / true', isLog: true },
      names: places,
      limit: { y: 1, text: '' },
      marks,
      lines: [],
    },
    tables: [numbers],
  };
}
