// The CPU time of a server that somebody else started, by a real control group.
import { expect, onTestFinished, test, vi } from 'vitest';
import { address } from '../../lib/scenario/index.ts';
import { startServer } from '../../lib/servers/index.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { isWatched, type WatchedServer } from '../../lib/servers/server.ts';
import { cgroupMounts, makeCgroup } from '../fixtures/cgroups.ts';
import { untilAnswers } from '../fixtures/listening.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { launch } from '../fixtures/node-process.ts';
import { refusalOf } from '../fixtures/refused.ts';

const groups = cgroupMounts().flatMap((mount, index) => makeCgroup(mount, index) ?? []);

/** A child of the server uses 0.2 s of CPU time for each request to /work, and says how much it has used. */
const server = `
  const { spawnSync } = require('node:child_process');
  const work = 'while (process.cpuUsage().user < 200000); const { user, system } = process.cpuUsage(); console.log((user + system) / 1e6)';
  require('node:http').createServer(({ url }, response) => {
    response.end(url === '/work' ? spawnSync(process.execPath, ['-e', work]).stdout : 'hi');
  }).listen(process.env.PORT, '127.0.0.1');`;

test.runIf(groups.length > 0).each(groups)(
  'ended children count in $folder, and its end is told',
  async ({ folder, enter }) => {
    const port = await freePort();
    const words = [...enter, process.execPath, '-e', server];
    const { process: child } = launch(words, { ...process.env, PORT: String(port) });
    onTestFinished(() => void child.kill('SIGKILL'));
    const origin = `http://127.0.0.1:${port}`;
    await untilAnswers(origin);
    const start = () =>
      startServer(address(origin, { cgroup: folder }), {
        binaries: {},
        folder: newFolder(),
        cpus: [0],
        workers: 1,
        page: { path: '/' },
      });
    const running = (await start()) as WatchedServer;
    onTestFinished(running.stop);
    expect(isWatched(running)).toBe(true);
    expect(running.processes()).toEqual([String(child.pid)]);
    const before = running.usage();
    expect(before.rssBytes).toBeGreaterThan(1e6);
    const used = Number(await (await fetch(`${origin}/work`)).text());
    // The server's own part is the start of a child.
    await vi.waitFor(() => {
      const seconds = running.usage().cpuSeconds - before.cpuSeconds;
      expect(seconds).toBeGreaterThan(0.95 * used);
      expect(seconds).toBeLessThan(2 * used);
    }, 20_000);
    child.kill('SIGKILL');
    expect(await running.died).toBe(`the control group ${folder} has no processes any more`);
    expect(await refusalOf(start())).toMatch(/ has no processes: start the server first$/);
  },
);
