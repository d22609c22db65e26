// The processes of a command: what it has started may leave its group, its session and its tree.
import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { processIds } from '../proc.ts';
import { startChild } from '../process.ts';
import { ifThere, linkOf, namesIn, readIfThere, textOf } from '../read-if-there.ts';
import { runs } from './lifecycle.ts';
import { processTree } from './usage.ts';

/** For the environment of one command, as env(1) takes it. What the command starts inherits it. */
export function newMark(): string {
  return `BAKEOFF_SIDE=${randomUUID()}`;
}

/** The ids of the process group that a command leads, and of all their descendants, as they run now. */
export function groupOf(pid: number): string[] {
  return withDescendants(processIds('/proc').filter((one) => runs(one, pid)));
}

/** The same, and all that have the command's mark. */
export function familyOf(pid: number, mark: string): string[] {
  return withDescendants(
    processIds('/proc').filter((one) => runs(one, pid) || (runs(one) && hasMark(one, mark))),
  );
}

function withDescendants(roots: readonly string[]): string[] {
  return [...new Set(roots.flatMap((root) => processTree('/proc', root)))].filter((one) =>
    runs(one),
  );
}

/** False of a process that hides its environment, or has written over it. */
function hasMark(pid: string, mark: string): boolean {
  return readIfThere(`/proc/${pid}/environ`)?.split('\0').includes(mark) === true;
}

/** The ids of all other processes that may write into a file: those that have inherited it may have left everything else. */
export function writersOf(file: string): string[] {
  const real = ifThere(() => realpathSync(file));
  if (real === undefined) return [];
  const mayWrite = (pid: string, descriptor: string): boolean =>
    (parseInt(/^flags:\s*(\d+)/m.exec(textOf(`/proc/${pid}/fdinfo/${descriptor}`))?.[1] ?? '0', 8) &
      3) !==
    0;
  return processIds('/proc').filter(
    (pid) =>
      pid !== String(process.pid) &&
      runs(pid) &&
      namesIn(`/proc/${pid}/fd`).some(
        (descriptor) =>
          linkOf(`/proc/${pid}/fd/${descriptor}`) === real && mayWrite(pid, descriptor),
      ),
  );
}

/** Its input ends when the process that started it does. */
const killMarked = `
  trap "" HUP INT TERM
  read -r nothing
  sleep 5
  for file in $(grep -lszxF "$0" /proc/[0-9]*/environ); do
    file=\${file#/proc/}
    kill -KILL "\${file%/environ}"
  done`;

/**
 * Starts a shell that sees to a command if this process is killed. The kernel sends TERM to the command's first process then
 * (startChild); 5 s later the shell kills everything that has the mark.
 * @returns ends the shell; may be called twice
 */
export async function guardMarked(mark: string): Promise<() => Promise<void>> {
  const { stop } = await startChild({
    command: 'sh',
    args: ['-c', killMarked, mark],
    cwd: '/',
    env: { PATH: process.env.PATH },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  return () => stop(0);
}
