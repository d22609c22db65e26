// A group in a round: starts its enclosures and servers, loads them, checks the figures and stores them.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { succeeded } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import type { ColdSide, Finding } from '../result/finding.ts';
import { serverFiguresOf } from '../result/server-metrics.ts';
import type { Page } from '../scenario/model.ts';
import { isMix, withRequests } from '../scenario/pages.ts';
import { configOf, isOwn } from '../scenario/variants.ts';
import {
  answerOfAll,
  isStarted,
  workersFor,
  type Answer,
  type RunningServer,
} from '../servers/index.ts';
import { otherBodiesOf } from './bodies.ts';
import {
  requireSeparateTurns,
  requireSampled,
  requireSound,
  requireIdle,
  requireOtherBackends,
} from './disturbance.ts';
import type { Enclosure } from './enclosure.ts';
import { openOwnLoopback } from './own-loopback.ts';
import { asRoundFailure, StillCold, withRps } from './failures.ts';
import {
  isStartTimed,
  orderOfRound,
  type Group,
  type PlannedVariant,
  type Attempt,
  type RunContext,
  type Stage,
  type VariantRound,
} from './plan.ts';
import { writeMixFiles } from './mix-files.ts';
import { roundFolder } from './results-folder.ts';
import { rpsOf, sideRoundsOf, type SideRound } from './side-round.ts';
import { underLoad, type LoadContext } from './under-load.ts';
import { goingOn, longerWarmup, warmAtOnce } from './warmups.ts';

/**
 * Loads a group in a round, and returns the outcome of each variant. Ends everything that it started, except after StillCold.
 * @param place of the group in the round, from 1
 * @throws UserError if a server does not start or answer right for the first time, or a machine is lost; Interrupted after a signal
 * @throws RoundFailure if a server, enclosure or k6 fails later; Disturbance if the figures cannot be trusted
 */
export async function runGroup(
  context: LoadContext,
  group: Group,
  place: number,
  attempt: Attempt,
): Promise<Map<string, VariantRound>> {
  const { machines, signal } = context;
  try {
    return await groupRound(context, group, place, attempt);
  } catch (error) {
    // A lost machine is not connected again: another run may use it once the connection has ended.
    const lost = machines.lost();
    if (!signal.aborted && lost === undefined) throw error;
    if (error instanceof StillCold) await stopAll(error.open);
    signal.throwIfAborted();
    throw new UserError(
      `${lost?.replace(/\.$/, '')}: the run ends in round ${attempt.round}, and keeps the rounds before it`,
    );
  }
}

async function groupRound(
  context: LoadContext,
  group: Group,
  place: number,
  attempt: Attempt,
): Promise<Map<string, VariantRound>> {
  const { plan, sink, signal } = context;
  const folder = join(roundFolder(context.folder, attempt.round), `k6-${place}`);
  const stages =
    attempt.open === undefined
      ? await openStages(context, group, attempt)
      : goingOn(attempt.open, group);
  try {
    await mkdir(folder, { recursive: true });
    requireOtherBackends(stages);
    if (attempt.round === 1) await requireIdle(stages, signal);
    // Requests of a log have the statuses that their servers answered with.
    await writeMixFiles(
      stages.map(({ planned }) => planned.page),
      context.folder,
    );
    const measured = await underLoad(context, group, stages, attempt, folder);
    const sides = await sideRoundsOf(measured, plan);
    const rps = rpsOf(
      plan,
      sides.map((side) => [side.stage.planned.variant.name, side] as const),
    );
    withRps(rps, () => requireWarm(sides, attempt.warmCosts));
    await stopAll(stages);
    const outcomes = withRps(rps, () => {
      requireSeparateTurns(sides);
      return sides.map((side, among) => ({
        ...side,
        outcome: outcomeOf(context, side, among, attempt),
      }));
    });
    return new Map(
      await Promise.all(
        outcomes.map(async ({ stage: { planned }, samples, outcome }) => {
          const problem = await sink?.afterLoad(plan, { planned, round: attempt.round, samples });
          if (problem) outcome.findings.push(problem);
          return [planned.variant.name, outcome] as const;
        }),
      ),
    );
  } catch (error) {
    if (!(error instanceof StillCold)) await stopAll(stages);
    throw error;
  }
}

/** @throws StillCold, with all servers still running, if one still got faster after its warm-up, and that can be longer */
function requireWarm(sides: readonly SideRound[], warmCosts: Attempt['warmCosts']): void {
  const longer = new Map<string, number>();
  const cold: ColdSide[] = [];
  for (const { stage, phases } of sides) {
    const { planned, servedSeconds } = stage;
    const { name } = planned.variant;
    const warmup = longerWarmup(planned.load, phases, warmCosts?.get(name), servedSeconds);
    if (warmup === undefined) continue;
    const { seconds, hadSeconds, before, after } = warmup;
    longer.set(name, seconds);
    cold.push({
      variant: name,
      hadSeconds,
      beforeUs: before,
      afterUs: after,
      nextSeconds: seconds,
    });
  }
  if (longer.size === 0) return;
  const open = sides.map(({ stage, phases: [first] }) => {
    const seconds = (first?.continuous?.warmupSeconds ?? 0) + (first?.seconds ?? 0);
    return { ...stage, servedSeconds: (stage.servedSeconds ?? 0) + seconds };
  });
  throw new StillCold({ code: 'still-cold', sides: cold }, longer, open);
}

/** @param place of the side among those of its group */
function outcomeOf(
  { plan }: RunContext,
  side: SideRound,
  place: number,
  { round, answers, known }: Attempt,
): VariantRound {
  const { stage, phases: all, alarms, samples } = side;
  const { planned, server, enclosure } = stage;
  const { page, variant } = planned;
  const { name } = variant;
  const facts = serverFacts(planned, server);
  requireSound(side);
  const stepped = plan.stepped?.foundBy({
    planned,
    server: facts,
    phases: all,
    outcomes: side.outcomes,
    side: place,
    cores: plan.cores,
    known: known?.get(name) ?? [],
    round,
  });
  // Only the step that stands for the round, which is chosen from sound ones, needs samples without a gap.
  const step = stepped?.found.step;
  const phases = step === undefined ? all : all.slice(step, step + 1);
  requireSampled(planned, samples, phases);
  const [first] = phases;
  if (first !== undefined && alarms.clientErrors !== undefined)
    first.clientErrors = alarms.clientErrors;
  const requests = total(all, (phase) => phase.requests);
  const answer = (isMix(page) && answers?.get(name)) || server.answer;
  const otherBodies = otherBodiesOf(planned, all, answer);
  for (const { page: name, bodyRatio } of otherBodies) {
    const noted = name === undefined ? first : first?.pages.find((some) => some.page === name);
    if (noted !== undefined) noted.bodyRatio = bodyRatio;
  }
  const ownFindings: Finding[] = [];
  if (alarms.alarm !== undefined)
    ownFindings.push({ code: 'log-alarm', variant: name, line: alarms.alarm });
  if (otherBodies.length > 0) ownFindings.push({ code: 'other-bodies', variant: name });
  return {
    server: facts,
    phases,
    requests,
    ...serverFiguresOf(side),
    findings: [...ownFindings, ...(side.enclosed?.findings ?? [])],
    describeEnd: total(phases, succeeded) < requests ? alarms.last : undefined,
    ...present({ stepped, settings: enclosure?.settings }),
    recordFile: side.recordFile,
    unsent: side.unsent,
  };
}

function serverFacts({ variant }: PlannedVariant, server: RunningServer): VariantRound['server'] {
  const { name, version, workers, redirections, atAddress } = server;
  return {
    name,
    version,
    workers,
    config: configOf(variant.server),
    redirections,
    ...present({ atAddress }),
  };
}

/**
 * Runs the plan's `prepare`, and starts the servers and enclosures of all sides: at once, or, where their start-up times are asked for, in
 * a round's order one after the other, so that none takes another's cores. Leaves none when it throws.
 * @throws UserError if `prepare` or a server's first start fails, RoundFailure for later starts
 */
export async function openStages(
  context: RunContext,
  { sides }: Group,
  { round, answers, onAnswers }: Pick<Attempt, 'round' | 'answers' | 'onAnswers'>,
): Promise<Stage[]> {
  const isFirst = answers !== undefined && sides.some(({ variant }) => !answers.has(variant.name));
  await context.prepare?.();
  const isTimed = isStartTimed(context.plan.metric, context.plan.alsoAsked);
  const opening = new Map<PlannedVariant, Promise<Stage>>();
  for (const planned of orderOfRound(sides, round, context.plan.run)) {
    const stage = openStage(context, planned, round, answers);
    opening.set(planned, stage);
    if (isTimed && !(await isOpened(stage))) break;
  }
  const opened = await Promise.allSettled(sides.flatMap((planned) => opening.get(planned) ?? []));
  const stages = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  if (!isTimed) for (const stage of stages) delete stage.startupMs;
  const failed = opened.find((result) => result.status === 'rejected');
  if (failed === undefined) {
    if (isFirst) onAnswers?.();
    return stages;
  }
  await stopAll(stages);
  context.signal.throwIfAborted();
  if (isFirst) throw failed.reason;
  return asRoundFailure(failed.reason);
}

async function isOpened(stage: Promise<Stage>): Promise<boolean> {
  const [{ status }] = await Promise.allSettled([stage]);
  return status === 'fulfilled';
}

async function stopAll(stages: readonly Stage[]): Promise<void> {
  await Promise.all(stages.map((stage) => stage.stop()));
}

/** A page without a stated length has that of the variant's first answer. */
function withLength(page: Page, first: Answer | undefined): Page {
  if (first === undefined || isMix(page) || page.bodyBytes !== undefined) return page;
  return { ...page, bodyBytes: first.bytes };
}

async function openStage(
  { plan: { cores, exact, ownLoopbacks }, tools, signal, machines, folder: runFolder }: RunContext,
  planned: PlannedVariant,
  round: number,
  answers: Attempt['answers'],
): Promise<Stage> {
  const { variant, load, page } = planned;
  const { name, server: serverSpec } = variant;
  const asked = { page: withLength(page, answers?.get(name)), load };
  let enclosure: Enclosure | undefined;
  let server: RunningServer | undefined;
  const stop = async () => {
    await server?.stop();
    await enclosure?.stop();
  };
  try {
    enclosure = await planned.enclosure?.open({ k6: tools.k6, round, cores, signal });
    if (ownLoopbacks) enclosure ??= await openOwnLoopback(signal);
    server = await machines.start(serverSpec, {
      ...asked,
      binaries: tools.servers,
      folder: join(roundFolder(runFolder, round), name),
      cpus: cores.serverCpus,
      workers: workersFor(serverSpec, cores.serverCpus.length, exact),
      ...present({ enclosure: enclosure?.server }),
      signal,
    });
    if (answers?.has(name) === false) {
      const check = { ...asked, anyLength: isOwn(serverSpec) || undefined };
      answers.set(name, await answerOfAll(server, check, signal, enclosure?.server.enter));
    }
    return {
      planned: {
        ...planned,
        load: warmAtOnce(load, serverSpec, server),
        page: withRequests(page, answers?.get(name)?.requests),
      },
      server,
      enclosure,
      ...present({ startupMs: (isStarted(server) && server.startupMs) || undefined }),
      died: firstEnd(server, enclosure).then((how) => `${name}: ${how}`),
      stop,
    };
  } catch (error) {
    await stop();
    throw error instanceof UserError
      ? new UserError(`${name}: ${error.message}`, error.exitCode)
      : error;
  }
}

function firstEnd({ died }: RunningServer, enclosure: Enclosure | undefined): Promise<string> {
  return enclosure === undefined ? died : Promise.race([died, enclosure.died]);
}
