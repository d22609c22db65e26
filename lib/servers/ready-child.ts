// The process that ready-inside.ts starts: it reads a ReadyCheck and prints a ReadyAnswer.
import { text } from 'node:stream/consumers';
import { UserError } from '../errors.ts';
import type { ReadyAnswer } from './ready-inside.ts';
import { waitUntilServing } from './ready-pages.ts';
import type { ReadyCheck } from './ready.ts';

const check = JSON.parse(await text(process.stdin)) as ReadyCheck;
// Who started it ends it where that is over before.
const { signal } = new AbortController();
const outcome = await waitUntilServing(check, signal).then((answer): ReadyAnswer => ({ answer }), (error: unknown): ReadyAnswer => {
  if (error instanceof UserError) return { problem: error.message };
  throw error;
});
console.log(JSON.stringify(outcome));
