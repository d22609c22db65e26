// A server that the kernel kills because memory runs out. Alone: the kernel counts such processes for the whole machine.
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { command } from '../../lib/scenario/index.ts';
import { startServer } from '../../lib/servers/index.ts';
import { makeCgroup, type Cgroup } from '../fixtures/cgroups.ts';
import { ownFiles } from '../fixtures/own-files.ts';

/** A group that may use 150 MB; undefined where none can be made. */
function smallGroup(): Cgroup | undefined {
  const version1 = '/sys/fs/cgroup/memory';
  const isVersion1 = existsSync(version1);
  const group = makeCgroup(isVersion1 ? version1 : '/sys/fs/cgroup', 0);
  if (group === undefined) return undefined;
  const file = isVersion1 ? 'memory.limit_in_bytes' : 'memory.max';
  try {
    writeFileSync(path.join(group.folder, file), '150000000');
    return group;
  } catch {
    console.warn(
      `SKIPPED: the test with a limit of memory, which cannot be set in ${group.folder}`,
    );
    return undefined;
  }
}

const group = smallGroup();

/** Takes up to 400 MB when it is asked for /more. */
const server = `
const kept = [];
require('node:http').createServer((asked, response) => {
  if (asked.url === '/more') for (let n = 0; n < 400; n++) kept.push(Buffer.alloc(1e6, 1));
  response.end('hi');
}).listen(process.env.PORT, '127.0.0.1');
`;

test.skipIf(group === undefined)('a server that is killed for memory is reported so', async () => {
  const { folder } = group as Cgroup;
  const files = await ownFiles({
    'server.cjs': server,
    'small.sh': `echo $$ >'${folder}/cgroup.procs' && exec node server.cjs\n`,
  });
  const started = await startServer(
    { folder: files, ...command('sh small.sh') },
    { binaries: {}, folder: path.join(files, 'run'), cpus: [0], workers: 1, page: { path: '/' } },
  );
  onTestFinished(started.stop);
  await expect(fetch(`${started.origin}/more`)).rejects.toThrow();
  expect(await started.died).toBe(
    `sh (pid ${started.pid}) was killed by the kernel, as memory ran out (of the machine, or of its container or service): give it more, or let the server use less`,
  );
});
