// What a release publishes: the same bytes twice, and packages with which a comparison runs where there is no Go.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { findGo, k6Package } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { run } from '../../lib/process.ts';
import { makeRelease, type Architecture } from '../../packaging/release.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { newOut, readResult, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);
const here = process.arch as Architecture;

test('twice the same bytes, and a comparison without Go', async () => {
  const [one, other] = [newFolder(), newFolder()] as const;
  const files = await makeRelease(one, [here]);
  expect(await makeRelease(other, [here])).toEqual(files);
  const sums = readFileSync(join(one, 'SHA256SUMS'), 'utf8');
  expect(readFileSync(join(other, 'SHA256SUMS'), 'utf8')).toBe(sums);
  execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: one });
  const fileOf = (begin: string) =>
    join(one, files.find((file) => file.startsWith(begin)) as string);

  const project = newFolder();
  const { dependencies } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const ofCheckout = Object.keys(dependencies).map((name) => [
    name,
    `file:${join(projectRoot, 'node_modules', name)}`,
  ]);
  writeFileSync(
    join(project, 'package.json'),
    JSON.stringify({
      private: true,
      dependencies: {
        ...Object.fromEntries(ofCheckout),
        'server-bakeoff': `file:${fileOf('server-bakeoff-0')}`,
        [k6Package(here)]: `file:${fileOf('server-bakeoff-k6')}`,
      },
    }),
  );
  execFileSync(
    'npm',
    ['install', '--silent', '--offline', '--ignore-scripts', '--no-audit', '--no-fund'],
    { cwd: project, env: { ...process.env, npm_config_cache: join(project, 'npm-cache') } },
  );
  const go = (await findGo(thisMachine())).binary;
  const out = newOut();
  const compare = () =>
    run({
      command: 'npx',
      args: `bakeoff scenario nginx-open-file-cache --quick --rounds 1 --duration 200ms --store none --out ${out}`.split(
        ' ',
      ),
      cwd: project,
      env: {
        ...home.env,
        K6_BIN: '',
        XDG_DATA_HOME: join(project, 'data'),
        PATH: (process.env['PATH'] ?? '')
          .split(':')
          .filter((folder) => folder !== dirname(go))
          .join(':'),
      },
    });
  const { code, stdout, stderr } = await compare();
  expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
  expect(stderr).not.toContain('k6: building');
  expect(readResult(out).variants.map(({ successRatio }) => successRatio)).toEqual([1, 1]);

  rmSync(join(project, `node_modules/${k6Package(here)}/delaylink`));
  expect((await compare()).stderr).toMatch(
    /^k6 of the package server-bakeoff-k6-linux-\w+ is damaged, or may not run where it is \(noexec\): it is built instead$/m,
  );
}, 600_000);
