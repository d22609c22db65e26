// compare --counts, with real servers.
import { beforeAll, expect, test } from 'vitest';
import { differenceOf, useCounting } from '../fixtures/counting.ts';

const { isRoot, writeConfig, writeServer, counting } = useCounting();

beforeAll(() => {
  writeConfig('lean', 'sendfile on; tcp_nopush on; open_file_cache max=100;');
  writeConfig('opening', 'sendfile on; tcp_nopush on;');
  writeConfig('pushing', 'sendfile on; open_file_cache max=100;');
  const header = `add_header X-Pad ${'p'.repeat(100)};`;
  writeConfig('header', `sendfile on; tcp_nopush on; open_file_cache max=100; ${header}`);
});

test('what a line of a config costs in bytes, segments and system calls', async () => {
  const names = ['lean', 'header', 'pushing', 'opening'];
  const conditions = `bytes>100,segments>5%${isRoot ? ',syscalls>2' : ''}`;
  const run = await counting(
    names.map((name) => `${name}.conf`),
    conditions,
  );
  const bytes = `X-Pad: ${'p'.repeat(100)}\r\n`.length;
  const exact = { difference: bytes, low: bytes, high: bytes };
  expect(differenceOf(run, 'bytes', 'header')).toMatchObject(exact);
  expect(differenceOf(run, 'segments', 'header')?.difference).toBe(0);
  expect(differenceOf(run, 'segments', 'pushing')?.difference).toBeCloseTo(1, 1);
  expect(differenceOf(run, 'bytes', 'pushing')?.difference).toBe(0);
  expect(run.stdout).toContain(
    `header sends ${bytes} more bytes to the client per request than lean`,
  );
  const expected = [
    `bytes>100: header against lean: bytes +${bytes}: true`,
    'bytes>100: pushing against lean: bytes 0: false',
    'segments>5%: header against lean: segments 0: false',
  ];
  for (const line of expected) expect(run.stderr).toContain(`--fail-if ${line}`);
  expect(run.stderr).toMatch(/--fail-if segments>5%: pushing against lean: .*: true/);
  if (isRoot) {
    expect(differenceOf(run, 'syscalls', 'opening')?.difference).toBeCloseTo(3, 1);
    expect(run.stdout).toMatch(
      /opening makes 3 more system calls per request than lean: .*openat \+1/,
    );
  }
  expect(run.code).toBe(3);
  const { comparisons, variants, integrity } = run.result;
  expect([comparisons, integrity]).toEqual([[], null]);
  expect(variants.map(({ rounds }) => rounds)).toEqual([[], [], [], []]);
});

test.each([
  [
    'fails',
    'if (++n > 20 && n % 3 === 0) r.statusCode = 500;',
    /^of fails's [\d,]+ requests 66\.\d+ % succeeded/m,
  ],
  ['ends', 'if (++n > 100) process.exit(3);', /^ends: node \(pid \d+\) ended with code 3/m],
])('a server that %s ends the run in one line', async (name, first, line) => {
  writeServer('sound', '1000');
  writeServer(name, '1000', `globalThis.n ??= 0; ${first}`);
  const run = await counting([`sound=node sound.js`, `${name}=node ${name}.js`], 'bytes>0');
  expect(run.stderr).toMatch(line);
  expect(run.code).toBe(1);
  expect(run.result).toMatchObject({ state: 'partial', endedBy: expect.stringMatching(line) });
});

test('a server whose answers are empty under load is not compared', async () => {
  writeServer('always', '1000');
  writeServer('first', 'n > 20 ? 0 : 1000', 'globalThis.n ??= 0; n++;');
  const run = await counting(['always=node always.js', 'first=node first.js'], 'bytes>0');
  expect(run.stderr).toMatch(
    /^nothing was compared: under load the bodies of first had 0\.0 % of the length of the page/m,
  );
  expect(run.code).toBe(1);
});
