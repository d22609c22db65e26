// The most memory that a command had at a time.
import { readFileSync } from 'node:fs';
import { processTree } from '../lib/servers/usage.ts';

/** How often is looked. The kernel keeps the peak itself, so that only growth in a process's last moments is missed. */
const periodMs = 250;

/**
 * Watches a command that is run by a shell. `start` takes the shell's process id; `bytes` is the largest peak (VmHWM) of a
 * single process below it, 0 when none was seen.
 */
export function watchPeakRss(): { start(pid: number): void; stop(): void; bytes(): number } {
  let peak = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    start(pid) {
      timer = setInterval(() => {
        for (const below of processTree('/proc', String(pid)).slice(1)) peak = Math.max(peak, peakRssBytes(below));
      }, periodMs);
    },
    stop: () => clearInterval(timer),
    bytes: () => peak,
  };
}

function peakRssBytes(pid: string): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) * 1024;
  } catch {
    return 0; // It has ended.
  }
}
