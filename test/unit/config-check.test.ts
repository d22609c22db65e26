// A config check (`-t`) that does not end. A script takes the place of nginx.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import { serverBuild } from '../../lib/servers/build.ts';
import { startServer } from '../../lib/servers/index.ts';
import { run } from '../../lib/process.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { isRunning } from '../fixtures/processes.ts';
import { refusalOf } from '../fixtures/refused.ts';

async function startScript(script: string) {
  const folder = await ownFiles({
    'own.conf': 'events {}\nhttp { server { listen 80; } }',
    nginx: `#!/bin/sh\n[ "$1" != -V ] || { echo nginx version: nginx/1.22.1; exit; }\n${script}\n`,
  });
  await chmod(folder, 0o777);
  const binary = path.join(folder, 'nginx');
  await chmod(binary, 0o755);
  // The commands before the check have separate limits.
  await serverBuild('nginx', binary);
  const config = [path.join(folder, 'own.conf')];
  const start = () =>
    startServer(
      { name: 'nginx', config, workers: 1, asIs: {} },
      {
        binaries: { nginx: binary },
        folder: path.join(folder, 'run'),
        cpus: [0],
        workers: 1,
        page: { path: '/' },
      },
    );
  return { folder, start };
}

const endless = 'trap "" TERM; while :; do sleep 0.1; done';

test('the check is stopped, and one line names the config', async () => {
  const { folder, start } = await startScript(endless);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let settled = false;
  const refused = refusalOf(start()).finally(() => void (settled = true));
  while (!settled) {
    vi.advanceTimersByTime(1000);
    await turn();
  }
  expect(await refused).toContain(`has not read its config ${folder}/own.conf within 30 s`);
});

test('what the check leaves running ends with it, and keeps nobody waiting', async () => {
  const { folder, start } = await startScript(
    'setsid sleep 600 & echo $! >"$(dirname "$0")/pid"; echo "nginx: [emerg] no" >&2; exit 1',
  );
  // Files of the check's own user go with it.
  const pid = path.join(folder, 'pid');
  writeFileSync(pid, '');
  chmodSync(pid, 0o666);
  expect(await refusalOf(start())).toMatch(/ does not accept it: no$/);
  expect(isRunning(Number(readFileSync(pid, 'utf8')))).toBe(false);
});

test.runIf(process.getuid?.() === 0)('the check has the limits of the server', async () => {
  const { start } = await startScript(
    'echo $(cat /proc/self/oom_score_adj; grep "Max processes" /proc/self/limits) >&2; exit 1',
  );
  expect(await refusalOf(start())).toMatch(
    / does not accept it: 1000 Max processes 4096 4096 processes$/,
  );
});

test('a command is ended together with its process group', async () => {
  let pid = 0;
  // The sleep is in another session, so it outlives the process group.
  const finished = run({
    command: 'sh',
    args: ['-c', `setsid sleep 3 & ${endless}`],
    limit: { seconds: 0.3, message: 'it took too long' },
    started: (its) => void (pid = its),
  });
  await expect(finished).rejects.toThrow(new UserError('it took too long'));
  expect(isRunning(pid)).toBe(false);
});
