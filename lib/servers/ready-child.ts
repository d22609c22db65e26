// The process that waitUntilReadyInside starts. It prints the answer.
import { UserError } from '../errors.ts';
import { notReady, waitUntilReady } from './ready.ts';
import type { ReadyCheck } from './server.ts';

/** waitUntilReadyInside puts its definition in front of this script. */
declare const readyCheck: ReadyCheck;

try {
  console.log(JSON.stringify(await waitUntilReady(readyCheck, new AbortController().signal)));
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  console.log(error.message);
  process.exitCode = notReady;
}
