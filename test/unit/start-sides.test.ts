// Sides that are started before there is a plan, since their answers are part of it.
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { sidesOf, type Side } from '../../lib/cli/side-loads.ts';
import { tryOnce } from '../../lib/cli/start-sides.ts';
import { UserError } from '../../lib/errors.ts';
import type { ServerHost } from '../../lib/hosts/server-host.ts';
import { listening } from '../fixtures/listening.ts';
import { cores } from '../fixtures/plan.ts';

type Watched = Awaited<ReturnType<ServerHost['start']>>;

test('a side is asked with and without gzip, and ended; one that does not start is named', async () => {
  const answering = createServer((asked, response) =>
    response.setHeader('content-encoding', asked.headers['accept-encoding'] ?? '').end('hello'),
  );
  const origin = `http://127.0.0.1:${await listening(answering)}`;
  const events: string[] = [];
  const start = (fails: boolean) => () => {
    events.push('starts');
    if (fails) return Promise.reject(new UserError('cannot be', 2));
    const answer = { status: 200, bytes: 5, hash: '', encoding: '', type: '', location: '' };
    const stop = (): Promise<void> => Promise.resolve(void events.push('ends'));
    const died = new Promise<string>(() => undefined);
    return Promise.resolve({ name: 'a', origin, answer, died, stop } as unknown as Watched);
  };
  const source = { kind: 'command', command: 'a', program: 'a' } as const;
  const asked = { said: [], load: () => undefined, launch: () => ({}) };
  const [side] = sidesOf([{ name: 'a', given: 'a', source }], asked, cores) as [Side];
  const tried = (fails: boolean) =>
    tryOnce(side, {
      tools: { k6: '', delaylink: undefined, servers: {} },
      host: { start: start(fails) } as unknown as ServerHost,
      cores,
      signal: new AbortController().signal,
    });
  expect(await tried(false)).toMatchObject({
    name: 'a',
    answer: { bytes: 5 },
    offered: { encoding: 'gzip' },
  });
  await expect(tried(true)).rejects.toEqual(new UserError('a: cannot be', 2));
  expect(events).toEqual(['starts', 'ends', 'starts']);
});
