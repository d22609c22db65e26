// The blind test: bakeoff judges pairs of servers, and only then the key with the true ratios is opened. --disturb disturbs the runs.
import { access, constants, writeFile } from 'node:fs/promises';
import os from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Additions } from '../../cli/feature.ts';
import { helper } from '../../../bin/trust.mjs';
import { UserError } from '../../errors.ts';
import { textOf } from '../../files.ts';
import { counts, duration, effect } from '../../format.ts';
import { present } from '../../present.ts';
import { run, sendIfThere } from '../../process.ts';
import { terminal, terminalTable } from '../../report/table.ts';
import type { Result } from '../../result/result.ts';
import { defaultSameWithin } from '../../runner/make-plan.ts';
import { defineScenario } from '../../scenario/index.ts';
import type { LoadProfile, Scenario, Variant } from '../../scenario/model.ts';
import { processTree } from '../../servers/usage.ts';
import { hashOfSources } from '../../setup/k6.ts';
import { readKept, runMissing, type Kept } from './kept.ts';
import { wholeRun, type Lab } from './lab.ts';
import {
  drawPairs,
  scoreLine,
  scoreOf,
  scoreTables,
  sealOf,
  type DisturbanceName,
  type KnownPair,
  type PairRun,
} from './pairs.ts';
import { closedLoad, commandOf, knownPage, loadAtRate, serverSources } from './servers.ts';

interface BlindOptions {
  additions: Additions;
  count: number;
  seed: number;
  isDisturbed: boolean;
  /** The test goes on with the runs in the file of that seed. */
  isResumed: boolean;
  folder: string;
}

interface BlindFile extends Kept<PairRun> {
  count: number;
  isDisturbed: boolean;
}

/**
 * Runs the pairs, keeps each outcome, opens the key and prints the score.
 * @returns the exit code: 3 if the score is beyond its bounds
 * @throws UserError for a seed that was used before; Interrupted: what was done is kept
 */
export async function blindTest(options: BlindOptions): Promise<0 | 3> {
  const { additions, count, seed, isDisturbed, isResumed, folder } = options;
  const pairs = drawPairs(count, seed, isDisturbed);
  const path = join(folder, `${isDisturbed ? 'disturbed' : 'blind'}-${seed}.json`);
  // The same flags have another truth at another server.
  const seal = sealOf([pairs, await hashOfSources(serverSources)]);
  const file = readKept<BlindFile>(path, { count, seed, isDisturbed, seal, runs: [] }, isResumed);
  console.log(`SHA-256 of the key and the servers: ${seal}`);
  const possible = await possiblePairs(pairs, file.runs);
  const left = pairs.length - possible.length;
  if (left > 0)
    console.error(
      `${counts(left, 'pair')} left out: only root may drop caches (${dropCaches} cannot be written)`,
    );
  const make = async (lab: Lab, pair: KnownPair) => {
    const pairRun = await runOfPair(lab, pair);
    return { run: pairRun, line: lineOf(pairRun) };
  };
  await runMissing(path, file, possible, additions, make, isDisturbed);
  return opened(pairs, file.runs);
}

function lineOf({ verdict, ratio, seconds, lost = 0 }: PairRun): string {
  const line = `${verdict}, ${effect(ratio)}, ${duration(seconds)}`;
  return lost === 0 ? line : `${line}; InfluxDB lacks ${counts(lost, 'request')}`;
}

const dropCaches = '/proc/sys/vm/drop_caches';

/**
 * Returns the pairs whose disturbance can happen here, and those that have a run already, which root may have made.
 * @param file the kernel's, which drops caches when it is written
 */
export async function possiblePairs(
  pairs: readonly KnownPair[],
  runs: readonly Pick<PairRun, 'number'>[],
  file = dropCaches,
): Promise<readonly KnownPair[]> {
  const mayDrop = await access(file, constants.W_OK).then(
    () => true,
    () => false,
  );
  if (mayDrop) return pairs;
  const made = new Set(runs.map(({ number }) => number));
  return pairs.filter(
    ({ number, disturbance }) => made.has(number) || disturbance?.what !== 'drops caches',
  );
}

/** Opens the key and prints the score. */
function opened(pairs: readonly KnownPair[], runs: readonly PairRun[]): 0 | 3 {
  const scored = runs.flatMap((pairRun) => {
    const pair = pairs[pairRun.number - 1];
    return pair === undefined ? [] : [scoreOf(pair, pairRun, defaultSameWithin)];
  });
  for (const table of scoreTables(scored)) {
    console.log('');
    for (const line of terminalTable(table, terminal())) console.log(line);
  }
  console.log('');
  for (const { pair, pairRun, isFalse } of scored.filter((one) => one.isFalse || one.misses)) {
    const happened = pair.disturbance === undefined ? '' : ` (${pair.disturbance.what})`;
    console.log(
      `${isFalse ? 'false' : 'missed'}: pair ${pair.number}, ${kindsOf(pair)}${happened}: ${pairRun.verdict} ${effect(pairRun.ratio, pairRun.ci95)}, by CPU ${pairRun.byCpu}; true is ${effect(pair.ratio)}, CPU ${effect(pair.cpuRatio)}`,
    );
  }
  const { line, isGood } = scoreLine(scored);
  console.log(line);
  return isGood ? 0 : 3;
}

const kindsOf = ({ sides: [a, b] }: KnownPair): string => `a ${a.kind}, b ${b.kind}`;

/** The usual length in load lines. Rounds are shorter; each side alone is loaded for this time. */
const loadSeconds = 10;

function scenarioOf({ server }: Lab, { number, sides, rate }: KnownPair): Scenario {
  const variants = sides.map((side, place): Variant => {
    const { connections, bodyBytes } = side;
    return {
      name: place === 0 ? 'a' : 'b',
      server: commandOf(server, side.options),
      page: { ...knownPage, bodyBytes },
      load:
        rate === undefined
          ? closedLoad(connections, loadSeconds)
          : loadAtRate(connections, rate, 'constant', loadSeconds),
    };
  });
  return defineScenario({
    // The points of a run are found by its name.
    name: `blind-${number}`,
    title: 'a pair of known servers',
    knob: 'the server',
    page: knownPage,
    load: (variants[0] as Variant).load as LoadProfile,
    variants,
  });
}

async function runOfPair(lab: Lab, pair: KnownPair): Promise<PairRun> {
  const ended = new AbortController();
  const disturbing = disturb(lab, pair, AbortSignal.any([lab.signal, ended.signal]));
  // An error is thrown after the run, and must not end the process before.
  disturbing.catch(() => undefined);
  let result: Result;
  try {
    result = await wholeRun(lab, scenarioOf(lab, pair));
  } finally {
    ended.abort();
    await disturbing;
  }
  const [comparison] = result.comparisons;
  if (comparison === undefined) throw new UserError('a run has no comparison');
  const { ratio, ci95, verdict, why, cpu } = comparison;
  return {
    number: pair.number,
    ratio,
    ci95,
    verdict,
    byCpu: cpu?.verdict ?? 'none',
    why,
    isChecked: result.alone?.sides.length === 2,
    seconds: (Date.parse(result.endedAt) - Date.parse(result.startedAt)) / 1000,
    ...present({ lost: lab.sink === null ? undefined : result.integrity?.lost }),
  };
}

/** Does what happens to the pair at its times, until the run has ended. */
async function disturb(lab: Lab, pair: KnownPair, signal: AbortSignal): Promise<void> {
  const { disturbance } = pair;
  if (disturbance === undefined) return;
  const beganAtMs = performance.now();
  for (const at of disturbance.at) {
    const leftMs = 1000 * at - (performance.now() - beganAtMs);
    const isOver = await delay(Math.max(0, leftMs), false, { signal }).catch(() => true);
    if (isOver) return;
    await happening(lab, pair, disturbance.what);
  }
}

const stopMs = 300;

async function happening(
  lab: Lab,
  { sides: [sideA] }: KnownPair,
  what: DisturbanceName,
): Promise<void> {
  const { cores, binaries, server } = lab;
  if (what === "a busy loop on the servers' core") return busyLoop(cores.serverCpus);
  if (what === "a busy loop on the generator's core") return busyLoop(cores.generatorCpus);
  if (what === 'stops k6') return stopped(processesWith(binaries.k6, ''));
  const a = processesWith(server, sideA.options);
  if (what === 'stops InfluxDB') {
    const databases = processesWith(binaries.influxd ?? '', '');
    if (databases.length === 0) throw new UserError('--disturb found no influxd to stop');
    return stopped(databases);
  }
  if (what === 'drops caches') return writeFile(dropCaches, '3');
  if (what === 'stops a') return stopped(a);
  if (what === 'stops a and b') return stopped(processesWith(server, ''));
  for (const pid of a) {
    try {
      os.setPriority(pid, 10);
    } catch (error) {
      // A server's child may have ended.
      if (textOf(`/proc/${pid}/stat`) !== '') throw error;
    }
  }
}

/** Returns the descendants of this process with that program and those flags, the oldest first. */
function processesWith(program: string, flags: string): number[] {
  const [, ...descendants] = processTree('/proc', String(process.pid));
  const pids: number[] = [];
  for (const pid of descendants) {
    const words = textOf(`/proc/${pid}/cmdline`).split('\0');
    if (words[0] === program && words.join(' ').includes(flags)) pids.push(Number(pid));
  }
  return pids;
}

async function stopped(pids: readonly number[]): Promise<void> {
  for (const pid of pids) sendIfThere(pid, 'SIGSTOP');
  await delay(stopMs);
  for (const pid of pids) sendIfThere(pid, 'SIGCONT');
}

/** A second of it. */
async function busyLoop(cpus: readonly number[]): Promise<void> {
  const loop = [helper('sh'), '-c', 'while :; do :; done'];
  await run({ command: 'timeout', args: ['1', ...loop], cpus });
}
