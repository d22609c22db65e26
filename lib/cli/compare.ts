// npm run compare: two sides or more, as they are.
import { usageError } from '../errors.ts';
import { present } from '../present.ts';
import { check, givenName } from '../form.ts';
import { makePlan } from '../runner/make-plan.ts';
import type { RunFolder } from '../runner/results-folder.ts';
import type { RunOutcome } from '../runner/run.ts';
import type { PlanDraft } from '../runner/plan.ts';
import { pathOfPage, withRequests } from '../scenario/pages.ts';
import type { Page, Scenario, Variant } from '../scenario/model.ts';
import { typed } from '../setup/paths.ts';
import { anyServer } from '../setup/servers.ts';
import { askedFlags, readAsked, sideFlags } from './asked.ts';
import type { AddedSides, Additions, RunPart } from './feature.ts';
import { sidesWithLoads, type Side } from './side-loads.ts';
import { readSides } from './sides.ts';
import { readRunOptions, runFlags, type RunOptions } from './run-options.ts';
import {
  getTools,
  preparing,
  runPlan,
  takeMachine,
  waitForOtherRuns,
  withRun,
  type ReadyRun,
} from './run.ts';
import { print, reportRun, say, terminalOf } from './run-output.ts';
import { canBeApart, tryOnce, type Tried } from './start-sides.ts';
import { printGroupedHelp, readArguments, type Arguments, type Flag } from './arguments.ts';
import { lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { enumeration, whole } from '../format.ts';
import { answerColumns, differencesTable, differencesTitle } from '../report/differences.ts';
import { requestLines } from '../report/pages.ts';
import { leftColumn, terminalTable, type Table } from '../report/table.ts';
import { redirectionLines } from '../report/sentences.ts';
import { shownUrl } from '../secrets.ts';
import { isLoopback } from '../servers/index.ts';
import { protocolName } from '../scenario/load.ts';
import { isConfigured } from '../scenario/variants.ts';
import { defineScenario } from '../scenario/define-scenario.ts';

const ownFlags = {
  load: { ...sideFlags.load, help: `${sideFlags.load.help}; NAME="…" for one side` },
  bin: { ...sideFlags.bin, help: `${sideFlags.bin.help}; NAME:nginx=PATH for one side` },
  port: {
    group: 'machine',
    value: 'PORT',
    repeated: true,
    help: 'the port of a command that has its own; NAME=PORT for one side',
  },
  cgroup: {
    group: 'machine',
    rare: true,
    value: 'FOLDER',
    repeated: true,
    help: 'the control group of an address, such as its container, whose CPU time is measured; NAME=FOLDER for one side',
  },
  name: {
    group: 'output',
    rare: true,
    value: 'gzip-levels',
    help: 'its name in results, report and Grafana (compare)',
  },
  h3: { group: 'request', help: 'over HTTP/3' },
  'allow-different-bodies': {
    group: 'request',
    rare: true,
    help: 'bodies of one length may differ, as of pages that change',
  },
} as const satisfies Record<string, Flag>;

/** All flags of compare. */
export function compareFlagsWith(parts: readonly RunPart[]): Record<string, Flag> {
  return { ...sideFlagsOf(parts), ...askedFlags(parts), ...ownFlags, ...runFlags(parts) };
}

/**
 * Returns the exit code; without arguments prints the help and returns 2. Throws UserError and Interrupted.
 * @param tell prints and judges the outcome, also that of a run that was ended early
 */
export async function compareCommand(
  args: readonly string[],
  additions: Additions,
  tell = (outcome: RunOutcome & { folder: RunFolder }, options: RunOptions) =>
    reportRun(outcome, options),
): Promise<number> {
  const { runParts } = additions;
  const compareFlags = compareFlagsWith(runParts);
  const parsed = readArguments(args, compareFlags, true);
  const { flags } = parsed;
  const options = readRunOptions(parsed, additions);
  if (options.help || args.length === 0) {
    printGroupedHelp(help, compareFlags, parsed.positionals.includes('all'));
    return options.help ? 0 : 2;
  }
  const called = flags.get('name') ?? usualName;
  const outcome = check(givenName, called);
  if ('problem' in outcome) throw usageError(`--name ${outcome.problem}`);
  const { given, make } = await sidesOf(parsed, runParts);
  const asked = await readAsked(parsed, given, runParts);
  const kinds = given.map(({ source }) => source.kind);
  return withRun(options, kinds, {}, async (run) => {
    const sides = sidesWithLoads(given, asked, run.cores);
    const same = await sameSides(sides);
    const planOf = (scenario: Scenario, ownLoopbacks = false) => {
      const asked = { ...options, exact: false, ownLoopbacks };
      const draft = makePlan(scenario, scenario.variants, run.cores, asked);
      return options.instead?.plan(draft) ?? draft;
    };
    // What cannot be planned is refused before anything is installed or started; the answers of the sides complete the plan.
    planOf(scenarioOf(sides, same, called));
    const servers = sides.map(({ server }) => server);
    const ready = await getTools(run, servers, options);
    await make?.(
      ready.signal,
      (lines) => say(options, lines),
      async () => ready.onClose(await waitForOtherRuns(options, ready.signal)),
    );
    const tried = await tryAll(sides, ready, options);
    const comparable = flags.has('allow-different-bodies') ? tried.map(withoutHash) : tried;
    const comparison = scenarioOfSides(comparable, same, called);
    sayDifferences(comparison, [...asked.notes, ...oneServerLines(same)], options);
    const planned = planOf(comparison.scenario, await canBeApart(tried, ready, options));
    const answerSeconds = ofVariants(planned, tried, (side) => side.answerSeconds ?? 0);
    const draft = { ...planned, answerSeconds };
    const answers = ofVariants(draft, tried, ({ answer }) => answer);
    const storing = await takeMachine(ready, draft, options, make !== undefined);
    const outcome = await runPlan(storing, draft, options, [], answers);
    return tell(outcome, options);
  });
}

function sideFlagsOf(parts: readonly RunPart[]): Record<string, Flag> {
  return Object.assign({}, ...parts.map(({ sideFlags }) => sideFlags)) as Record<string, Flag>;
}

/** The sides that a feature's flags ask for, or those that stand as words. Throws UserError (exit code 2). */
async function sidesOf(
  parsed: Arguments,
  parts: readonly RunPart[],
): Promise<Partial<AddedSides> & Pick<AddedSides, 'given'>> {
  for (const part of parts) {
    const added = await part.sides?.(parsed);
    if (added !== undefined) return added;
  }
  return { given: await readSides(parsed.positionals, parsed.flags.get('in')) };
}

/** Starts each side once, after the command that builds them. Throws UserError with the side's name. */
async function tryAll(
  sides: readonly Side[],
  ready: ReadyRun,
  options: RunOptions,
): Promise<Tried[]> {
  // A side may be of what it builds.
  await preparing(options.prepare, ready.signal, (line) => say(options, [line]))?.();
  const tried: Tried[] = [];
  for (const side of sides) tried.push(await tryOnce(side, ready));
  requireBackends(tried);
  return tried;
}

/** Prints what was redirected and what differs. @param first lines that come before */
function sayDifferences(
  { redirections, table, advice }: ReturnType<typeof scenarioOfSides>,
  first: readonly string[],
  options: RunOptions,
): void {
  // With --verbose the footnotes have them.
  say(options, options.verbose ? first : [...first, ...redirections]);
  if (table !== undefined)
    print(options, [differencesTitle, ...terminalTable(table, terminalOf(options))]);
  say(options, advice);
}

/** What is known of the sides, by variant: at several rates a side has several. */
function ofVariants<T>(
  { variants }: PlanDraft,
  tried: readonly Tried[],
  of: (side: Tried) => T,
): Map<string, T> {
  const all = new Map<string, T>();
  for (const side of tried)
    for (const { variant } of variants)
      if (side.name === (variant.series ?? variant.name)) all.set(variant.name, of(side));
  return all;
}

function withoutHash(side: Tried): Tried {
  const { each, ...answer } = side.answer;
  const hidden = each?.map((response) => ({ ...response, hash: '' }));
  return { ...side, answer: { ...answer, hash: '', ...present({ each: hidden }) } };
}

function requireBackends(sides: readonly Tried[]): void {
  const lines = sides.flatMap(({ redirections }) => redirections);
  const unused = sides
    .flatMap(({ server }) => Object.entries((isConfigured(server) && server.asIs?.upstreams) || {}))
    .find(
      ([name, to]) =>
        !lines.some((line) => line.toLowerCase().includes(name) && line.includes(` at ${to}`)),
    );
  if (unused !== undefined)
    throw usageError(`--upstream ${unused.join('=')}: no side passes requests to ${unused[0]}`);
}

const help = [
  `${typed('compare')} SIDE SIDE … [flags]`,
  '',
  'Compares two to sixteen servers. The first is the baseline. A side is one of:',
  `  a.conf                  a config of ${anyServer}. The file is not changed.`,
  "  'node server.js'        a command. It listens on 127.0.0.1 at the port in PORT or {port}.",
  '  http://127.0.0.1:8080/  a running server. One on another machine needs --host.',
  'NAME=SIDE names a side: old=a.conf new=b.conf',
];

const usualName = 'compare';

/** Groups equal sides: a difference within a group is noise. Sides without an equal are left out. */
export async function sameSides(sides: readonly Side[]): Promise<Side[][]> {
  const groups: [Side, ...Side[]][] = [];
  for (const side of sides) {
    const alike = await Promise.all(groups.map(([first]) => isSame(first, side)));
    const group = groups[alike.indexOf(true)];
    if (group === undefined) groups.push([side]);
    else group.push(side);
  }
  return groups.filter((group) => group.length > 1);
}

async function isSame(a: Side, b: Side): Promise<boolean> {
  const hasOneAddress = await areOneAddress(a, b);
  const settings = ({ load, page, listen, server }: Side) => [
    load,
    page,
    listen.port,
    isConfigured(server) ? { ...server, config: [] } : server,
  ];
  const named = hasOneAddress ? { ...b, server: a.server } : b;
  if (!isDeepStrictEqual(settings(a), settings(named))) return false;
  if (a.source.kind !== 'config' || b.source.kind !== 'config') return true;
  const [fileA, fileB] = [a.source.config.file, b.source.config.file];
  const text = await readFile(fileA);
  if (!text.equals(await readFile(fileB))) return false;
  if (path.dirname(fileA) === path.dirname(fileB)) return true;
  // In another folder, relative paths lead elsewhere: nginx's includes and roots, and all that the others serve.
  return (
    a.source.config.server === 'nginx' &&
    !/\b(?:include|root|alias)\s+["']?[^/\s"']/.test(text.toString('utf8'))
  );
}

/** Returns whether both are addresses of one port of this machine. Other hosts' names may be different sites of one server. */
async function areOneAddress(a: Side, b: Side): Promise<boolean> {
  if (a.server.name !== 'address' || b.server.name !== 'address') return false;
  const [one, other] = [new URL(a.server.origin), new URL(b.server.origin)];
  if (one.protocol !== other.protocol || one.port !== other.port) return false;
  const [found, others] = await Promise.all([loopbackAddresses(one), loopbackAddresses(other)]);
  return found.some((address) => others.includes(address));
}

/** The addresses of a URL's host, if it names this machine; else none. */
async function loopbackAddresses({ hostname }: URL): Promise<string[]> {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (!isLoopback(host)) return [];
  const addresses = await lookup(host, { all: true }).catch(() => []);
  return addresses.map(({ address }) => address);
}

/** Says which addresses are of one server. */
function oneServerLines(same: readonly (readonly Side[])[]): string[] {
  const groups = same.filter(([first]) => first?.source.kind === 'address');
  return groups.map(
    (group) =>
      `${givenOrNames(group)} are one server: what differs between them is noise, and there is no verdict on it.`,
  );
}

/** Returns what the user gave for the sides, or their names if all gave the same. */
function givenOrNames(group: readonly Side[]): string {
  const given = group.map((side) => side.given);
  const names = new Set(given).size === given.length ? given : group.map(({ name }) => name);
  return enumeration(names);
}

/**
 * Makes the scenario that compares the sides.
 * @param same the groups from sameSides
 * @param footnotes notes on the answers
 */
function scenarioOf(
  sides: readonly (Side & Partial<Pick<Tried, 'answer'>>)[],
  same: readonly (readonly Side[])[],
  name: string,
  footnotes: readonly string[] = [],
): Scenario {
  const [first, second] = sides as [Side, Side];
  const isControl = same[0]?.length === sides.length;
  const titles = titlesOf(sides);
  return {
    name,
    title: sides.length === 2 ? titles.join(' against ') : enumeration(titles),
    knob: second.name,
    load: first.load,
    page: pageOf(first),
    variants: sides.map((side): Variant => ({
      name: side.name,
      server: serverIn(side, same),
      ...present({
        load: isDeepStrictEqual(side.load, first.load) ? undefined : side.load,
        page: isDeepStrictEqual(pageOf(side), pageOf(first)) ? undefined : pageOf(side),
      }),
    })),
    ...present({ control: isControl || undefined }),
    footnotes: [...same.map((group) => sameLine(group, isControl)), ...footnotes],
  };
}

/** The side's server. Names of one address have the first one, so that they count as one server. */
function serverIn(side: Side, same: readonly (readonly Side[])[]): Side['server'] {
  if (side.source.kind !== 'address') return side.server;
  const group = same.find((sides) => sides.some(({ name }) => name === side.name));
  return group?.[0]?.server ?? side.server;
}

/** A side's page, with the length and the statuses of its answer once it is known. */
function pageOf({ page, answer }: Side & Partial<Pick<Tried, 'answer'>>): Page {
  if (answer === undefined) return page;
  return { ...withRequests(page, answer.requests), bodyBytes: Math.round(answer.bytes) };
}

/**
 * Makes the scenario, with what to print before it: `redirections` are the changes to configs, `table` shows in what the sides differ,
 * and `advice` says what to do.
 * @param same the groups from sameSides
 */
export function scenarioOfSides(
  sides: readonly Tried[],
  same: readonly (readonly Side[])[],
  name = usualName,
) {
  const differing = differenceLines(sides);
  return {
    scenario: defineScenario(scenarioOf(sides, same, name, differing)),
    redirections: redirectionLines(sides),
    table: differingTable(sides),
    advice: [...differing, ...offerLines(sides)],
  };
}

function titlesOf(sides: readonly Side[]): string[] {
  const short = sides.map(({ given }) => path.basename(given));
  return new Set(short).size === short.length ? short : sides.map(({ given }) => given);
}

function sameLine(group: readonly Side[], isControl: boolean): string {
  if (isControl)
    return `${group.length === 2 ? 'Both' : 'All'} sides are written alike: what differs is noise, or something that they share.`;
  return `${givenOrNames(group)} are written alike: what differs between them is noise, or something that they share.`;
}

function differingTable(sides: readonly Tried[]): Table | undefined {
  const { status, compression, bytes, type } = answerColumns;
  return differencesTable<Tried>(sides, [
    status,
    compression,
    bytes,
    type,
    leftColumn('page', ({ page }) => shownUrl(pathOfPage(page))),
    leftColumn('protocol', ({ load }) => protocolName(load)),
    ...(isEncoded(sides) ? [] : [leftColumn('compression on offer', offerText)]),
  ]);
}

const isEncoded = (sides: readonly Tried[]): boolean =>
  sides.some(({ answer }) => answer.encoding !== '');

function offerText({ offered }: Tried): string {
  return offered?.encoding ? `${offered.encoding}, ${whole(offered.bytes)} B` : 'none';
}

/** What no table can say: answers to a log's requests, and bodies of one length. */
function differenceLines(sides: readonly Tried[]): string[] {
  const differIn = (of: (side: Tried) => unknown) => new Set(sides.map(of)).size > 1;
  const lines = requestLines(sides);
  if (differIn(({ answer }) => answer.hash) && !differIn(({ answer }) => whole(answer.bytes)))
    lines.push(
      'The bodies differ, though not in length: check whether all sides serve the same page; --allow-different-bodies if it changes with each request.',
    );
  return lines;
}

function offerLines(sides: readonly Tried[]): string[] {
  return isEncoded(sides) || new Set(sides.map(offerText)).size === 1
    ? []
    : [
        "No side was asked for compression, so it does not count here: add -H 'Accept-Encoding: gzip' to --load to compare it.",
      ];
}
