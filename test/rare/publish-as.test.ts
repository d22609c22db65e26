// npm run publish-as in a clone.
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { findGo, goEnvironment } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const addressIn = (folder: string): string =>
  /^module (.*)\/xk6-loadgen$/m.exec(
    readFileSync(join(folder, 'xk6-loadgen/go.mod'), 'utf8'),
  )?.[1] as string;

test('the address is changed everywhere, even twice', async () => {
  const go = (await findGo(thisMachine())).binary;
  const clone = join(newFolder(), 'bakeoff');
  execFileSync('git', ['clone', '--quiet', projectRoot, clone]);
  symlinkSync(join(projectRoot, 'node_modules'), join(clone, 'node_modules'));
  const ended = (command: string, args: readonly string[], folder = '.') => {
    const env = goEnvironment(process.env);
    const cwd = join(clone, folder);
    const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env });
    return { status, stdout, stderr };
  };
  const publishAs = (address: string) =>
    ended(process.execPath, ['--import', 'tsx', 'packaging/publish-as.ts', address]);
  const commit = (): void => {
    const author = ['-c', 'user.name=test', '-c', 'user.email=test@localhost'];
    execFileSync('git', [...author, 'commit', '--quiet', '-am', 'another address'], { cwd: clone });
  };
  // node_modules is a link here, which .gitignore does not match.
  appendFileSync(join(clone, '.git/info/exclude'), 'node_modules\n');

  for (const wrong of ['github.com/one', 'https://github.com/one/two'])
    expect(publishAs(wrong)).toMatchObject({
      status: 2,
      stderr: `"${wrong}" is no address: npm run publish-as -- github.com/OWNER/REPO\n`,
    });
  expect(publishAs('github.com/grafana/xk6-output-influxdb').stderr).toBe(
    'github.com/grafana/xk6-output-influxdb is another project, which docker/Dockerfile names\n',
  );
  expect(ended('git', ['status', '--porcelain']).stdout).toBe('');

  // Concatenated, because this file is in the clone, and an address that a file already names is refused.
  const [name, other] = ['Some-One/Web.Bench', 'lib/cli'] as const;
  const [first, second] = [`github.com/${name}`, `github.com/${other}`] as const;
  const before = addressIn(clone);
  const asDocumented = ['run', '-s', 'publish-as', '--', first];
  expect(ended('npm', asDocumented)).toMatchObject({ status: 0, stderr: '' });
  expect(publishAs(first).stdout).toBe('nothing changed: this is the address already\n');
  expect(publishAs(second).stderr).toContain('there are uncommitted changes');
  const leftOf = (address: string): string => {
    const elsewhere = ['.', ':!test/rare/publish-as.test.ts'];
    const short = address.slice(address.indexOf('/') + 1);
    return ended('git', ['grep', '-iIF', short, '--', ...elsewhere]).stdout;
  };
  expect(leftOf(before)).toBe('');
  const text = (file: string): string => readFileSync(join(clone, file), 'utf8');
  expect(text('README.md')).toContain(`git clone https://${first}.git`);
  expect(text('docs/ci.md')).toContain(`uses: ${name}@v1`);
  expect(text('docker/compose.yaml')).toContain(`image: ${name.toLowerCase()}:`);
  expect(text('package.json')).toContain(`"git+https://${first}.git"`);
  const flags = ['-trimpath', '-buildvcs=false'];
  const module = 'xk6-loadgen';
  const checks: [command: string, args: string[], folder?: string][] = [
    [join(dirname(go), 'gofmt'), ['-l', '.'], module],
    // For packages that import k6, check the imports only, because vet would first read all of k6.
    [go, ['vet', ...flags, './engine', './link', './internal/...', './cmd/delaylink'], module],
    [go, ['list', '-deps', '-f', '{{with .Error}}{{.}}{{end}}', './...'], module],
  ];
  for (const [command, args, folder] of checks)
    expect(ended(command, args, folder)).toMatchObject({ status: 0, stdout: '' });
  const named = ['test/unit/docker.test.ts', 'test/integration/package.test.ts'];
  expect(
    ended('npx', ['vitest', 'run', '--project', 'unit', '--project', 'integration', ...named]),
  ).toMatchObject({
    status: 0,
  });

  commit();
  expect(publishAs(second)).toMatchObject({ status: 0, stderr: '' });
  expect(addressIn(clone)).toBe(second);
  expect(leftOf(first)).toBe('');
  commit();
  // A change back restores all files, although some contain paths with lib/cli.
  expect(publishAs(first)).toMatchObject({ status: 0, stderr: '' });
  expect(ended('git', ['diff', '--stat', 'HEAD^'])).toEqual({ status: 0, stdout: '', stderr: '' });
}, 600_000);
