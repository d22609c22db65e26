// perf, started and ended beside a load.
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { UserError } from '../../errors.ts';
import { limitChild, startChild, type Child } from '../../process.ts';
import { causeLine, lastLines } from '../../program-logs.ts';
import { perfCounts } from '../../result/why.ts';
import type { Observer } from '../../runner/observers/observer.ts';
import type { RunContext } from '../../runner/plan.ts';
import type { StartedServer } from '../../servers/index.ts';
import { eventOf, perfEnvironment, perfSeconds } from './perf-output.ts';

/** Samples per second of CPU time. They cost about 2 % of it; the CPU time of 10 s on one core is known within 1 %. */
const samplesPerSecond = 799;

/**
 * Returns an observer that runs perf on a server's processes, with its output in `file`.
 * @param perf its path
 * @param args of perf
 */
export function perfObserver(
  context: RunContext,
  server: StartedServer,
  perf: string,
  args: readonly string[],
  file: string,
): Observer {
  return {
    name: 'what perf has seen',
    async begin() {
      const all = [...args, '-p', server.processes().join()];
      const child = await startPerf(context, perf, all, file);
      return {
        async end() {
          await endPerf(child, context.signal);
          return [];
        },
      };
    },
  };
}

/**
 * Starts perf and returns once it records.
 * @param file receives its output
 * @throws UserError with its last line if it ends instead
 */
async function startPerf(
  { folder, plan, signal }: RunContext,
  perf: string,
  args: readonly string[],
  file: string,
): Promise<Child> {
  const logFile = join(folder, 'perf.log');
  const [output, log] = [openSync(file, 'w'), openSync(logFile, 'w')];
  const child = await startChild({
    command: perf,
    args: [...args.slice(0, 1), '-D', '-1', '--control', 'fd:3,4', ...args.slice(1)],
    cpus: plan.cores.generatorCpus,
    env: perfEnvironment(),
    stdio: ['ignore', output, log, 'pipe', 'pipe'],
  }).finally(() => [output, log].forEach(closeSync));
  const [order, answer] = child.process.stdio.slice(3) as [Writable, Readable];
  // It may have ended before it reads.
  order.on('error', () => undefined).write('enable\n');
  const atEnd = limitChild(child, signal, perfSeconds);
  await Promise.race([once(answer, 'data'), child.exited]);
  if (atEnd()) throw new UserError(`perf does not begin within ${perfSeconds} s`);
  signal.throwIfAborted();
  if (!child.hasExited()) return child;
  const reason = causeLine(await lastLines(logFile)) ?? 'it says nothing';
  throw new UserError(`perf does not look at these servers: ${reason}`);
}

/** perf writes what it has on INT. */
async function endPerf(child: Child, signal: AbortSignal): Promise<void> {
  if (!child.hasExited()) child.process.kill('SIGINT');
  const atEnd = limitChild(child, signal, 10);
  await child.exited;
  atEnd();
}

/** Arguments of perf; the samples go to stdout. */
export const samplerArgs = (): string[] =>
  `record -q -B -N -g -e cpu-clock --freq ${samplesPerSecond} --max-size=200M --output -`.split(
    ' ',
  );

/**
 * Returns perf's arguments to count system calls. Each tracepoint makes perf's end longer, so only calls that were seen in samples get
 * one.
 */
export const counterArgs = (calls: readonly string[]): string[] => [
  'stat',
  '-x;',
  '--log-fd',
  '1',
  '-e',
  [
    'raw_syscalls:sys_enter',
    ...perfCounts.map(eventOf),
    ...calls.map((call) => `syscalls:sys_enter_${call}`),
  ].join(),
];
