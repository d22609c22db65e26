// How the servers of a group are started: once, checked at their first start.
import { expect, test, vi } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import { RoundFailure, type RunContext, type Group } from '../../lib/runner/plan.ts';
import { openStages } from '../../lib/runner/round.ts';
import { command } from '../../lib/scenario/index.ts';
import type { CommandServer } from '../../lib/scenario/model.ts';
import type { Answer, RunningServer } from '../../lib/servers/index.ts';
import { planOf, scenarioOf } from '../fixtures/plan.ts';

const scenario = scenarioOf(['a', 'b', 'c'].map((name) => ({ name, server: command(name) })));
const answer: Answer = { status: 200, bytes: 5, hash: '', encoding: '', type: '', location: '' };
const died = new Promise(() => undefined);
const serverOf = (name: string) =>
  ({ name, answer, died, stop: vi.fn(() => Promise.resolve()) }) as unknown as RunningServer;

/** A run whose host starts servers, but for those that `fails` has a reason for; and its group of a and b. */
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
    host: { start },
    tools: { servers: {} },
    signal: new AbortController().signal,
  } as unknown as RunContext;
  const group: Group = { sides: plan.variants.slice(0, 2) };
  return { context, group, started, starts };
}

test('each is started once, and its first answer is kept', async () => {
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

test('a failed first start ends the run with its exit code; later it costs the round', async () => {
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
