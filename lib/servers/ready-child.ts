// The process that waitUntilReadyInside starts: it prints a ReadyAnswer.
import { UserError } from '../errors.ts';
import { waitUntilReady, type ReadyAnswer } from './ready.ts';
import type { ReadyCheck } from './server.ts';

/** Defined by waitUntilReadyInside. */
declare const readyCheck: ReadyCheck;

// The parent ends this process if it does not need the answer any more.
const outcome = await waitUntilReady(readyCheck, new AbortController().signal).then(
  (answer): ReadyAnswer => ({ answer }),
  (error: unknown): ReadyAnswer => {
    if (error instanceof UserError) return { problem: error.message };
    throw error;
  },
);
console.log(JSON.stringify(outcome));
