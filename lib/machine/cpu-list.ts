// Lists of CPUs, as taskset and the kernel write them.
import { UserError } from '../errors.ts';

/**
 * Parses "0-3,5". Sorted, each once.
 * @throws UserError (exit code 2) that names the flag
 */
export function parseCpuList(text: string, flag: string): number[] {
  const cpus = new Set<number>();
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,4})(?:-(\d{1,4}))?\s*$/.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? match?.[1]);
    if (match === null || last < first)
      throw new UserError(`${flag} ${text}: write cores as 1 or 0-3,5`, 2);
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}

/** Writes CPUs as a list of ranges: [0, 1, 2, 5] is "0-2,5". */
export function formatCpuList(cpus: readonly number[]): string {
  const ranges: string[] = [];
  for (let from = 0; from < cpus.length;) {
    let to = from;
    while (cpus[to + 1] === (cpus[to] as number) + 1) to++;
    ranges.push(from === to ? `${cpus[from]}` : `${cpus[from]}-${cpus[to]}`);
    from = to + 1;
  }
  return ranges.join(',');
}
