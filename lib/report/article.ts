// The page of an article: its claims, environment and tables, beside the measurements on this machine.
import type { Environment } from '../result/environment.ts';
import type { Result, Verdict } from '../result/result.ts';
import type { Article, Claim } from '../scenario/article.ts';
import { counts, duration, enumeration } from '../format.ts';
import { isLatency } from '../analysis/metrics.ts';
import { sentencesOf } from './finding-words.ts';
import { allNames } from '../present.ts';
import { chartsOf } from './charts.ts';
import { decideClaim, type ClaimState } from './claims.ts';
import { madeBy, ownFigures } from './own-figures.ts';
import type { Contribution } from './contribution.ts';
import { generatorPlace, headingLines, resultHeading, serversPlace } from './heading.ts';
import { loadPart } from './load-tables.ts';
import { ownParts, tableParts } from './run-tables.ts';
import { noteLines, verdictLines, warningLines } from './sentences.ts';
import {
  cellText,
  leftColumn,
  measuredGroup,
  tableOf,
  type Heading,
  type Part,
  type Table,
} from './table.ts';
import { markdownParagraphs, partLines } from './texts.ts';

/** An article and what was measured of it. */
export interface ArticleRun {
  article: Article;
  /** Results by keyOfResult: the scenarios in the article's order, then runs that were made for a claim. */
  results: ReadonlyMap<string, Result>;
  /** Scenarios that could not be run, a line each. */
  missing: readonly string[];
}

/** "h2o vs nginx (2015-05-06)", with the author where the text names one. */
export function articleTitle({ title, author, date }: Article): string {
  return `${title} (${author === undefined ? '' : `${author}, `}${date})`;
}

/** The verdict whose colour shows each state. */
export const colours: Readonly<Record<ClaimState, Verdict>> = {
  'holds here': 'faster',
  'holds here, but not the size': 'faster',
  'does not hold here': 'same',
  'opposite here': 'slower',
  'not decided': 'inconclusive',
  'cannot be run': 'inconclusive',
};

/**
 * Returns a row per claim: the article's figures, the measured figures, and whether the claim holds.
 * @param inItsWords adds a column with the article's exact words
 */
export function claimsTable({ article, results, missing }: ArticleRun, inItsWords = false): Table {
  const rows = (article.claims ?? []).map((claim) => ({
    ...claim,
    ...decideClaim(claim, article, results, missing),
    support: ownFigures(claim, article, results),
  }));
  const words = leftColumn('in its words', ({ quote, place }: Claim) => `“${quote}” (${place})`);
  return tableOf(rows, [
    leftColumn('the article says', ({ text }) => text),
    ...(inItsWords ? [words] : []),
    leftColumn('state', ({ state }) => ({ text: state, part: state, verdict: colours[state] })),
    leftColumn('its figures', ({ figures }) => figures),
    leftColumn('which make', ({ support }) => {
      const text = madeBy(support);
      const agree = support.every(({ agrees }) => agrees);
      return agree ? text : { text, part: text, verdict: 'inconclusive' };
    }),
    leftColumn('here', ({ seen }) => seen),
  ]);
}

/** "6 of 7 decided claims hold here; 4 not decided." No line for an article without claims. */
export function claimsLines({ article, results, missing }: ArticleRun): string[] {
  const states = (article.claims ?? []).map(
    (claim) => decideClaim(claim, article, results, missing).state,
  );
  const number = (...some: ClaimState[]) => states.filter((state) => some.includes(state)).length;
  const open = number('not decided');
  const impossible = number('cannot be run');
  const decided = states.length - open - impossible;
  const holding = number('holds here');
  let line = `${holding} of ${counts(decided, 'decided claim')} ${decided === 1 ? 'holds' : 'hold'} here`;
  if (open > 0) line += `; ${open} not decided`;
  if (impossible > 0) line += `; ${impossible} cannot be run`;
  return states.length === 0 ? [] : [`${line}.`];
}

/** They have no part in a load. */
const ofNoLoad: ReadonlySet<string> = new Set(['node', 'influxdb']);

/** The article's machine beside this one. */
function environmentsTable({
  article: { source, machine = {}, commands = [] },
  results,
}: ArticleRun): Table {
  const [first] = results.values();
  const thisMachine = first === undefined ? [] : measuredEnvironment(first.environment);
  const versions = new Set<string>();
  for (const { environment } of results.values())
    for (const [name, version] of Object.entries(environment.versions))
      if (!ofNoLoad.has(name)) versions.add(`${name} ${version}`);
  const [hardware = '', os = '', kernel = ''] = thisMachine;
  const rows: [string, string | undefined, string][] = [
    ['machine', machine.hardware, hardware],
    ['system', machine.os, os],
    ['kernel', machine.kernel, kernel],
    ['compiler', machine.compiler, ''],
    ['programs', machine.servers, [...versions].join(', ')],
    ['loads', commands.join(' · '), 'the same lines, read by the load engine in k6'],
  ];
  if (source !== undefined) rows.unshift(['text', source, '']);
  return tableOf(rows, [
    leftColumn('environment', ([name]) => name),
    leftColumn('article', ([, article = 'it does not say']) => article),
    leftColumn('here', ([, , local]) => local),
  ]);
}

/** The machine with the places of servers and k6, its system and its kernel. */
export function measuredEnvironment(environment: Environment): [string, string, string] {
  const places = `servers on ${serversPlace(environment)}, k6 on ${generatorPlace(environment)}`;
  return [`${environment.cpuModel}; ${places}`, environment.os, environment.kernel];
}

/**
 * Returns the parts of the page before those of its scenarios.
 * @param inItsWords adds the exact words of the claims, and of sentences that are not tested as claims
 */
export function articleHead(run: ArticleRun, inItsWords = false): Part[] {
  const { missing, article } = run;
  const leftOut = inItsWords ? (article.leftOut ?? []) : [];
  const lines = leftOut.map(({ quote, why }) => `No claim here: “${quote}”: ${why}.`);
  return [
    {
      title: 'What it claims',
      tables: [claimsTable(run, inItsWords)],
      below: [...claimsLines(run), ...missing, ...lines],
    },
    { title: 'Where it was measured', tables: [environmentsTable(run)], below: [] },
  ];
}

/** A scenario's tables, published beside measured, and its sentences. @param key of the result */
export function scenarioPart(
  key: string,
  result: Result,
  contributions: readonly Contribution[],
): Part {
  const tables = tableParts(result, contributions).flatMap((part) => part.tables);
  const below = [...verdictLines(result, contributions), ...runLines(result)];
  return { title: titleOf(key, result), tables, below };
}

const isForClaim = (key: string, { scenario }: Result): boolean => key.startsWith(`${scenario} `);

function titleOf(key: string, result: Result): string {
  const { title, variants } = result;
  return isForClaim(key, result) ? `${title}: ${enumeration(allNames(variants))} alone` : title;
}

/** Says how a scenario was run, and what its run warned of. */
function runLines(result: Result): string[] {
  const [how = ''] = headingLines(resultHeading(result));
  return [how, ...warningLines(result)];
}

/** Returns collapsed details: each load in its tool's format, published and measured; and notes, with the kernel settings in effect. */
export function scenarioDetails(result: Result, contributions: readonly Contribution[]): Part[] {
  const parts = loadPart(result, contributions);
  const notes = noteLines(result);
  if (notes.length > 0) parts.push({ title: 'Notes', tables: [], below: notes });
  return parts;
}

/** The same in short: the claims' table has the loads, and no p99 that is neither judged nor published is in the Markdown. */
function shortRunLines(result: Result): string[] {
  const { scenario, comparisons, variants, findings, quick } = result;
  const isOfTail = comparisons.some(({ metric }) => isLatency(metric));
  const late = isOfTail ? [] : findings.filter(({ code }) => code === 'late-reads');
  const leftOut = sentencesOf(late, variants.length);
  const warnings = result.warnings.filter((warning) => !leftOut.includes(warning));
  const { rounds, seconds } = resultHeading(result);
  const how = `${scenario}: ${counts(rounds, 'round')}, ${duration(seconds)}${quick ? ', --quick' : ''}`;
  return [how, ...warningLines({ ...result, warnings })];
}

/** Measured figures that the Markdown leaves out, unless the article printed them. */
const besideVerdict = ['CPU µs/req', 'p50 ms', 'p99 ms', 'max ms', 'errors/M'];

/** A table without figures that nobody published, and without the success of requests if all succeeded. */
function shortTable({ columns, rows }: Table): Table {
  const published = columns.filter(({ group }) => group === 'published').map(({ title }) => title);
  const isShown = ({ group, title }: Heading, place: number): boolean => {
    if (group !== measuredGroup || published.includes(title.replace(' ms', ''))) return true;
    const isFull =
      title === 'success' &&
      rows.every((row) => ['100 %', ''].includes(cellText(row[place] ?? '')));
    return !isFull && !besideVerdict.includes(title);
  };
  const shown = columns.map(isShown);
  return {
    columns: columns.filter(isShown),
    rows: rows.map((row) => row.filter((_, index) => shown[index])),
  };
}

/** The page as Markdown, short enough for a repository: claims, environment, and each scenario's table. All else is on the HTML page. */
export function articleMarkdown(run: ArticleRun): string {
  const scenarios = [...run.results].map(([key, result]): Part => {
    const title = titleOf(key, result);
    // What it says is in the table of claims.
    if (isForClaim(key, result)) return { title, tables: [], below: shortRunLines(result) };
    const parts = [...ownParts(result), ...chartsOf(result)];
    const tables = parts.flatMap((part) => part.tables).map(shortTable);
    return { title, tables, below: shortRunLines(result) };
  });
  const sections = [...articleHead(run), ...scenarios].flatMap(({ title, ...part }) => [
    ...markdownParagraphs([`## ${title}`]),
    ...partLines({ ...part, title: '' }),
  ]);
  return [...markdownParagraphs([`# ${articleTitle(run.article)}`]), ...sections].join('\n');
}
