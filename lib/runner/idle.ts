// Servers that work without a load, as by polling, seen before their first turns.
import { setTimeout as delay } from 'node:timers/promises';
import { percent } from '../format.ts';
import { warning } from '../report/warnings/run.ts';
import { isWatched } from '../servers/index.ts';
import { TurnsMeet } from './failures.ts';
import type { Stage } from './plan.ts';

/** Less than this share of a core for so long. */
const idle = { share: 0.01, ms: 100 };
/** What a server does after its start ends by then. */
const startMs = 3000;

/** @throws TurnsMeet that names a server that goes on working, or the signal's reason */
export async function requireIdle(stages: readonly Stage[], signal: AbortSignal): Promise<void> {
  if (stages.length < 2) return;
  let busy = stages.flatMap(({ planned: { variant }, server }) =>
    isWatched(server) ? { name: variant.name, server, used: server.usage().cpuSeconds } : [],
  );
  const beganAtMs = performance.now();
  const began = new Map(busy.map(({ name, used }) => [name, used]));
  while (busy.length > 0) {
    const sinceMs = performance.now();
    await delay(idle.ms, undefined, { signal });
    const seconds = (performance.now() - sinceMs) / 1000;
    const now = busy.map((side) => ({
      ...side,
      before: side.used,
      used: side.server.usage().cpuSeconds,
    }));
    busy = now.filter(({ before, used }) => used - before > idle.share * seconds);
    const [first] = busy;
    const tookMs = performance.now() - beganAtMs;
    if (first === undefined || tookMs < startMs) continue;
    const share = (1000 * (first.used - (began.get(first.name) ?? 0))) / tookMs;
    const names = new Set(stages.map(({ planned }) => planned.variant.name));
    throw new TurnsMeet(warning.worksOutOfTurn(first.name, percent(share)), names, true);
  }
}
