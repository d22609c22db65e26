// A log replay: the latency of a burst, calculated and measured by vegeta's attacker.
import { execFile } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { findGo, goEnvironment } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { closedPort, untilAnswers } from '../fixtures/listening.ts';
import { start } from '../fixtures/node-process.ts';
import { newOut, readResult, runFolder, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6']);

/** A server that takes this many milliseconds per request, one at a time. */
const queue = `import http from 'node:http';
let free = 0;
http.createServer((request, response) => {
  const now = performance.now();
  free = Math.max(free, now) + Number(process.argv[2]);
  setTimeout(() => response.end('hello'), free - now);
}).listen(process.env.PORT, '127.0.0.1');
`;

/** 30 requests in each of 60 seconds, and 400 in each of three seconds. */
const log = Array.from({ length: 60 }, (_, second) =>
  `1.2.3.4 - - [10/Oct/2025:13:55:${String(second).padStart(2, '0')} +0000] "GET /${second % 7} HTTP/1.1" 200 5 "-" "-"\n`.repeat(
    second >= 40 && second < 43 ? 400 : 30,
  ),
).join('');

test('the latency of a burst equals that of the queue and that of vegeta', async () => {
  writeFileSync(join(home.folder, 'queue.mjs'), queue);
  writeFileSync(join(home.folder, 'access.log'), log);
  const out = newOut();
  const run = startCommand(
    `compare --log access.log --pace 2x --duration 5s --rounds 1 --store none --no-look --keep-secrets --out ${out}`
      .split(' ')
      .concat('slow=node queue.mjs 4', 'quick=node queue.mjs 2'),
    { ...home.env, INIT_CWD: home.folder },
  );
  expect(await run.ended, run.stdout() + run.stderr()).toBe(0);
  expect(run.stdout()).toContain(
    'are replayed 2 times as fast: 1,410 requests in 5 s, 800 in the busiest second.',
  );
  const [slow, quick] = readResult(out).variants;
  expect(slow?.rounds[0]?.phases[0]?.requests).toBe(1410);
  // 1,200 requests within 1.5 s: the last one waits for all unfinished ones.
  expect(slow?.latencyMs?.max).toBeGreaterThan(1200 * 4 - 1500 - 5);
  expect(slow?.latencyMs?.max).toBeLessThan((1200 * 4 - 1500) * 1.1);
  expect(quick?.latencyMs?.max).toBeGreaterThan(1200 * 2 - 1500 - 5);
  const port = await closedPort();
  start([join(home.folder, 'queue.mjs'), '4'], { ...process.env, PORT: String(port) });
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(url);
  const { binary } = await findGo(thisMachine());
  const requests = readdirSync(runFolder(out)).find((name) => name.startsWith('requests-'));
  const { stdout } = await promisify(execFile)(
    binary,
    ['run', '.', url, join(runFolder(out), requests as string)],
    { cwd: join(import.meta.dirname, '../vegeta'), env: goEnvironment(thisMachine().env) },
  );
  const [p50 = 0, p99 = 0] = stdout.trim().split(' ').map(Number);
  for (const [name, ms] of [
    ['p50', p50],
    ['p99', p99],
  ] as const) {
    const ratio = (slow?.latencyMs?.[name] ?? 0) / ms;
    expect(Math.abs(ratio - 1), `${name} ${ms} ms`).toBeLessThan(0.1);
  }
});
