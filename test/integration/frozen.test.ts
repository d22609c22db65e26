// Servers that are stopped while it is not their turn: whatever ends in mid-slice, none stays so, and none stays at all.
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, readlink, realpath } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startChild } from '../../lib/process.ts';
import { nginx } from '../../lib/scenario/index.ts';
import { endWithUs, stoppedIn, whyNotStoppable } from '../../lib/servers/index.ts';
import { statFields } from '../../lib/servers/usage.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import type { Alternating, UnderLoad } from '../fixtures/alternate.mts';
import { start, type Started } from '../fixtures/node-process.ts';
import { descendants, isRunning, stillRunning, type Seen } from '../fixtures/processes.ts';
import { useServers } from '../fixtures/servers.ts';

const test = useServers();
let k6Binary = '';
beforeAll(async () => { k6Binary = (await ensureTools(['k6'])).k6; }, 300_000);

const soon = { timeout: 30_000, interval: 20 };

interface Loaded extends UnderLoad { runner: Started; all: Seen[] }

/** Two nginx under load in turns, of which at least one is stopped. */
async function underLoad(deaf = false): Promise<Loaded> {
  const options: Alternating = { nginx: test.binaries.nginx, k6: k6Binary, folder: await mkdtemp(path.join(test.folder, 'turns-')), deaf };
  const runner = start(['--import', 'tsx', 'test/fixtures/alternate.mts', JSON.stringify(options)], process.env);
  const line = await vi.waitFor(() => /^\{.*\}$/m.exec(runner.stdout())?.[0] ?? expect.fail(runner.stderr()), soon);
  const said = JSON.parse(line) as UnderLoad;
  let all: Seen[] = [];
  onTestFinished(() => { for (const { pid } of stillRunning(all)) process.kill(pid, 'SIGKILL'); });
  // What is to become k6 is setpriv at first.
  await vi.waitFor(() => {
    all = descendants(runner.process.pid as number).filter(({ command }) => command !== 'esbuild');
    expect(all.map(({ command }) => command).sort()).toEqual(['k6', ...Array.from({ length: 4 }, () => 'nginx'), 'sh']);
  }, soon);
  // Each had a turn of the other's.
  for (const server of said.servers) await vi.waitFor(() => expect(stoppedIn(server, false)).toBe(server), soon);
  return { ...said, runner, all };
}

/** Nothing is left, and the servers have done what they do when they are told to end. */
async function endedInOrder({ all, logs }: Loaded): Promise<void> {
  await vi.waitFor(() => expect(stillRunning(all)).toEqual([]), soon);
  for (const log of logs) expect(await readFile(log, 'utf8')).toMatch(/ (\d+)#\1: signal 15 \(SIGTERM\) received[^]* \1#\1: exit$/m);
}

describe('in the middle of the load', () => {
  it.each<[string, (loaded: Loaded) => void]>([
    ['KILL of the runner', ({ runner }) => runner.process.kill('SIGKILL')],
    ['KILL of the runner and k6', ({ runner, k6 }) => {
      runner.process.kill('SIGKILL');
      process.kill(k6, 'SIGKILL');
    }],
    ['STOP and KILL of the runner', ({ runner }) => {
      runner.process.kill('SIGSTOP');
      runner.process.kill('SIGKILL');
    }],
    ['STOP of the runner, and KILL of k6 and it', ({ runner, k6 }) => {
      runner.process.kill('SIGSTOP');
      process.kill(k6, 'SIGKILL');
      runner.process.kill('SIGKILL');
    }],
  ])('%s ends the servers in order', async (_, end) => {
    const loaded = await underLoad();
    end(loaded);
    expect(await loaded.runner.ended).toEqual([null, 'SIGKILL']);
    await endedInOrder(loaded);
  });

  it.each<[string, (loaded: Loaded) => void]>([
    ['KILL of k6', ({ k6 }) => process.kill(k6, 'SIGKILL')],
    ['INT', ({ runner }) => runner.process.kill('SIGINT')],
    ['TERM', ({ runner }) => runner.process.kill('SIGTERM')],
    ['TERM while k6 is stopped too', ({ runner, k6 }) => {
      process.kill(k6, 'SIGSTOP');
      runner.process.kill('SIGTERM');
    }],
  ])('%s has the runner end all in order, and nothing is left of what was to do so for it', async (_, end) => {
    const loaded = await underLoad();
    end(loaded);
    expect(await loaded.runner.ended, loaded.runner.stderr()).toEqual([0, null]);
    expect(loaded.runner.stdout()).toMatch(/^in order$/m);
    await endedInOrder(loaded);
  });

  it('the second Ctrl-C ends stopped servers at once', async () => {
    const loaded = await underLoad(true);
    // So that none comes to be continued before it comes.
    process.kill(loaded.k6, 'SIGSTOP');
    await vi.waitFor(() => expect(loaded.servers.map((pid) => stoppedIn(pid, false))).not.toEqual([undefined, undefined]), soon);
    const again = setInterval(() => loaded.runner.process.kill('SIGINT'), 50);
    onTestFinished(() => clearInterval(again));
    expect(await loaded.runner.ended).toEqual([130, null]);
    await vi.waitFor(() => expect(stillRunning(loaded.all)).toEqual([]), soon);
  });
});

it('a stopped child, and what it waits for, is told to end', async () => {
  const child = await startChild({ command: 'sh', args: ['-c', `trap 'kill $!; wait $!; exit 7' TERM; sh -c 'echo ready; exec sleep 600' & wait`] });
  onTestFinished(() => child.stop(0));
  await once(child.process.stdout as NodeJS.ReadableStream, 'data');
  process.kill(-child.pid, 'SIGSTOP');
  await vi.waitFor(() => expect([child, ...descendants(child.pid)].map(({ pid }) => stoppedIn(pid, false))).not.toContain(undefined), soon);
  await child.stop(600_000);
  expect(await child.exited).toEqual({ code: 7, signal: null });
});

describe('what sees to the end of others', () => {
  it('has a session of its own and none of the files that we have open, and is gone once it is not needed', async () => {
    const before = descendants(process.pid).map(({ pid }) => pid);
    const file = await open(process.execPath);
    onTestFinished(() => file.close());
    const over = await endWithUs([]);
    onTestFinished(over);
    const { pid } = descendants(process.pid).find((one) => !before.includes(one.pid)) ?? expect.fail('there is none');
    expect(statFields(`/proc/${pid}`)?.[3]).toBe(String(pid));
    const files = await readdir(`/proc/${pid}/fd`);
    expect(await Promise.all(files.map((fd) => readlink(`/proc/${pid}/fd/${fd}`)))).not.toContain(await realpath(process.execPath));
    await over();
    expect(isRunning(pid)).toBe(false);
    await over();
  });

  it('keeps nobody from ending', async () => {
    const { ended, stderr } = runScript('await endWithUs([]);');
    expect(await ended, stderr()).toEqual([0, null]);
  });

  it('kills what does not end by less', async () => {
    const { process: runner, stdout } = runScript(`
      const { pid } = await startChild({ command: 'sh', args: ['-c', 'trap "" TERM; echo deaf; while :; do sleep 1; done'], stdio: ['ignore', 'inherit', 'ignore'] });
      await endWithUs([pid]);
      console.log('guarded');
      setInterval(() => undefined, 1000);
    `);
    await vi.waitFor(() => expect(stdout().split('\n').sort()).toEqual(['', 'deaf', 'guarded']), soon);
    let all: Seen[] = [];
    // What is to become sleep is sh at first.
    await vi.waitFor(() => {
      all = descendants(runner.pid as number).filter(({ command }) => command === 'sh');
      expect(all).toHaveLength(2);
    }, soon);
    runner.kill('SIGKILL');
    await vi.waitFor(() => expect(stillRunning(all)).toEqual([]), soon);
  });

  it('kills what has left its group, by its mark', async () => {
    const { process: runner, stdout } = runScript(`
      const marked = (mark) => startChild({ command: 'env', args: [mark, 'setsid', '-f', 'sh', '-c', 'echo $$; trap "" TERM; while :; do sleep 1; done'], stdio: ['ignore', 'inherit', 'ignore'] });
      const { pid } = await marked('BAKEOFF_SIDE=one');
      await marked('BAKEOFF_SIDE=other');
      await endWithUs([pid], 'BAKEOFF_SIDE=one');
      setInterval(() => undefined, 1000);
    `);
    await vi.waitFor(() => expect(stdout()).toMatch(/^\d+\n\d+\n$/), soon);
    const all = stdout().trim().split('\n').map(Number);
    onTestFinished(() => { for (const pid of all.filter(isRunning)) process.kill(pid, 'SIGKILL'); });
    const environments = await Promise.all(all.map((pid) => readFile(`/proc/${pid}/environ`, 'latin1')));
    const [one, other] = ['one', 'other'].map((name) => all[environments.findIndex((text) => text.split('\0').includes(`BAKEOFF_SIDE=${name}`))] as number) as [number, number];
    runner.kill('SIGKILL');
    await vi.waitFor(() => expect(isRunning(one)).toBe(false), soon);
    expect(isRunning(other)).toBe(true);
  });

  function runScript(text: string): Started {
    const imports = "import { startChild } from './lib/process.ts'; import { endWithUs } from './lib/servers/index.ts';";
    return start(['--import', 'tsx', '--input-type=module', '-e', imports + text], process.env);
  }
});

describe('why a server cannot be stopped', () => {
  it('no reason: its processes are all in its group', async () => {
    const server = await test.start(nginx(['base'], { workers: 2 }), { workers: 2 });
    expect(whyNotStoppable(server.pid)).toBeUndefined();
  });

  it('one of its processes has left its group', async () => {
    const child = await startChild({ command: 'sh', args: ['-c', `setsid sh -c 'echo $$; exec sleep 600' & wait`] });
    const [pid] = await once(child.process.stdout as NodeJS.ReadableStream, 'data') as [Buffer];
    onTestFinished(() => {
      process.kill(-Number(pid), 'SIGKILL');
      return child.stop(0);
    });
    expect(whyNotStoppable(child.pid)).toBe(`its process ${Number(pid)} is in a process group of its own`);
  });

  it.runIf(process.getuid?.() === 0)("one of its processes is another user's", async () => {
    const child = await startChild({ command: 'sh', args: ['-c', 'echo ready; exec sleep 600'], user: { uid: 65_534, gid: 65_534 } });
    onTestFinished(() => child.stop(0));
    await once(child.process.stdout as NodeJS.ReadableStream, 'data');
    expect(whyNotStoppable(child.pid)).toBeUndefined();
    let why;
    process.seteuid?.(1);
    try {
      why = whyNotStoppable(child.pid);
    } finally {
      process.seteuid?.(0);
    }
    expect(why).toBe(`its process ${child.pid} is another user's`);
  });
});
