// Waits until a started server answers as it should.
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import type { StartOptions } from './server.ts';

const retryMs = 20;

/** Marks the check in an access log, where the requests of a load are counted. */
export const readyUserAgent = 'bakeoff-ready';

/**
 * Returns once the page is answered with status 200 and a body of the exact length. Connections that are refused or
 * broken are tried again until `limitMs` have passed; a wrong answer is an error at once, since a server does not grow out
 * of it. Throws UserError, or the signal's reason.
 */
export async function waitUntilReady(origin: string, page: StartOptions['page'], signal: AbortSignal, limitMs = 10_000): Promise<void> {
  const url = origin + page.path;
  const timeout = AbortSignal.timeout(limitMs);
  const either = AbortSignal.any([signal, timeout]);
  for (;;) {
    try {
      const { status, bytes } = await fetchOnce(url, either);
      if (status === 200 && bytes === page.bodyBytes) return;
      throw new UserError(
        status === 200
          ? `${url} answers with ${bytes} bytes instead of ${page.bodyBytes}: it is not the page that is to be measured`
          : `${url} answers with status ${status} instead of 200`,
      );
    } catch (error) {
      if (error instanceof UserError) throw error;
      signal.throwIfAborted();
      if (timeout.aborted) throw new UserError(`${url} did not answer within ${limitMs / 1000} s`);
    }
    await delay(retryMs);
  }
}

/** On a connection of its own, so that none stays open when the load starts. */
async function fetchOnce(url: string, signal: AbortSignal): Promise<{ status: number; bytes: number }> {
  const request = get(url, { agent: false, signal, headers: { 'user-agent': readyUserAgent } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  let bytes = 0;
  for await (const chunk of response) bytes += (chunk as Buffer).length;
  return { status: response.statusCode ?? 0, bytes };
}
