// A load that k6 makes on other hosts, a part on each.
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { messageOf } from '../../errors.ts';
import { check, figure, list, open, optional, orNull, type Form } from '../../form.ts';
import { k6Files, type LoadPlan, type PhaseOutcome } from '../../k6/load-plan.ts';
import { machineClock } from '../../machine/usage.ts';
import { resultFromHost } from '../../result/load-result.ts';
import {
  byOurClocks,
  dividedPlan,
  instanceArguments,
  mergeInstances,
  type ClocksAhead,
  type InstanceEnd,
} from '../../runner/generators.ts';
import { parseGoTime } from '../../runner/k6-record.ts';
import { forKeeps, k6Arguments, outcomesOf, ownVariables } from '../../runner/k6.ts';
import type { K6Load, RunningK6 } from '../../runner/machines.ts';
import type { GeneratorHost } from './generator-host.ts';
import type { K6Ended, SentFile } from './messages.ts';

/** Time until the agreed begin: k6 starts in about a second, later on a busy host. */
const leadMs = 3000;

/**
 * Starts k6 on each host, with its segment of the load and an agreed begin. Each host's files go to the folder generator-<place>, all
 * samples to the same record.
 * @param hosts that have k6
 * @throws UserError for a load that cannot be divided among them, or if a connection ends
 */
export async function startRemoteK6(
  hosts: readonly GeneratorHost[],
  { folder, script, loadPlan }: K6Load,
): Promise<RunningK6> {
  const files = k6Files(folder);
  // Everything slow comes before the begin is agreed on.
  const sent = await filesToSend(script, loadPlan);
  const folders = await Promise.all(hosts.map((host) => host.keep(sent)));
  const ahead = await Promise.all(hosts.map((host) => host.clocks()));
  const beginsAtMs = machineClock.wallMs() + leadMs;
  const divided = dividedPlan(loadPlan, hosts.length, beginsAtMs);
  await writeFile(join(folder, 'load.json'), `${JSON.stringify(forKeeps(divided), null, 2)}\n`);
  await Promise.all([files.record, files.console].map((file) => writeFile(file, '')));
  let written = Promise.resolve();
  /** Appends in turn, so that lines stay whole. A full disk is reported after the load. */
  const append = (file: string, text: string) =>
    (written = written.then(() => appendFile(file, text)).catch(() => undefined));
  const runs = await Promise.all(
    hosts.map((host, index) => {
      const { wallMs } = ahead[index] as ClocksAhead;
      const startAtMs = Math.round(beginsAtMs + wallMs);
      return host.run(
        {
          folder: folders[index] as string,
          env: ownVariables({ ...divided, startAtMs }),
          args: k6Arguments(
            k6Files('.'),
            basename(script),
            instanceArguments(index + 1, hosts.length),
          ),
        },
        // The first host's console says for all when the phases begin.
        (text) => void (index === 0 && append(files.console, text)),
      );
    }),
  );
  const ends = Promise.all(
    runs.map(async ({ ended }, index): Promise<InstanceEnd> => {
      const clocks = ahead[index] as ClocksAhead;
      try {
        const end = await ended;
        await append(files.record, recordByOurClock(end.record, clocks));
        const phases = await keep(end, join(folder, `generator-${index + 1}`));
        return { phases: byOurClocks(phases, clocks) };
      } catch (error) {
        return { failure: `${hosts[index]?.name}: ${messageOf(error)}` };
      }
    }),
  );
  const stop = async (graceMs = 0) => {
    await Promise.all(runs.map(({ end }) => end(graceMs)));
  };
  // A failure ends the other instances, because their parts alone are not the load.
  const exited = Promise.race([
    ends,
    ...runs.map(async ({ ended }) => {
      const { code } = await ended.catch(() => ({ code: 1 }));
      return code === 0 ? ends : stop();
    }),
  ]);
  return {
    pid: undefined,
    exited,
    stop,
    files,
    results: async () => mergeInstances(await ends, divided),
  };
}

async function filesToSend(script: string, { mixFiles = [] }: LoadPlan): Promise<SentFile[]> {
  const pages = mixFiles.flatMap((file) => (file === null ? [] : [join(dirname(script), file)]));
  return Promise.all(
    [script, ...pages].map(async (file) => ({
      path: basename(file),
      mode: 0o644,
      base64: (await readFile(file)).toString('base64'),
    })),
  );
}

async function keep(ended: K6Ended, folder: string): Promise<PhaseOutcome[]> {
  await mkdir(folder, { recursive: true });
  const files = k6Files(folder);
  await Promise.all([writeFile(files.console, ended.console), writeFile(files.log, ended.log)]);
  return (await outcomesOf(ended, folder)).map(outcomeFromHost);
}

const figures = list(orNull(figure));
const outcomeForm: Form<PhaseOutcome> = open({
  results: list(resultFromHost),
  step: optional(open({ rates: figures, found: figures })),
});

/** Parses a phase's outcome from k6 on another host. Throws an Error for an invalid form, because the host may be hostile. */
export function outcomeFromHost(outcome: PhaseOutcome): PhaseOutcome {
  const checked = check(outcomeForm, outcome);
  if ('value' in checked) return checked.value;
  throw new Error(`its k6 gives no right result: ${checked.problem}`);
}

/** k6's record with its times by this machine's clock; digits below a millisecond stay. */
export function recordByOurClock(record: string, { wallMs }: ClocksAhead): string {
  return record.replaceAll(/(?<="time":")[^"]+/g, (time) => {
    const ns = parseGoTime(time);
    if (ns === null) return time;
    const second = new Date(Number(ns / 1_000_000n) - Math.round(wallMs)).toISOString();
    return second.replace('Z', `${String(ns % 1_000_000n).padStart(6, '0')}Z`);
  });
}
