// Commands whose processes hide whose they are: with an empty environment, in no group, session or tree of the command's.
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { command } from '../../lib/scenario/index.ts';
import { startServer, type StartedServer } from '../../lib/servers/index.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { pidIn } from '../fixtures/node-process.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { isRunning } from '../fixtures/processes.ts';

const listens =
  "const server = require('node:http').createServer((_, response) => response.end('hi')).listen(Number(process.argv[2] ?? process.env.PORT), '127.0.0.1');";
const files = {
  'server.cjs': listens,
  // Takes the port as soon as the server that has it gives it up.
  'waits.cjs': `const net = require('node:net'), port = Number(process.argv[2]);
    const take = () => net.createServer().once('error', () => setTimeout(take, 20)).listen(port, '127.0.0.1');
    const look = () => net.connect(port, '127.0.0.1').once('connect', take).once('error', () => setTimeout(look, 20));
    look();`,
  // Ends once another one has its port.
  'replaced.cjs': `${listens}
    const look = () => require('node:net').connect(Number(process.env.PORT), '127.0.0.1').once('connect', () => process.exit()).once('error', () => setTimeout(look, 20));
    process.once('SIGTERM', () => { server.close(look); server.closeAllConnections(); });`,
};

async function start(line: string, port?: number): Promise<StartedServer & { folder: string }> {
  const folder = await ownFiles(files);
  const started = await startServer(
    { ...command(line, port === undefined ? {} : { port }), folder },
    {
      binaries: {},
      folder: path.join(folder, 'round'),
      cpus: [0],
      workers: 1,
      page: { path: '/' },
    },
  );
  onTestFinished(started.stop);
  return { ...started, folder };
}

test('what has left everything but the log is ended with the command', async () => {
  const { folder, stop } = await start(
    `sh -c 'env -i setsid -f sh -c "echo \\$\\$ > left.pid; exec sleep 300"; exec node server.cjs'`,
  );
  const left = await pidIn(path.join(folder, 'left.pid'));
  onTestFinished(() => {
    if (isRunning(left)) process.kill(left, 'SIGKILL');
  });
  await stop();
  expect(isRunning(left)).toBe(false);
});

test("what listens on its port when it has ended may be another's: it is named", async () => {
  const port = await freePort();
  const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => said.mockRestore());
  const { pid, stop } = await start(
    `sh -c 'env -i setsid -f ${process.execPath} waits.cjs {port} >/dev/null 2>&1; exec node replaced.cjs'`,
    port,
  );
  await stop();
  const [line = ''] = said.mock.calls.map(([text]) => String(text));
  const left = Number(/\(pid (\d+)\): end/.exec(line)?.[1]);
  expect(isRunning(left), line).toBe(true);
  process.kill(left, 'SIGKILL');
  expect(said.mock.calls).toEqual([
    [
      `sh (pid ${pid}) has ended, and 127.0.0.1:${port} is still in use (pid ${left}): end that if sh has started it`,
    ],
  ]);
});
