// Servers that answer are looked at once more: whether it is they who have the port.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startChild } from '../../lib/process.ts';
import { nginx } from '../../lib/scenario/index.ts';
import { startServer } from '../../lib/servers/index.ts';
import { freePort, untilItHasThePort } from '../../lib/servers/ports.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { listening } from '../fixtures/listening.ts';
import { pidIn } from '../fixtures/node-process.ts';
import { isRunning } from '../fixtures/processes.ts';
import { useServers, welcomePage } from '../fixtures/servers.ts';

const test = useServers();
const never = new AbortController().signal;

it('says within a limit that a process does not listen where somebody else answers', async () => {
  const port = await listening(createServer());
  const child = await startChild({ command: 'sleep', args: ['60'] });
  onTestFinished(() => child.stop());
  await expect(
    untilItHasThePort(child.pid, { address: '127.0.0.1', port }, '/opt/server', never, 100),
  ).rejects.toThrow(
    `/opt/server (pid ${child.pid}) does not listen on 127.0.0.1:${port} within 0.1 s, where somebody else answers: end that, or see why it waits`,
  );
});

it('ends a server that never listens while another answers for it', async () => {
  const port = await freePort();
  const binary = path.join(test.folder, 'never-listens');
  await writeFile(
    binary,
    `#!/bin/sh\ncase "$1" in -V) echo "nginx version: nginx/1.22.1";; -t) ;; *) echo $$ >${test.folder}/pid; exec sleep 60;; esac\n`,
  );
  await chmod(binary, 0o755);
  await chmod(test.folder, 0o777);
  onTestFinished(() => chmod(test.folder, 0o755));
  const starting = startServer(nginx(['base'], { workers: 1, binary }), {
    binaries: {},
    folder: path.join(test.folder, 'round'),
    cpus: [0],
    workers: 1,
    page: welcomePage,
    port,
  });
  const outcome = starting.then(
    () => expect.fail('it was started'),
    (error: Error) => error.message,
  );
  const pid = await pidIn(`${test.folder}/pid`);
  await listening(
    createHttpServer((_, response) => response.end('x'.repeat(welcomePage.bodyBytes))),
    port,
  );
  expect(await outcome).toBe(
    `port ${port} of 127.0.0.1 is in use: end what listens there, or take another port`,
  );
  expect(isRunning(pid)).toBe(false);
}, 30_000);

it.runIf(process.getuid?.() === 0)(
  'says what to do where a server hides from its user what it has open',
  async () => {
    const folder = path.join(test.folder, 'hidden');
    await mkdir(folder);
    await chmod(folder, 0o777);
    // Linux hides what a process has open whose file its user may not read, as of one with capabilities of its own.
    const binary = path.join(folder, 'nginx');
    await copyFile(test.binaries.nginx, binary);
    await chmod(binary, 0o711);
    const script = `
    import { nginx } from ${JSON.stringify(path.join(projectRoot, 'lib/scenario/index.ts'))};
    import { startServer } from ${JSON.stringify(path.join(projectRoot, 'lib/servers/index.ts'))};
    const page = { docroot: 'nginx', path: '/', bodyBytes: 612 };
    startServer(nginx(['base'], { workers: 1, binary: ${JSON.stringify(binary)} }), { binaries: {}, folder: ${JSON.stringify(path.join(folder, 'round'))}, cpus: [0], workers: 1, page })
      .then(async (server) => { await server.stop(); console.log('started'); }, (error) => console.log(error.message));`;
    const file = path.join(folder, 'start.mts');
    await writeFile(file, script);
    const child = spawn(
      'setpriv',
      [
        '--reuid=65534',
        '--regid=65534',
        '--clear-groups',
        '--',
        process.execPath,
        '--import',
        import.meta.resolve('tsx'),
        file,
      ],
      {
        cwd: projectRoot,
        env: { ...process.env, TMPDIR: folder, HOME: folder, BAKEOFF_HOME: folder },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    await once(child, 'close');
    expect(said).toMatch(
      /^\S+\/hidden\/nginx \(pid \d+\) hides from this user whether 127\.0\.0\.1:\d+ is its own: its file has rights of its own \(setcap, setuid\) or cannot be read; take a copy without them \(cp\), or start bakeoff as root\n$/,
    );
  },
  60_000,
);
