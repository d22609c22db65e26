// Makes the result of a run from its rounds so far.
import { figuresOfRun } from '../analysis/figures.ts';
import { findingsOf } from '../analysis/findings.ts';
import type { MeasuredVariant } from '../analysis/verdict.ts';
import { groupedBy } from '../analysis/statistics.ts';
import { pathOfPage } from '../scenario/pages.ts';
import {
  baselineName,
  configOf,
  isConfigured,
  isOwn,
  loadOf,
  networkOf,
  pageOf,
  programOf,
} from '../scenario/variants.ts';
import { findVariants } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load.ts';
import { keptLoad, shownCommand, shownUrl } from '../secrets.ts';
import type {
  LoadProfile,
  NetworkSpec,
  Page,
  Scenario,
  ServerSpec,
  Variant,
} from '../scenario/model.ts';
import { workersFor, type Answer } from '../servers/index.ts';
import { generatorCores, sharesCores } from '../machine/cores.ts';
import { byName, present } from '../present.ts';
import { pageFacts } from './mix-files.ts';
import type { KeptRound, Plan, RunBase } from './plan.ts';
import { sentencesOf } from '../report/finding-words.ts';
import { inWords } from '../report/reasons.ts';
import type { AnyFinding, Finding } from '../result/finding.ts';
import type { Environment } from '../result/environment.ts';
import type {
  DroppedRound,
  KernelSetting,
  Result,
  Round,
  RateStep,
  VariantResult,
} from '../result/result.ts';
import { serverFiguresOf } from '../result/server-metrics.ts';

/** A dropped round with its cause, which only results of earlier versions lack. */
export interface Dropped extends DroppedRound {
  cause: Finding;
}

interface Known {
  kept: readonly KeptRound[];
  dropped?: readonly Dropped[];
  /** Number of rounds begun. */
  attempts?: number;
  /** Findings during the rounds. */
  findings: readonly AnyFinding[];
  /** Differences in the answers to a log's requests, unless the scenario's footnotes name them already. */
  lines: readonly string[];
  /** First answers, by variant. */
  answers: ReadonlyMap<string, Answer>;
  /** Steps of a load in steps in the present round. */
  unfinished: readonly RateStep[];
  /** Why the run ended early. */
  endedBy?: string | undefined;
}

export function buildResult(
  { plan, templates }: Pick<RunBase, 'plan' | 'templates'>,
  environment: Environment,
  known: Known,
  startedAt: Date,
  state: Result['state'],
): Result {
  const { scenario } = plan;
  const { dropped = [], attempts = 0 } = known;
  const measured = plan.shown.map((variant) =>
    measuredVariant(plan, variant, known, environment.versions),
  );
  const facts = {
    serverCores: plan.cores.serverCpus.length,
    generatorCores: generatorCores(plan.cores),
    sharedCores: sharesCores(plan.cores),
    ...present({ serverHost: plan.cores.serverHost }),
    quick: plan.quick,
    looks: plan.looks,
    ...present({ together: plan.together }),
    sameWithin: plan.sameWithin,
    metric: plan.metric,
    ...present({ alsoAsked: plan.alsoAsked }),
  };
  const { variants, comparisons, noiseFloor } = figuresOfRun(facts, measured, scenario);
  const findings = [
    ...findingsOf(facts, measured, variants, comparisons),
    ...droppedFindings(dropped, variants, attempts),
    ...known.findings,
  ];
  const steps = known.kept.flatMap(({ outcomes }) =>
    [...outcomes.values()].flatMap(({ stepped }) => stepped?.steps ?? []),
  );
  return {
    schema: 1,
    run: plan.run,
    scenario: scenario.name,
    title: scenario.title,
    ...present({
      article: articleOf(scenario),
      knob: knobOf(scenario, measured),
      control: scenario.control,
    }),
    startedAt: startedAt.toISOString(),
    endedAt: new Date().toISOString(),
    state,
    ...present({ endedBy: known.endedBy }),
    quick: plan.quick,
    environment,
    variants,
    ...(dropped.length > 0 && { dropped: [...dropped] }),
    comparisons: comparisons.map((judgement) => inWords(judgement, plan.sameWithin)),
    ...plan.stepped?.resultOf(measured, [...steps, ...known.unfinished]),
    ...present({ alsoAsked: plan.alsoAsked && [...plan.alsoAsked] }),
    looks: plan.looks.map(({ rounds }) => rounds),
    ...present({ together: plan.together }),
    ...present({ precision: plan.precision, prepare: plan.prepare && shownCommand(plan.prepare) }),
    sameWithin: plan.sameWithin,
    noiseFloor,
    kernelSettings: kernelSettings(plan, known),
    integrity: null,
    findings,
    warnings: sentencesOf(findings, variants.length, templates),
    footnotes: [...(scenario.footnotes ?? []), ...known.lines, ...addressNotes(plan)],
  };
}

/** The rounds that failed. @param attempts rounds begun */
function droppedFindings(
  dropped: readonly Dropped[],
  variants: readonly VariantResult[],
  attempts: number,
): Finding[] {
  const failed = dropped.filter(({ counted }) => counted === undefined);
  return failed.map(({ round, cause, rps }) => ({
    code: 'dropped',
    round,
    ...present({ with: roundsWith(cause, dropped) }),
    ...(round < attempts && { repeatedAs: round + 1 }),
    cause,
    ...present({ farthest: farthestFrom(variants, rps) }),
  }));
}

/** The rounds that counted until one failed for this cause; undefined if there are none. */
function roundsWith(cause: Dropped['cause'], dropped: readonly Dropped[]): number[] | undefined {
  const taken = dropped.filter((other) => other.counted !== undefined && other.cause === cause);
  return taken.length === 0 ? undefined : taken.map(({ round }) => round);
}

/** The requests/s that differ most from those of the rounds that count. */
function farthestFrom(variants: readonly VariantResult[], all: DroppedRound['rps']) {
  const known = variants.flatMap(({ name: variant, rps: others }) => {
    const rps = all[variant];
    if (rps === undefined || others === null) return [];
    return [{ variant, rps, othersRps: others.median }];
  });
  const distance = ({ rps, othersRps }: (typeof known)[number]) =>
    Math.abs(Math.log(rps / othersRps));
  return known.toSorted((a, b) => distance(b) - distance(a))[0];
}

function articleOf({ article }: Scenario): Result['article'] {
  return article && { id: article.id, title: article.title, date: article.date };
}

/** The scenario's knob, if its only two variants are shown; undefined for users' own configs, which may differ in more. */
export function knobOf(scenario: Scenario, shown: readonly { name: string }[]): string | undefined {
  const variants = findVariants(scenario);
  const hasOwnConfig = variants.some(({ server }) => typeof server !== 'string' && isOwn(server));
  const isTheStep =
    variants.length === 2 &&
    shown.length === 2 &&
    variants.every(({ name }, index) => name === shown[index]?.name);
  return isTheStep && !hasOwnConfig ? scenario.knob : undefined;
}

function addressNotes({ variants }: Plan): string[] {
  return variants.flatMap(({ variant: { name, server } }) => {
    if (server.name !== 'address') return [];
    const use = server.cgroup === undefined ? 'not known' : `that of ${server.cgroup}`;
    return `${name}: bakeoff did not choose the cores of the server at ${server.origin}, so its ratio depends on where it runs as much as on what it is, and its CPU use is ${use}.`;
  });
}

/** @param versions of the servers that bakeoff knows, before a round has them */
function measuredVariant(
  plan: Plan,
  variant: Variant,
  { kept, answers }: Known,
  versions: Environment['versions'],
): MeasuredVariant {
  const { scenario, cores, exact, stepped } = plan;
  const page = pageOf(scenario, variant);
  const answer = answers.get(variant.name);
  const network = networkOf(scenario, variant);
  const about = {
    name: variant.name,
    // A load in steps is not the article's load, so the article's figures do not apply.
    published: stepped === undefined ? (variant.published ?? null) : null,
    ...present({
      note: variant.note,
      series: variant.series,
      against: baselineName(scenario, variant),
      needsServerCores: variant.needsServerCores,
      network,
    }),
  };
  const profile = loadOf(scenario, variant);
  const planned = plan.variants.find(({ variant: runnable }) => runnable === variant);
  if (planned === undefined)
    return {
      ...about,
      server: null,
      publishedOnly: String(variant.server),
      load: loadInResult(profile, profile, page, answer),
      rounds: [],
      setup: '',
    };
  const {
    variant: { server: spec },
    load,
  } = planned;
  const outcomes = kept.flatMap(({ round, outcomes: byName }) => {
    const outcome = byName.get(variant.name);
    return outcome === undefined ? [] : [{ round, outcome }];
  });
  const workersOn = (serverCores: number) => workersFor(spec, serverCores, exact);
  const server = outcomes.at(-1)?.outcome.server ?? {
    name: programOf(spec),
    version: (isConfigured(spec) && versions[spec.name]) || '',
    workers: workersOn(cores.serverCpus.length),
    config: configOf(spec),
    redirections: [],
    ...(spec.name === 'address' ? { atAddress: true as const } : {}),
  };
  const setupWith = (workers: number) => setupOf(spec, workers, load, page, network);
  return {
    ...about,
    server,
    load: loadInResult(load, profile, page, answer),
    ...present({ answer: answer && byName(['encoding', 'type'], (part) => answer[part]) }),
    rounds: outcomes.map(({ round, outcome }): Round => ({
      round,
      phases: outcome.phases,
      ...serverFiguresOf(outcome),
    })),
    ...present({
      found: stepped && outcomes.flatMap(({ outcome }) => outcome.stepped?.found ?? []),
    }),
    setup: setupWith(server.workers),
    setupOnMoreCores: setupWith(workersOn(cores.serverCpus.length + 1)),
  };
}

/**
 * A load as a result keeps it: without credentials, and with its page.
 * @param profile the load before it was fitted
 */
function loadInResult(
  load: LoadProfile,
  profile: LoadProfile,
  page: Page,
  answer: Answer | undefined,
): MeasuredVariant['load'] {
  const { threads, durationSeconds, requests } = profile;
  return {
    ...keptLoad(load),
    page: shownUrl(pathOfPage(page)),
    ...present({
      bodyBytes: page.bodyBytes ?? (answer && Math.round(answer.bytes)),
      host: page.host,
      status: page.status,
      pages: page.requests?.length,
    }),
    asWritten: { threads, ...present({ durationSeconds, requests }) },
  };
}

/** A variant's properties as text: variants with the same text are the same. */
function setupOf(
  server: ServerSpec,
  workers: number,
  { command: _command, ...load }: Load,
  page: Page,
  network: NetworkSpec | undefined,
): string {
  return JSON.stringify({
    ...server,
    workers,
    articleWorkers: undefined,
    minWorkers: undefined,
    load,
    page: pageFacts(page),
    network,
  });
}

function kernelSettings({ variants }: Plan, { kept }: Known): KernelSetting[] {
  const all = variants.flatMap(({ variant: { name } }) =>
    (kept[0]?.outcomes.get(name)?.settings ?? []).map((setting) => ({ setting, variant: name })),
  );
  const groups = groupedBy(all, ({ setting: { side, name, value, problem } }) =>
    JSON.stringify([side, name, value, problem]),
  );
  return [...groups.values()].map((same) => {
    const [{ setting }] = same;
    return { ...setting, variants: same.map(({ variant }) => variant) };
  });
}
