// A whole run of root, where another user has put programs into its PATH and beside the configs.
import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newOut, startCommand, useHome, wholeResult } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);
const stranger = 12_345;

const helpers =
  'apt-get bash cat chown chrt cp df dpkg-query env find flock git go grep id ip kill ls mkdir mount mv nginx node npm nsenter nice openssl perf perl prlimit ps renice rm rmdir sed setpriv sh sleep ss sysctl taskset tar test timeout true unshare update-rc.d which';

it.runIf(process.geteuid?.() === 0)('runs none of them', async () => {
  const out = newOut();
  const folder = join(home.folder, 'strangers');
  const mark = join(folder, 'mark');
  mkdirSync(folder);
  for (const name of helpers.split(' '))
    writeFileSync(join(folder, name), `#!/bin/sh\n/usr/bin/id -u >>${mark}\n`, { mode: 0o755 });
  const configs = ['a', 'b'].map((name) => join(folder, `${name}.conf`));
  for (const config of configs)
    writeFileSync(config, 'events {}\nhttp { server { listen 80; return 200 hello; } }\n');
  chownSync(folder, stranger, stranger);
  const run = startCommand(
    [
      'compare',
      ...configs,
      '--rounds',
      '1',
      '--duration',
      '500ms',
      '--store',
      'none',
      '--out',
      out,
    ],
    { ...home.env, PATH: `:${folder}::.:${process.env['PATH']}`, INIT_CWD: folder },
  );
  const result = await wholeResult(run, out);
  expect(result.variants.map(({ rounds }) => rounds.length)).toEqual([1, 1]);
  expect(existsSync(mark)).toBe(false);
});
