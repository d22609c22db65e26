// How servers are started: in a group of a run, and before planning.
import { createServer } from 'node:http';
import { expect, test, vi } from 'vitest';
import { sidesWithLoads, type Side } from '../../lib/cli/side-loads.ts';
import { tryOnce } from '../../lib/cli/start-sides.ts';
import { UserError } from '../../lib/errors.ts';
import { RoundFailure } from '../../lib/runner/failures.ts';
import type { RunContext, Group, Plan } from '../../lib/runner/plan.ts';
import { openStages } from '../../lib/runner/round.ts';
import { command } from '../../lib/scenario/index.ts';
import type { CommandServer } from '../../lib/scenario/model.ts';
import type { Answer, RunningServer } from '../../lib/servers/index.ts';
import { listening } from '../fixtures/listening.ts';
import { cores, planOf, scenarioOf } from '../fixtures/plan.ts';

const scenario = scenarioOf(['a', 'b', 'c'].map((name) => ({ name, server: command(name) })));
const answer: Answer = { status: 200, bytes: 5, hash: '', encoding: '', type: '', location: '' };
const died = new Promise(() => undefined);
const serverOf = (name: string) =>
  ({ name, answer, died, stop: vi.fn(() => Promise.resolve()) }) as unknown as RunningServer;

function runOn(fails: Record<string, Error> = {}) {
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
    machines: { start },
    tools: { servers: {} },
    signal: new AbortController().signal,
  } as unknown as RunContext;
  const group: Group = { sides: plan.variants.slice(0, 2) };
  return { context, group, started, starts };
}

test('each server starts once, and its first response is kept', async () => {
  const { context, group, starts } = runOn();
  const answers = new Map<string, Answer>();
  const stages = await openStages(context, group, { round: 1, answers });
  expect(stages.map(({ server }) => server.name)).toEqual(['a', 'b']);
  expect(starts).toEqual(['a', 'b']);
  expect(answers.get('b')).toMatchObject(answer);
  const first = answers.get('a');
  await openStages(context, group, { round: 2, answers });
  expect(answers.get('a')).toBe(first);
});

test('what runs before the servers ends the run if it fails', async () => {
  const { context, group, starts } = runOn();
  const failed = new UserError("prepare 'false' ended with code 1");
  const prepare = vi.fn(() => Promise.resolve());
  const answers = new Map<string, Answer>();
  await openStages({ ...context, prepare }, group, { round: 1, answers });
  expect(prepare).toHaveBeenCalledOnce();
  starts.length = 0;
  const later = openStages({ ...context, prepare: () => Promise.reject(failed) }, group, {
    round: 2,
    answers,
  });
  await expect(later).rejects.toBe(failed);
  expect(starts).toEqual([]);
});

test('a failed first start ends the run, a later one the round', async () => {
  const { context, group, started } = runOn({ b: new UserError('cannot be', 2) });
  const answers = new Map<string, Answer>();
  await expect(openStages(context, group, { round: 1, answers })).rejects.toEqual(
    new UserError('b: cannot be', 2),
  );
  expect(started.get('a')?.stop).toHaveBeenCalled();
  answers.set('b', answer);
  await expect(openStages(context, group, { round: 2, answers })).rejects.toEqual(
    new RoundFailure('b: cannot be'),
  );
});

function waitingRun(plan: Partial<Plan> = {}) {
  const { context, group } = runOn();
  const ready = new Map<string, () => void>();
  const start = ({ command: name }: CommandServer) =>
    new Promise<RunningServer>((resolve) => {
      const server = Object.assign(serverOf(name), { pid: 1, startupMs: 12 });
      ready.set(name, () => resolve(server));
    });
  const changed = { ...context, machines: { start }, plan: { ...context.plan, ...plan } };
  return { context: changed as unknown as RunContext, group, ready };
}

test('sides whose start-up is asked for start one by one, in another order each round', async () => {
  const { context, group, ready } = waitingRun({ metric: 'startup' });
  for (const [round, first, second] of [
    [1, 'a', 'b'],
    [2, 'b', 'a'],
  ] as const) {
    ready.clear();
    const opening = openStages(context, group, { round });
    await vi.waitFor(() => expect([...ready.keys()]).toEqual([first]), 20_000);
    ready.get(first)?.();
    await vi.waitFor(() => expect([...ready.keys()]).toEqual([first, second]), 20_000);
    ready.get(second)?.();
    const stages = await opening;
    expect(stages.map(({ server, startupMs }) => [server.name, startupMs])).toEqual([
      ['a', 12],
      ['b', 12],
    ]);
  }
});

test('sides start at once where nobody asked for their start-up', async () => {
  const { context, group, ready } = waitingRun({ metric: 'memory' });
  const opening = openStages(context, group, { round: 1 });
  await vi.waitFor(() => expect([...ready.keys()]).toEqual(['a', 'b']), 20_000);
  for (const tell of ready.values()) tell();
  expect((await opening).map(({ startupMs }) => startupMs)).toEqual([undefined, undefined]);
});

test('a side gets a request with and without gzip, and is ended', async () => {
  const answering = createServer((asked, response) =>
    response.setHeader('content-encoding', asked.headers['accept-encoding'] ?? '').end('hello'),
  );
  const origin = `http://127.0.0.1:${await listening(answering)}`;
  const events: string[] = [];
  const start = (fails: boolean) => () => {
    events.push('starts');
    if (fails) return Promise.reject(new UserError('cannot be', 2));
    const stop = (): Promise<void> => Promise.resolve(void events.push('ends'));
    return Promise.resolve({ name: 'a', origin, answer, died, stop } as unknown as RunningServer);
  };
  const source = { kind: 'command', command: 'a', program: 'a' } as const;
  const asked = { notes: [], load: () => undefined, launch: () => ({}) };
  const [side] = sidesWithLoads([{ name: 'a', given: 'a', source }], asked, cores) as [Side];
  const tried = (fails: boolean) =>
    tryOnce(side, {
      tools: { k6: '', servers: {} },
      machines: { start: start(fails), lost: () => undefined },
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
