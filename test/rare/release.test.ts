// The files of a release.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { findGo, k6Package, k6Path } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { makeRelease, type Architecture } from '../../packaging/release.ts';
import { inProject, installPackage } from '../fixtures/installed-package.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { newOut, readResult, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);
const architecture = process.arch as Architecture;

test('is reproducible, and compares without Go', async () => {
  const [first, other] = [newFolder(), newFolder()] as const;
  const files = await makeRelease(first, [architecture]);
  expect(await makeRelease(other, [architecture])).toEqual(files);
  const sums = readFileSync(join(first, 'SHA256SUMS'), 'utf8');
  expect(readFileSync(join(other, 'SHA256SUMS'), 'utf8')).toBe(sums);
  execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: first });
  const fileOf = (begin: string) =>
    join(first, files.find((file) => file.startsWith(begin)) as string);

  const installed = installPackage(newFolder(), {
    'server-bakeoff': fileOf('server-bakeoff-0'),
    [k6Package(architecture)]: fileOf('server-bakeoff-k6'),
  });
  const packed = readdirSync(join(installed.folder, 'node_modules', k6Package(architecture)));
  expect(packed).toEqual(expect.arrayContaining(['LICENSE.md', 'NOTICES', 'modules.txt']));
  const data = join(installed.folder, 'data');
  const env = { ...home.env, K6_BIN: '', BAKEOFF_HOME: '', XDG_DATA_HOME: data };
  const go = await findGo(thisMachine());
  const out = newOut();
  const args = `nginx-open-file-cache --quick --rounds 1 --warmup 100ms --duration 200ms --store none --out ${out}`;
  const { code, stdout, stderr } = await inProject(
    installed.folder,
    ['bakeoff', 'scenario', ...args.split(' ')],
    {
      ...env,
      PATH: (process.env['PATH'] ?? '')
        .split(':')
        .filter((folder) => folder !== dirname(go.binary))
        .join(':'),
    },
  );
  expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
  expect(stderr).not.toContain('k6: building');
  expect(readResult(out).variants.map(({ successRatio }) => successRatio)).toEqual([1, 1]);

  // A local build uses only the packed sources, and is kept in the user's data folder.
  rmSync(join(installed.folder, `node_modules/${k6Package(architecture)}/delaylink`));
  const expected = await k6Path({ ...thisMachine(), bakeoffFolder: join(data, 'bakeoff') }, go);
  const k6 = () => inProject(installed.folder, ['bakeoff', 'k6'], env);
  const damaged =
    /^k6 of the package .* is damaged, or may not run where .*: it is built instead\n/;
  const built = await k6();
  expect(built).toMatchObject({ code: 0, stdout: `${expected}\n` });
  expect(built.stderr).toMatch(damaged);
  expect(built.stderr).toContain('k6: building from xk6-loadgen/');
  const again = await k6();
  expect([again.stdout, again.stderr.replace(damaged, '')]).toEqual([`${expected}\n`, '']);
}, 600_000);
