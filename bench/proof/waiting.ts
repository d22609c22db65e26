// Whether turns distort the figures of waiting servers: each known server alone and in turns with others.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { mergedLatency, valuesIn } from '../../lib/analysis/latency.ts';
import { roundRps, serverCpuSecondsPerResponse } from '../../lib/analysis/phases.ts';
import { total } from '../../lib/analysis/statistics.ts';
import { UserError } from '../../lib/errors.ts';
import { enumeration, whole } from '../../lib/format.ts';
import type { Phase } from '../../lib/result/result.ts';
import { orderOfRound } from '../../lib/runner/plan.ts';
import { defineScenario } from '../../lib/scenario/index.ts';
import type { ServerSpec, Variant } from '../../lib/scenario/model.ts';
import { startServer, type RunningServer } from '../../lib/servers/index.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import {
  backendPage,
  backendServers,
  companion,
  knownServers,
  mixed,
  usualSeconds,
  type Known,
  type KnownServer,
} from './known.ts';
import { inContext, noted, oneRound, type Lab } from './lab.ts';
import type { Arrangement, KnownFigures, KnownRound, MixedRound, ProofData } from './results.ts';
import { buildTimed, timedServers } from './timed.ts';
import { growthText, isBeyondBounds, mixedName } from './waiting-view.ts';

const arrangements: readonly Arrangement[] = ['alone', 'two', 'eight'];

/** Limit of rounds, as a multiple of the requested number. */
const mostRounds = 3;

/**
 * Each round measures every server in all arrangements, in a different order. Servers with a figure out of bounds get more
 * rounds, because out of more than a hundred figures some are out of bounds by chance. Medians are over all rounds.
 */
export async function measureWaiting(
  lab: Lab,
  data: ProofData['waiting'],
  save: () => Promise<void>,
): Promise<void> {
  const folder = join(lab.scratch, 'waiting');
  await mkdir(folder, { recursive: true });
  const started: RunningServer[] = [];
  const backend = async (name: keyof typeof backendServers): Promise<string> => {
    const server = await startServer(backendServers[name], {
      binaries: lab.binaries,
      folder: join(folder, `backend-${name}`),
      cpus: lab.cores.serverCpus,
      workers: 1,
      page: backendPage,
      signal: lab.signal,
    });
    started.push(server);
    return server.origin;
  };
  try {
    const all = [
      ...(await knownServers(folder, {
        inTurns: await backend('inTurns'),
        alone: await backend('alone'),
      })),
      ...timedServers(await buildTimed(thisMachine(), folder, lab.signal)),
    ];
    const { cases, withMixed } = chosenCases(all, lab.only);
    for (const { name, how } of cases) data.cases.push({ name, how, rounds: [] });
    if (!withMixed) data.mixed = null;
    // A selection of cases is a trial, so there are no additional rounds.
    const rounds = lab.only === undefined ? mostRounds * lab.repeats : lab.repeats;
    for (let round = 1; round <= rounds; round++) {
      const isOneMore = round > lab.repeats;
      const say = (name: string, line: string): void =>
        lab.say(`round ${round}${isOneMore ? '' : ` of ${lab.repeats}`}, ${name}: ${line}`);
      const left = isOneMore
        ? cases.filter(({ name }) =>
            data.cases.some((measured) => measured.name === name && isBeyondBounds(measured)),
          )
        : cases;
      for (const known of orderOfRound(left, round, 'waiting')) {
        const seen = await noted(lab, () => roundOf(lab, known, round));
        if (seen === undefined) continue;
        data.cases.find(({ name }) => name === known.name)?.rounds.push(seen);
        say(known.name, arrangements.map((name) => `${name} ${shown(seen[name])}`).join(' · '));
        await save();
      }
      if (isOneMore || data.mixed === null) continue;
      const seen = await noted(lab, () => mixedRound(lab, round));
      if (seen === undefined) continue;
      data.mixed.rounds.push(seen);
      say(
        mixed.how,
        enumeration(
          [...seen.together.waiting, ...seen.together.computing].map(({ rps }) => whole(rps)),
        ),
      );
      await save();
    }
  } finally {
    for (const server of started) await server.stop();
  }
}

/** @param only a full name or a prefix @throws UserError (exit code 2) if no name matches */
export function chosenCases<One extends Pick<Known, 'name' | 'onRequest'>>(
  all: readonly One[],
  only: string | undefined,
): { cases: One[]; withMixed: boolean } {
  if (only === undefined)
    return { cases: all.filter(({ onRequest }) => onRequest !== true), withMixed: true };
  const named = all.filter(({ name }) => name === only);
  const cases = named.length > 0 ? named : all.filter(({ name }) => name.startsWith(only));
  const withMixed = mixedName.startsWith(only);
  if (cases.length === 0 && !withMixed)
    throw new UserError(
      `--only ${only}: no case begins so. They are ${enumeration([...all.map(({ name }) => `"${name}"`), `"${mixedName}"`])}`,
      2,
    );
  return { cases, withMixed };
}

async function roundOf(lab: Lab, known: Known, round: number): Promise<KnownRound> {
  const { server, plain, seconds = usualSeconds } = known;
  const seen: Partial<Record<Arrangement | 'plain', KnownFigures>> = {};
  for (const name of orderOfRound(
    [...arrangements, ...(plain === undefined ? [] : ['plain' as const])],
    round,
    known.name,
  )) {
    const [loadedServer, others] = {
      plain: [plain ?? server, 0],
      alone: [known.alone ?? server, 0],
      two: [server, 1],
      eight: [server, 7],
    }[name] as [ServerSpec, number];
    const load = { ...known.load };
    if (others === 0 && known.aloneWarmupSeconds !== undefined)
      load.warmupSeconds = known.aloneWarmupSeconds;
    const all = [
      { ...known, server: loadedServer, load },
      ...Array<KnownServer>(others).fill(besides(known)),
    ];
    [seen[name]] = await loaded(lab, round, all, seconds[name === 'plain' ? 'alone' : name]);
  }
  const { alone, two, eight } = seen as Record<Arrangement, KnownFigures>;
  return { expected: known.expected(alone, seen.plain ?? alone), alone, two, eight };
}

/** The runner requires that either all sides in turns have a rate, or none. */
function besides({ load }: Known): KnownServer {
  return load.rate === undefined ? companion : { ...companion, load };
}

async function mixedRound(lab: Lab, round: number): Promise<MixedRound> {
  const { waiting, computing } = mixed.sides;
  const alone = async (side: KnownServer): Promise<KnownFigures> =>
    (
      await loaded(lab, round, [{ ...side, server: side.alone ?? side.server }], usualSeconds.alone)
    )[0];
  const [first, second, third, fourth] = (await loaded(
    lab,
    round,
    [waiting, computing, computing, waiting],
    usualSeconds.two,
  )) as [KnownFigures, KnownFigures, KnownFigures, KnownFigures];
  return {
    alone: { waiting: await alone(waiting), computing: await alone(computing) },
    together: { waiting: [first, fourth], computing: [second, third] },
  };
}

/** Runs one round of these servers, in turns if there are several. Returns the figures of each. */
async function loaded(
  lab: Lab,
  round: number,
  servers: readonly KnownServer[],
  durationSeconds: number,
): Promise<[KnownFigures, ...KnownFigures[]]> {
  const [{ page, load }] = servers as [KnownServer, ...KnownServer[]];
  const variants = servers.map((server, place): Variant => ({
    name: `side-${place + 1}`,
    server: server.server,
    page: server.page,
    load: server.load,
  }));
  const scenario = defineScenario({
    name: 'waiting',
    title: 'servers of known truth',
    knob: 'the server',
    page,
    load,
    variants,
  });
  const { phases } = await inContext(lab, scenario, { durationSeconds }, (context) =>
    oneRound(context, round),
  );
  return variants.map(({ name }) => figuresOf(phases.get(name) as Phase[])) as [
    KnownFigures,
    ...KnownFigures[],
  ];
}

function figuresOf(phases: readonly Phase[]): KnownFigures {
  const { mean, p50, p99 } = mergedLatency(phases.map(({ latencyMs }) => latencyMs));
  const cpuMicros = 1e6 * serverCpuSecondsPerResponse(phases);
  const [{ idleCpuShare, queueGrowth, turns }] = phases as [Phase, ...Phase[]];
  return {
    rps: roundRps(phases),
    meanMs: mean,
    p50Ms: p50,
    p99Ms: p99,
    cpuMicros: Number.isFinite(cpuMicros) ? cpuMicros : null,
    queueGrowthPerSecond: queueGrowth?.perSecond ?? null,
    errors: total(phases, ({ errors }) => errors.total),
    reconnects: total(phases, ({ connectMs }) => valuesIn(connectMs)),
    idleCpuShare,
    turns,
  };
}

function shown({
  rps,
  p50Ms,
  p99Ms,
  cpuMicros,
  queueGrowthPerSecond,
  errors,
}: KnownFigures): string {
  return [
    `${whole(rps)}/s`,
    `p50 ${p50Ms.toFixed(2)} ms`,
    `p99 ${p99Ms.toFixed(2)} ms`,
    cpuMicros === null ? '' : `CPU ${cpuMicros.toFixed(1)} µs`,
    queueGrowthPerSecond === null ? '' : `queue growth ${growthText(queueGrowthPerSecond)}/s`,
    errors === 0 ? '' : `${whole(errors)} errors`,
  ]
    .filter((text) => text !== '')
    .join(', ');
}
