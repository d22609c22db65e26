import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { additions } from '../../cli/main.ts';
import { askedFlags, readAsked } from '../../cli/asked.ts';
import { compareCommand } from '../../cli/compare.ts';
import { sidesWithLoads } from '../../cli/side-loads.ts';
import { readSides } from '../../cli/sides.ts';
import { readArguments } from '../../cli/arguments.ts';
import { sharedFolder } from '../../../test/fixtures/new-folder.ts';
import { refusalOf } from '../../../test/fixtures/refused.ts';

const folder = sharedFolder();
beforeEach(() => {
  vi.stubEnv('INIT_CWD', folder);
  const line = '1.2.3.4 - - [10/Oct/2025:13:55:36 +0000] "GET /a HTTP/1.1" 200 612 "-" "-"\n';
  writeFileSync(join(folder, 'access.log'), line);
  const entry = { request: { method: 'GET', url: 'http://a.example/b', headers: [] } };
  const answered = { ...entry, response: { status: 404 } };
  writeFileSync(join(folder, 'b.har'), JSON.stringify({ log: { entries: [answered] } }));
});

test.each([
  ['--site a', /^--site is for --log or --har: give one/],
  ['--har b.har --url /', /^--har and --url do not go together: leave one out$/],
  ['--url / --targets t', /^--url and --targets do not go together: leave one out$/],
  ['--log access.log --har b.har', /^--log and --har do not go together: leave one out$/],
])('compare with %s: refused in one line', async (flags, message) => {
  const sides = ['http://localhost:1/', 'http://localhost:2/'];
  const asked = compareCommand([...sides, ...flags.split(' ')], additions);
  await expect(asked).rejects.toMatchObject({ exitCode: 2 });
  expect(await refusalOf(asked)).toMatch(message);
});

async function firstSide(...args: string[]) {
  const given = await readSides(['http://localhost:1/', 'http://localhost:2/']);
  const { runParts } = additions;
  const asked = await readAsked(readArguments(args, askedFlags(runParts)), given, runParts);
  return sidesWithLoads(given, asked, { generatorCpus: [0] })[0];
}

test('the check before the load gets the name of a HAR, and --accept-differences', async () => {
  expect(await firstSide('--har', 'b.har')).toMatchObject({
    page: { host: 'a.example', requests: [{ target: '/b', status: 404 }] },
    recorded: { record: 'HAR' },
  });
  expect(await firstSide('--log', 'access.log', '--accept-differences')).toMatchObject({
    page: { requests: [{ target: '/a' }] },
    recorded: { acceptsDifferences: true },
  });
});
