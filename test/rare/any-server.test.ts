// The installed servers of examples/any-server, with the commands in its README.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, readFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { findGo } from '../../lib/setup/k6.ts';
import { find, thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { newFolder, sharedFolder } from '../fixtures/new-folder.ts';
import { stillRunning } from '../fixtures/processes.ts';
import { newOut, startCommand, startedOf, useHome, wholeResult } from '../scenario-run.ts';

const shipped = join(projectRoot, 'examples/any-server');
// Apache reads the page as another user, who may not enter the checkout where that is in root's home.
const folder = sharedFolder();
cpSync(shipped, folder, { recursive: true });
chmodSync(folder, 0o755);
const sides = [...readFileSync(join(folder, 'README.md'), 'utf8').matchAll(/^ {2}'(.+)'/gm)].map(
  ([, side]) => side as string,
);
const programOf = (side: string) => side.replace(/^[a-z]+=/, '').split(' ')[0] as string;

const home = useHome(['k6']);
let goFolder: string;
beforeAll(async () => {
  const go = (await findGo(thisMachine())).binary;
  goFolder = dirname(go);
  // The first compilation of its packages may exceed the time limit for a start.
  execFileSync(go, ['build', '-o', '/dev/null', 'server.go'], { cwd: folder });
}, 900_000);

test('each serves its page, and leaves nothing behind', async () => {
  expect(sides.map(programOf)).toEqual(['caddy', 'lighttpd', 'apache2', 'haproxy', 'node', 'go']);
  const installed: string[] = [];
  for (const side of sides) {
    const program = programOf(side);
    if (program === 'go' || (await find(program, thisMachine())) !== undefined)
      installed.push(side);
    else console.warn(`SKIPPED: the example with ${program}, which is not installed`);
  }
  const out = newOut();
  const args = `--quick --rounds 1 --warmup 100ms --duration 200ms --store none --out ${out}`.split(
    ' ',
  );
  const run = startCommand(['compare', ...installed, ...args], {
    ...home.env,
    INIT_CWD: folder,
    PATH: [goFolder, process.env.PATH].join(delimiter),
  });
  const started = await startedOf(run, (commands) => expect(commands).toContain('k6'));
  const { variants } = await wholeResult(run, out);
  expect(stillRunning(started)).toEqual([]);
  expect(variants.map(({ server }) => server?.name)).toEqual(
    installed.map((side) => basename(programOf(side))),
  );
  const { length } = readFileSync(join(folder, 'www/index.html'));
  for (const { name, rounds, successRatio, load } of variants) {
    const [phase] = rounds[0]?.phases ?? [];
    expect([name, successRatio, load.bodyBytes]).toEqual([name, 1, length]);
    expect(phase?.responses['2xx']).toBe(phase?.requests);
    expect(phase?.requests, name).toBeGreaterThan(0);
    expect(phase?.serverCpuSeconds, name).toBeGreaterThan(0);
  }
});

test('Caddy without a config is told that it lacks one', async (context) => {
  const caddy = await find('caddy', thisMachine());
  if (caddy === undefined) return context.skip('Caddy is not installed');
  const sides = ['one=caddy run', 'two=caddy run'];
  const run = startCommand(['compare', ...sides, '--store', 'none', '--out', newOut()], {
    ...home.env,
    // Without the user's own Caddyfile.
    INIT_CWD: newFolder(),
  });
  await run.ended;
  expect(run.stderr()).toMatch(
    /^one: caddy \(pid \d+\) listens on 127\.0\.0\.1:2019, its administrator's, .* name a config/m,
  );
});
