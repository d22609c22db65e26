// waitUntilReadyInside starts this process, which prints the answer.
import { UserError } from '../errors.ts';
import { notReady, waitUntilReady } from './ready.ts';
import type { ReadyCheck } from './server.ts';

declare const readyCheck: ReadyCheck;

try {
  console.log(JSON.stringify(await waitUntilReady(readyCheck, new AbortController().signal)));
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  console.log(error.message);
  process.exitCode = notReady;
}
