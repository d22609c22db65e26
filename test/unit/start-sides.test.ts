// Sides that are started before there is a plan, and go on in round 1.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { begin, type Begun } from '../../lib/cli/run.ts';
import { sidesOf } from '../../lib/cli/side-loads.ts';
import { readSides } from '../../lib/cli/sides.ts';
import { checkSides, startSides } from '../../lib/cli/start-sides.ts';
import { UserError } from '../../lib/errors.ts';
import type { ServerHost } from '../../lib/hosts/server-host.ts';
import type { CommandServer } from '../../lib/scenario/model.ts';
import { listening } from '../fixtures/listening.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { cores } from '../fixtures/plan.ts';

type Watched = Awaited<ReturnType<ServerHost['start']>>;

/** Ports that sides have fixed, sides that do not start, rates. */
interface Given {
  ports?: Record<string, number>;
  fails?: string[];
  rates?: number[];
}

/** Starts sides of these names, all of which answer. */
async function started(names: readonly string[], { ports = {}, fails = [], rates }: Given = {}) {
  const answering = createServer((asked, response) =>
    response.setHeader('content-encoding', asked.headers['accept-encoding'] ?? '').end('hello'),
  );
  const origin = `http://127.0.0.1:${await listening(answering)}`;
  const given = names.map((name) => {
    const source = { kind: 'command', command: name, program: name } as const;
    return { name, given: name, source };
  });
  const launch = (name: string) =>
    ports[name] === undefined ? {} : { port: ports[name] as number };
  const sides = sidesOf(given, { said: [], load: () => undefined, launch }, cores);
  const events: string[] = [];
  const start: ServerHost['start'] = (spec, { folder }) => {
    const name = (spec as CommandServer).command;
    events.push(`${name} starts in ${folder.split('/').slice(-2).join('/')}`);
    if (fails.includes(name)) return Promise.reject(new UserError('cannot be', 2));
    const answer = { status: 200, bytes: 5, hash: '', encoding: '', type: '', location: '' };
    const stop = (): Promise<void> => Promise.resolve(void events.push(`${name} ends`));
    const died = new Promise<string>(() => undefined);
    return Promise.resolve({ name, origin, answer, died, stop } as unknown as Watched);
  };
  const { begun, close } = await beginning();
  const tried = startSides(
    sides,
    {
      binaries: {},
      host: { start } as unknown as ServerHost,
      cores,
      signal: new AbortController().signal,
    },
    rates === undefined ? {} : { rates },
    begun,
  );
  return { tried, begun, close, events };
}

/** A run's folder, and the work that closes it. */
async function beginning() {
  let close: () => unknown = () => undefined;
  const run = { onClose: (work: () => unknown) => void (close = work) };
  return { begun: await begin(run, newFolder(), 'compare'), close: () => close() };
}

const kept = ({ servers }: Begun) => [...servers.keys()];

test('each starts once, in its folder of round 1, and runs on', async () => {
  const { tried, begun, close, events } = await started(['a', 'b']);
  const gzip = { answer: { bytes: 5 }, offered: { encoding: 'gzip' } };
  expect(await tried).toMatchObject([
    { name: 'a', ...gzip },
    { name: 'b', ...gzip },
  ]);
  expect([kept(begun), events]).toEqual([
    ['a', 'b'],
    ['a starts in round-1/a', 'b starts in round-1/b'],
  ]);
  await close();
  expect(events.slice(2)).toEqual(['a ends', 'b ends']);
  expect(existsSync(begun.folder)).toBe(false);
});

test('at several rates each is the variant at the first one', async () => {
  const { tried, begun } = await started(['a', 'b'], { rates: [100, 200] });
  await tried;
  expect(kept(begun)).toEqual(['a-at-100', 'b-at-100']);
});

test('of two with the same port the first ends before the second starts', async () => {
  const { tried, begun, events } = await started(['a', 'b', 'c'], { ports: { a: 3000, c: 3000 } });
  expect(await tried).toHaveLength(3);
  expect([kept(begun), events.slice(2)]).toEqual([
    ['b', 'c'],
    ['a ends', 'c starts in round-1/c'],
  ]);
});

test('one that does not start is named; the others end, and no folder stays', async () => {
  const { tried, begun, close, events } = await started(['a', 'b'], { fails: ['b'] });
  await expect(tried).rejects.toEqual(new UserError('b: cannot be', 2));
  await close();
  expect(events.at(-1)).toBe('a ends');
  expect(existsSync(begun.folder)).toBe(false);
});

test('a run that has a result keeps its folder', async () => {
  const { begun, close } = await beginning();
  writeFileSync(join(begun.folder, 'result.json'), '{}');
  await close();
  expect(readdirSync(begun.folder)).toEqual(['result.json']);
});

test('before a wait it is known whether a program or an address is there, and no command is started', async () => {
  const check = async (...words: string[]) =>
    checkSides(
      sidesOf(
        await readSides([...words, 'true'], ''),
        { said: [], load: () => undefined, launch: () => ({}) },
        cores,
      ),
      { cores } as Parameters<typeof checkSides>[1],
      new AbortController().signal,
    );
  const mark = join(newFolder(), 'started');
  const port = await listening(createServer((_, response) => response.end('hello')));
  await check(`touch ${mark}`, `http://127.0.0.1:${port}`);
  expect(existsSync(mark)).toBe(false);
  await expect(check('a=bakeoff-none x')).rejects.toThrow(/^a: there is no program bakeoff-none/);
  await expect(check(`http://127.0.0.1:${port}/`, 'b=http://127.0.0.1:9')).rejects.toThrow(
    /^b: http:\/\/127\.0\.0\.1:9\/ did not answer .*: start what is to listen there$/,
  );
});
