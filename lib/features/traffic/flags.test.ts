import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { askedFlags, readAsked } from '../../cli/asked.ts';
import { compareCommand } from '../../cli/compare.ts';
import { featureFlags, rateFlags } from '../../cli/run-options.ts';
import { sidesOf } from '../../cli/side-loads.ts';
import { readSides } from '../../cli/sides.ts';
import { readArguments, type Flag } from '../../cli/arguments.ts';
import { sharedFolder } from '../../../test/fixtures/new-folder.ts';
import { refusalOf } from '../../../test/fixtures/refused.ts';

const folder = sharedFolder();
beforeEach(() => {
  vi.stubEnv('INIT_CWD', folder);
  const line = (second: string) =>
    `1.2.3.4 - - [10/Oct/2025:13:55:${second} +0000] "GET /a HTTP/1.1" 200 612 "-" "-"\n`;
  writeFileSync(join(folder, 'access.log'), line('36') + line('36') + line('37'));
  const entry = { request: { method: 'GET', url: 'http://a.example/b', headers: [] } };
  const answered = { ...entry, response: { status: 404 } };
  writeFileSync(join(folder, 'b.har'), JSON.stringify({ log: { entries: [answered] } }));
});

test.each([
  ['--pace 10x', /^--pace is for --log: give one, or leave it out$/],
  ['--site a', /^--site is for --log or --har: give one/],
  ['--log log --pace 0x', /^--pace 0x: give as-logged, or how many /],
  ['--har b.har --url /', /^--har and --url do not go together: leave one out$/],
  ['--url / --targets t', /^--url and --targets do not go together: leave one out$/],
  ['--log access.log --har b.har', /^--log and --har do not go together: leave one out$/],
])('compare with %s: refused in one line', async (flags, message) => {
  const sides = ['http://localhost:1/', 'http://localhost:2/'];
  const asked = compareCommand([...sides, ...flags.split(' ')]);
  await expect(asked).rejects.toMatchObject({ exitCode: 2 });
  expect(await refusalOf(asked)).toMatch(message);
});

test('no flag that decides the rate goes with --pace', () => {
  const known: Record<string, Flag> = { ...askedFlags, ...featureFlags };
  for (const flag of rateFlags)
    expect(() => readArguments(['--log', 'l', '--pace', '2x', `--${flag}`, '1k'], known)).toThrow(
      `--pace and --${flag} do not go together: leave one out`,
    );
});

async function firstSide(...args: string[]) {
  const known = { ...askedFlags, duration: { value: '1s', help: '' } };
  const given = await readSides(['http://localhost:1/', 'http://localhost:2/']);
  const asked = await readAsked(readArguments(args, known), given);
  return { ...sidesOf(given, asked, { generatorCpus: [0] })[0], notes: asked.notes };
}

test("a log's times are the load's, for as long as the log's piece lasts", async () => {
  const { load, page, notes } = await firstSide('--log', 'access.log', '--pace', '2x');
  expect(load).toMatchObject({ arrivals: 'logged', requests: 3, rate: 3 });
  expect(load).not.toHaveProperty('durationSeconds');
  expect(page).toMatchObject({ path: '/a', requests: [{ weight: 3, atMs: [125, 375, 750] }] });
  expect(notes[0]).toContain('are replayed 2 times as fast');
});

test('without --pace the load keeps its own length', async () => {
  const { load } = await firstSide('--log', 'access.log');
  expect(load).toMatchObject({ durationSeconds: 10 });
  expect(load).not.toHaveProperty('arrivals');
});

test('a load with a rate is refused with --pace', async () => {
  const rated = ['--load', 'vegeta attack -rate=100 -duration=1s'];
  const asked = firstSide('--log', 'access.log', '--pace', '2x', ...rated);
  expect(await refusalOf(asked)).toMatch(
    /^--pace and vegeta attack .*: each says when requests are made: leave one out$/,
  );
});

test('the check before the load gets the name of a HAR, and --accept-differences', async () => {
  expect(await firstSide('--har', 'b.har')).toMatchObject({
    page: { host: 'a.example', requests: [{ target: '/b', status: 404 }] },
    recorded: { record: 'HAR' },
  });
  const { recorded } = await firstSide('--log', 'access.log', '--accept-differences');
  expect(recorded).toEqual({ acceptsDifferences: true });
});
