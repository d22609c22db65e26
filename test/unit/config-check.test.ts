// A config check (`-t`) that does not end. A script takes the place of nginx.
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

const endless = 'trap "" TERM; while :; do sleep 0.1; done';

test('the check is stopped, and one line names the config', async () => {
  const folder = await ownFiles({
    'own.conf': 'events {}\nhttp { server { listen 80; } }',
    nginx: `#!/bin/sh\n[ "$1" != -V ] || { echo nginx version: nginx/1.22.1; exit; }\n${endless}\n`,
  });
  await chmod(folder, 0o755);
  await chmod(path.join(folder, 'nginx'), 0o755);
  // The commands before the check have separate limits.
  await serverBuild('nginx', path.join(folder, 'nginx'));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let settled = false;
  const spec = { config: [path.join(folder, 'own.conf')], workers: 1, asIs: {} };
  const started = startServer(
    { name: 'nginx', ...spec },
    {
      binaries: { nginx: path.join(folder, 'nginx') },
      folder: path.join(folder, 'run'),
      cpus: [0],
      workers: 1,
      page: { path: '/' },
    },
  );
  const refused = refusalOf(started).finally(() => void (settled = true));
  while (!settled) {
    vi.advanceTimersByTime(1000);
    await turn();
  }
  expect(await refused).toContain(`has not read its config ${folder}/own.conf within 30 s`);
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
