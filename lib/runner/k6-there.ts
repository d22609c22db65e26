// One load made by k6 on other hosts, each with its part of it.
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ClocksAhead } from '../hosts/agent-connection.ts';
import type { GeneratorHost } from '../hosts/generator-host.ts';
import type { K6Ended, SentFile } from '../hosts/messages.ts';
import { k6Files, type PhaseOutcome } from '../k6/load-plan.ts';
import { dividedPlan, instanceArguments, mergeInstances, type InstanceEnd } from './instances.ts';
import {
  forKeeps,
  k6Arguments,
  outcomesOf,
  ownVariables,
  type K6Options,
  type RunningK6,
} from './k6.ts';
import { machineClock } from '../machine/clock.ts';

/** From now until all of them begin: k6 takes about a second to start, and more on a host that is busy. */
const leadMs = 3000;

/**
 * Starts k6 on each host, with its segment of the load and a begin that all agree on. What each has written comes to the folder
 * generator-<place>, and all their samples to the one record. @param hosts that have k6
 * @throws UserError for a load that cannot be divided among them, or where a connection ends
 */
export async function startK6There(
  hosts: readonly GeneratorHost[],
  { folder, script, loadPlan }: Pick<K6Options, 'script' | 'folder' | 'loadPlan'>,
): Promise<RunningK6> {
  const files = k6Files(folder);
  const sent = await Promise.all(
    [
      script,
      ...(loadPlan.pageFiles ?? []).flatMap((file) =>
        file === null ? [] : [join(dirname(script), file)],
      ),
    ].map(async (file): Promise<SentFile> => ({
      path: basename(file),
      mode: 0o644,
      base64: (await readFile(file)).toString('base64'),
    })),
  );
  // All that takes its time is there before the begin is agreed on.
  const folders = await Promise.all(hosts.map((host) => host.keep(sent)));
  const ahead = await Promise.all(hosts.map((host) => host.clocks()));
  const beginsAtMs = machineClock.wallMs() + leadMs;
  const whole = dividedPlan(loadPlan, hosts.length, beginsAtMs);
  await writeFile(join(folder, 'load.json'), `${JSON.stringify(forKeeps(whole), null, 2)}\n`);
  await Promise.all([files.record, files.console].map((file) => writeFile(file, '')));
  let printing = Promise.resolve();
  const runs = await Promise.all(
    hosts.map((host, index) => {
      const plan = {
        ...whole,
        startAtMs: Math.round(beginsAtMs + (ahead[index] as ClocksAhead).wallMs),
      };
      return host.run(
        {
          folder: folders[index] as string,
          env: ownVariables(plan),
          args: k6Arguments(
            k6Files('.'),
            basename(script),
            instanceArguments(index + 1, hosts.length),
          ),
          // What the first one's script prints stands for all: when the phases begin.
        },
        (text) => {
          // Where it cannot be written the record cannot either, which is told.
          if (index === 0)
            printing = printing.then(() => appendFile(files.console, text)).catch(() => undefined);
        },
      );
    }),
  );
  let recording = Promise.resolve();
  const ends = Promise.all(
    runs.map(async ({ ended }, index): Promise<InstanceEnd> => {
      const { name } = hosts[index] as GeneratorHost;
      const clocks = ahead[index] as ClocksAhead;
      try {
        const end = await ended;
        // One after the other: lines are whole.
        const recorded = (recording = recording.then(() =>
          appendFile(files.record, recordByOurClock(end.record, clocks)),
        ));
        await recorded;
        return {
          phases: byOurClocks(await keep(end, join(folder, `generator-${index + 1}`)), clocks),
        };
      } catch (error) {
        return { failure: `${name}: ${(error as Error).message}` };
      }
    }),
  );
  const stop = async (graceMs = 0): Promise<void> => {
    await Promise.all(runs.map(({ end }) => end(graceMs)));
  };
  // One that has failed ends the others: their parts alone are no load.
  const exited = Promise.race([
    ends,
    ...runs.map(async ({ ended }) => {
      const code = await ended.then(
        (end) => end.code,
        () => 1,
      );
      return code === 0 ? ends : stop();
    }),
  ]);
  return {
    pid: undefined,
    exited,
    stop,
    files,
    results: async () => mergeInstances(await ends, whole),
  };
}

/** Keeps what a k6 has written, and returns its phases. Throws an Error that says why some are missing. */
async function keep(ended: K6Ended, folder: string): Promise<PhaseOutcome[]> {
  await mkdir(folder, { recursive: true });
  const files = k6Files(folder);
  await Promise.all([writeFile(files.console, ended.console), writeFile(files.log, ended.log)]);
  return outcomesOf(ended, folder);
}

/** k6's record with its samples' times as this machine's clock has them; what is below a millisecond stays. */
export function recordByOurClock(record: string, { wallMs }: ClocksAhead): string {
  return record.replaceAll(
    /"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)"/g,
    (_, second: string, fraction = '', zone: string) => {
      const digits = (fraction as string).padEnd(9, '0');
      const ms = Date.parse(`${second}${zone}`) + Number(digits.slice(0, 3)) - Math.round(wallMs);
      return `"time":"${new Date(ms).toISOString().slice(0, -1)}${digits.slice(3)}Z"`;
    },
  );
}

/** With the times that a host told as this machine's clocks have them. */
export function byOurClocks(
  phases: readonly PhaseOutcome[],
  { monotonicMs, wallMs }: ClocksAhead,
): PhaseOutcome[] {
  const wall = (instant: string): string => new Date(Date.parse(instant) - wallMs).toISOString();
  return phases.map((phase) => ({
    ...phase,
    results: phase.results.map((result) => ({
      ...result,
      startedAt: wall(result.startedAt),
      endedAt: wall(result.endedAt),
      monotonicMs: [result.monotonicMs[0] - monotonicMs, result.monotonicMs[1] - monotonicMs],
    })),
  }));
}
