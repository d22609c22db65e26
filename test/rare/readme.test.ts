// The commands in README.md, run by a shell in a shortened form.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import { isRunnable } from '../../lib/scenario/variants.ts';
import { find, thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { run } from '../../lib/process.ts';
import { listening } from '../fixtures/listening.ts';
import { newClosedFolder } from '../fixtures/new-folder.ts';
import { useHome } from '../scenario-run.ts';

/** Flags that shorten a command. --fail-if needs a verdict, which takes four rounds. */
async function shorter(line: string) {
  const [, scenario] = /^npm run scenario -- (\S+)/.exec(line) ?? [];
  const two =
    // An article always runs completely.
    scenario === undefined || /^\d+$/.test(scenario)
      ? []
      : (await findScenario(scenario)).variants
          .filter(isRunnable)
          .slice(0, 2)
          .map(({ name }) => name);
  return [
    ...(two.length === 0 ? [] : [`--variants ${two.join(',')}`]),
    `--rounds ${line.includes('--fail-if') ? 4 : 1} --duration 200ms --warmup 200ms --store none`,
    ...(line.includes('--quick') ? [] : ['--quick']),
    ...(line.startsWith('npm run knobs') ? ['--knobs sendfile'] : []),
  ].join(' ');
}

/** Root builds no commits below a folder for temporary files. */
const ofCommits = (line: string) =>
  line.includes('--repo') ? { BAKEOFF_HOME: newClosedFolder() } : {};

const lines = [
  ...readFileSync(join(projectRoot, 'README.md'), 'utf8').matchAll(/^```sh\n([^]*?)^```$/gm),
]
  .flatMap(([, block = '']) => block.split('\n'))
  // A search takes a minute and has separate tests; the list of scenarios measures nothing.
  .filter((line) => /^npm run \w+ -- /.test(line) && !line.includes('--within'));

const home = useHome(['k6', 'nginx', 'h2o', 'openssl']);
let folder = '';
beforeAll(async () => {
  folder = join(home.folder, 'newcomer');
  for (const below of ['www', 'bin']) mkdirSync(join(folder, below), { recursive: true });
  writeFileSync(join(folder, 'www/index.html'), 'hello\n');
  const config = (line: string) =>
    `events { }\nhttp {\n  ${line}\n  server { listen 8080; root ${folder}/www; }\n}\n`;
  for (const name of ['A', 'B', 'old', 'new', 'nginx', 'nginx-new'])
    writeFileSync(
      join(folder, `${name}.conf`),
      config(/B|new/.test(name) ? 'access_log off;' : ''),
    );
  writeFileSync(
    join(folder, 'l.conf'),
    `server.document-root = "${folder}/www"\nserver.bind = "127.0.0.1"\nserver.port = 8080\nindex-file.names = ("index.html")\n`,
  );
  writeFileSync(
    join(folder, 'server.js'),
    "require('http').createServer((_, answer) => answer.end('hello\\n')).listen(process.env.PORT, '127.0.0.1');\n",
  );
  const page = "require('http').createServer((_, answer) => answer.end('hello\\n'))";
  writeFileSync(
    join(folder, 'server'),
    `#!/bin/sh\nexec '${process.execPath}' -e "${page}.listen(+process.argv[1], '127.0.0.1')" "$2"\n`,
    { mode: 0o755 },
  );
  writeFileSync(join(folder, 'Makefile'), 'all:\n\ttrue\n');
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder });
  git('init', '--quiet', '--initial-branch', 'main');
  git('add', 'server', 'Makefile');
  git('-c', 'user.name=a', '-c', 'user.email=a@b.example', 'commit', '--quiet', '--message', 'One');
  // Does the same as npm with a script of the checkout and additional flags.
  writeFileSync(
    join(folder, 'bin/npm'),
    `#!/bin/sh
command=$2; shift 3
export INIT_CWD="$PWD"
cd '${projectRoot}' && exec '${process.execPath}' bin/bakeoff.mjs "$command" "$@" $SHORTER --out "$INIT_CWD/results"
`,
    { mode: 0o755 },
  );
}, 300_000);

test('README.md has commands', () => {
  expect(lines.length).toBeGreaterThan(7);
});

test.each(lines)('%s', async (line) => {
  for (const program of ['caddy', 'lighttpd', 'make']) {
    if (
      new RegExp(`'${program}[ ']`).test(line) &&
      (await find(program, thisMachine())) === undefined
    )
      return console.warn(`SKIPPED: ${line}: ${program} is not installed`);
  }
  if (line.includes('/etc/nginx/') && !existsSync('/etc/nginx/nginx.conf'))
    return console.warn(`SKIPPED: ${line}: there is none`);
  const [, port] = /http:\/\/127\.0\.0\.1:(\d+)\//.exec(line) ?? [];
  if (port !== undefined)
    await listening(
      createServer((_, answer) => answer.end('hello\n')),
      Number(port),
    );
  const SHORTER = await shorter(line);
  const PATH = `${folder}/bin:${process.env['PATH']}`;
  const { code, stdout, stderr } = await run({
    command: 'sh',
    args: ['-c', line],
    cwd: folder,
    env: { ...process.env, ...home.env, ...ofCommits(line), HOME: folder, SHORTER, PATH },
  });
  // Runs this short sometimes report "slower", or have no verdict because of other work on the machine.
  const isUndecided = code === 1 && stderr.includes('it has no verdict');
  if (!line.includes('--fail-if')) expect(code, stderr + stdout).toBe(0);
  else if (!isUndecided) expect([0, 3], stderr + stdout).toContain(code);
  expect(stdout).toContain('requests/s');
});
