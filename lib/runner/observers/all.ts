// The observers of each load.
import { acceptQueues } from './accept-queues.ts';
import { coreLeavers } from './core-leavers.ts';
import { backends, strangers } from './strangers.ts';
import { memory, startup } from './server-figures.ts';
import type { Observer } from './observer.ts';
import { perRequest } from './per-request.ts';
import { progress } from './progress.ts';
import { usage } from './usage.ts';
import { wakefulness } from './wakefulness.ts';

/** Returns them in the order in which they begin and end: the last sample of the use is taken as soon as the load is over. */
export const observersWith = (added: readonly Observer[]): Observer[] => [
  progress,
  usage,
  wakefulness,
  ...added,
  strangers,
  coreLeavers,
  backends,
  acceptQueues,
  perRequest,
  memory,
  startup,
];
