// The process that ready-inside.ts starts: it prints a ReadyAnswer.
import { UserError } from '../errors.ts';
import { type ReadyAnswer, type ReadyCheck, waitUntilServing } from './ready.ts';

/** Put here by ready-inside.ts. */
declare const readyCheck: ReadyCheck;

// Who started it ends it where that is over before.
const { signal } = new AbortController();
const outcome = await waitUntilServing(readyCheck, signal).then(
  (answer): ReadyAnswer => ({ answer }),
  (error: unknown): ReadyAnswer => {
    if (error instanceof UserError) return { problem: error.message };
    throw error;
  },
);
console.log(JSON.stringify(outcome));
