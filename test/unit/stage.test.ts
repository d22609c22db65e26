// How the servers of a group are started: once, checked at their first start, or taken over.
import { expect, test, vi } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import {
  RoundFailure,
  type BegunServer,
  type RunContext,
  type Tried,
  type Group,
} from '../../lib/runner/plan.ts';
import { openStages } from '../../lib/runner/round.ts';
import { command } from '../../lib/scenario/index.ts';
import type { CommandServer } from '../../lib/scenario/model.ts';
import type { Answer, RunningServer } from '../../lib/servers/index.ts';
import { planOf, scenarioOf } from '../fixtures/plan.ts';

const scenario = scenarioOf(['a', 'b', 'c'].map((name) => ({ name, server: command(name) })));
const answer: Answer = { status: 200, bytes: 5, hash: '', encoding: '', type: '', location: '' };

const serverOf = (name: string) =>
  ({
    name,
    version: '1',
    answer,
    died: new Promise(() => undefined),
    stop: vi.fn(() => Promise.resolve()),
  }) as unknown as RunningServer;

/** A run whose host starts servers, but for those that `fails` has a reason for; and its group of a and b. */
function runOn(fails: Record<string, Error> = {}, begun?: RunContext['begun']) {
  const plan = planOf(scenario);
  const started = new Map<string, RunningServer>();
  const starts: string[] = [];
  const start = ({ command: name }: CommandServer) => {
    starts.push(name);
    const why = fails[name];
    if (why !== undefined) return Promise.reject(why);
    const server = serverOf(name);
    started.set(name, server);
    return Promise.resolve(server);
  };
  const context = {
    plan,
    folder: '/nowhere',
    host: { start },
    tools: { servers: {} },
    signal: new AbortController().signal,
    begun,
  } as unknown as RunContext;
  const group: Group = { sides: plan.variants.slice(0, 2) };
  return { context, group, started, starts };
}

const taken = (name: string, bytes: number): BegunServer => ({
  server: serverOf(name),
  answer: { ...answer, bytes },
});

test('each is started once, and its first answer is kept', async () => {
  const { context, group, starts } = runOn();
  const tried = new Map<string, Tried>();
  const stages = await openStages(context, group, { round: 1, tried });
  expect(stages.map(({ server }) => server.name)).toEqual(['a', 'b']);
  expect(starts).toEqual(['a', 'b']);
  expect(tried.get('b')).toMatchObject({
    server: { name: 'b', version: '1', config: ['b'], atAddress: true },
    answer,
  });
  const first = tried.get('a');
  await openStages(context, group, { round: 2, tried });
  expect(tried.get('a')).toBe(first);
});

test('a failed first start ends the run with its exit code; later it costs the round', async () => {
  const { context, group, started } = runOn({ b: new UserError('cannot be', 2) });
  const tried = new Map<string, Tried>();
  await expect(openStages(context, group, { round: 1, tried })).rejects.toEqual(
    new UserError('b: cannot be', 2),
  );
  expect(started.get('a')?.stop).toHaveBeenCalled();
  tried.set('b', tried.get('a') as Tried);
  await expect(openStages(context, group, { round: 2, tried })).rejects.toEqual(
    new RoundFailure('b: cannot be'),
  );
});

test('running servers are taken over once; those of another group end', async () => {
  const all = { a: taken('a', 7), c: taken('c', 8) };
  const begun = new Map(Object.entries(all));
  const { context, group, starts } = runOn({}, begun);
  const tried = new Map<string, Tried>();
  const [a] = await openStages(context, group, { round: 1, tried });
  expect([a?.server, starts, tried.get('a')?.answer.bytes, begun.size]).toEqual([
    all.a.server,
    ['b'],
    7,
    0,
  ]);
  expect(all.a.server.stop).not.toHaveBeenCalled();
  expect(all.c.server.stop).toHaveBeenCalledOnce();
  await a?.stop();
  expect((await openStages(context, group, { round: 2, tried }))[0]?.server).not.toBe(all.a.server);
  expect(starts).toEqual(['b', 'a', 'b']);
});
