// The command calibrate, as a user types it. Its figures on a shared machine are not judged here, only that they are there.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { buildServer } from '../../lib/features/calibrate/servers.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { stillRunning } from '../fixtures/processes.ts';
import { newOut, startCommand, startedOf, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'influxd']);
// Its first compilation takes longer than a start.
const folder = sharedFolder();
beforeAll(() => buildServer(thisMachine(), folder), 120_000);

interface Written {
  cases: { name: string; truth: { rps: number }; seen: Record<string, { rps: number }> }[];
  peers: { name: string; version: string }[];
}

interface CostFile {
  rounds: number;
  rows: {
    core: string;
    generator: string;
    samples: { errors: number; cpuMicrosPerRequest: number; tls: string }[];
  }[];
}

test('a server is measured alone, in turns and by other generators; nothing is left running', async () => {
  const out = newOut();
  const asked = 'wrk,h2load,vegeta,k6/http';
  const args = ['--only', 'waits 100', '--peers', asked, '--record', out];
  // Another program of that name, which reads all that it is given before it ends.
  const other = '#!/bin/sh\ncase "$1" in attack|report) cat > /dev/null;; esac\necho hello\n';
  writeFileSync(join(folder, 'vegeta'), other, { mode: 0o755 });
  const PATH = [folder, process.env.PATH].join(delimiter);
  const run = startCommand(['calibrate', ...args], { ...home.env, PATH });
  const started = await startedOf(run, (commands) => expect(commands).toContain('wrk'));
  // 3: on a busy machine a figure may be off.
  expect([0, 3], run.stderr()).toContain(await run.ended);
  expect(stillRunning(started)).toEqual([]);
  const { cases, peers } = JSON.parse(
    readFileSync(join(out, 'calibration.json'), 'utf8'),
  ) as Written;
  expect(peers.map(({ name }) => name)).toEqual(asked.split(','));
  const [{ name, truth, seen }] = cases as [Written['cases'][number]];
  expect([cases.length, name, truth.rps]).toEqual([1, 'waits 100 ms', 1000]);
  for (const place of ['alone', '2 sides', '8 sides', 'wrk', 'h2load', 'k6/http']) {
    expect(seen[place]?.rps, place).toBeGreaterThan(0);
    expect(seen[place]?.rps, place).toBeLessThan(1100);
  }
  for (const text of [run.stdout(), readFileSync(join(out, 'calibration.md'), 'utf8')]) {
    expect(text).toMatch(/waits 100 ms.* 1,000/);
    expect(text).toContain('vegeta · waits 100 ms: a load generator printed nothing like');
  }
  expect(readFileSync(join(out, 'calibration.html'), 'utf8')).toContain('waits 100 ms');
});

// Both pairs of the seed are quick: ten requests at a time, of servers that stay in turns.
test('the cost of a request is measured beside another generator, from both cores', async () => {
  const out = newOut();
  const args = ['--cost', '--quick', '--only', 'HTTP/2, 1 stream', '--peers', 'h2load'];
  const run = startCommand(['calibrate', ...args, '--record', out], home.env);
  const started = await startedOf(run, (commands) => expect(commands).toContain('h2load'));
  expect(await run.ended, run.stderr()).toBe(0);
  expect(stillRunning(started)).toEqual([]);
  const { rounds, rows } = JSON.parse(readFileSync(join(out, 'cost.json'), 'utf8')) as CostFile;
  expect(rows.map(({ core, generator }) => [core, generator])).toEqual([
    ['own', 'bakeoff'],
    ['own', 'h2load'],
    ["the server's", 'bakeoff'],
    ["the server's", 'h2load'],
  ]);
  for (const { samples } of rows) {
    expect(samples).toHaveLength(rounds);
    for (const { errors, cpuMicrosPerRequest, tls } of samples) {
      expect([errors, tls]).toEqual([0, 'TLSv1.3 TLS_AES_128_GCM_SHA256 X25519 h2']);
      expect(cpuMicrosPerRequest).toBeGreaterThan(0);
    }
  }
  expect(run.stdout()).toMatch(/^HTTP\/2, 1 stream +own +h2load .* ×[\d.]+ \[[\d.]+, [\d.]+\]/m);
  expect(readFileSync(join(out, 'cost.md'), 'utf8')).toContain(
    '| HTTP/2, 1 stream | own | h2load |',
  );
}, 300_000);

test('what a blind test has done is kept, and its score stands at the end', async () => {
  const out = newOut();
  const args = ['calibrate', '--disturb', '2', '--seed', '15737', '--record', out];
  const first = startCommand(args, home.env);
  // On a busy machine a pair takes minutes: its servers are alone for 10 s each, some of them twice.
  await startedOf(first, () => expect(first.stderr()).toContain('1 of 2: '), 400_000);
  first.kill('SIGINT');
  expect(await first.ended).toBe(130);
  expect(first.stdout()).toMatch(/^SHA-256 of the key and the servers: [0-9a-f]{64}$/m);

  const again = startCommand(args, home.env);
  expect(await again.ended).toBe(2);
  expect(again.stderr()).toMatch(/^seed 15737 was used before .*: go on with --resume/m);

  const rest = startCommand([...args, '--resume'], home.env);
  expect(await rest.ended, rest.stderr()).toBe(0);
  expect(rest.stderr()).toContain('2 of 2: ');
  expect(rest.stdout()).toMatch(
    /^\d of 2 pairs have a false verdict, .*; \d of \d intervals hold/m,
  );
  const kept = JSON.parse(readFileSync(join(out, 'disturbed-15737.json'), 'utf8')) as {
    runs: { verdict: string; byCpu: string; isChecked: boolean }[];
  };
  expect(kept.runs).toHaveLength(2);
  const says = /faster|slower|same/;
  const unchecked = kept.runs.filter(({ isChecked }) => !isChecked);
  expect(unchecked.filter(({ verdict, byCpu }) => says.test(`${verdict} ${byCpu}`))).toEqual([]);
}, 900_000);

/** Scripts that note the policy and the cores of each load, and then become wrk or k6. Returns the variables by which they are found. */
function notingLoads(file: string): Record<string, string> {
  const bin = join(folder, 'noting');
  mkdirSync(bin);
  const wrk = execFileSync('sh', ['-c', 'command -v wrk'], { encoding: 'utf8' }).trim();
  for (const [name, program] of Object.entries({ wrk, k6: home.env['K6_BIN'] })) {
    const script = `#!/bin/sh
case "$*$LOAD" in *http://*)
  policy=other; chrt -p $$ | grep -q SCHED_BATCH && policy=batch
  cores=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$$/status)
  case "$LOAD" in *'"spin":true'*) cores="$cores, spins";; esac
  echo "${name} $policy on $cores" >> '${file}'
esac
exec '${program}' "$@"
`;
    writeFileSync(join(bin, name), script, { mode: 0o755 });
  }
  return { K6_BIN: join(bin, 'k6'), PATH: [bin, process.env.PATH].join(delimiter) };
}

test('the effect of a line: each pair is kept, and all generators are in the table', async () => {
  const out = newOut();
  const effect = ['calibrate', '--effect', 'open-file-cache', '--record', out];
  const args = [...effect, '--peers', 'wrk', '--pairs', '2'];
  const placesFile = join(folder, 'places');
  const env = { ...home.env, ...notingLoads(placesFile) };
  const first = startCommand(args, env);
  const started = await startedOf(first, () => expect(first.stderr()).toContain('1 of 2: wrk '));
  first.kill('SIGINT');
  expect(await first.ended).toBe(130);
  expect(stillRunning(started)).toEqual([]);

  const rest = startCommand([...args, '--resume'], env);
  expect(await rest.ended, rest.stderr()).toBe(0);
  const path = join(out, 'effect-open-file-cache-1.json');
  const { runs, place } = JSON.parse(readFileSync(path, 'utf8')) as {
    place: { environment: Record<'serverCpus' | 'generatorCpus', number[]> };
    runs: { number: number; cpuMicros: Record<string, Record<'without' | 'with', number>> }[];
  };
  expect(runs.map(({ number }) => number)).toEqual([1, 2]);
  for (const { cpuMicros } of runs) {
    expect(Object.keys(cpuMicros)).toEqual(['wrk', 'bakeoff', 'bakeoff, own core']);
    for (const of of Object.values(cpuMicros))
      for (const micros of [of.without, of.with]) {
        // A request takes nginx longer than 2 µs, on any machine.
        expect(micros).toBeGreaterThan(2);
        expect(micros).toBeLessThan(1000);
      }
  }
  const { serverCpus, generatorCpus } = place.environment;
  const places = new Set(readFileSync(placesFile, 'utf8').trim().split('\n'));
  expect([...places].sort()).toEqual([
    `k6 batch on ${serverCpus}`,
    `k6 other on ${generatorCpus}, spins`,
    `wrk batch on ${serverCpus}`,
  ]);
  const text = readFileSync(join(out, 'effect-open-file-cache-1.md'), 'utf8');
  for (const table of [rest.stdout(), text]) expect(table).toMatch(/bakeoff, own core .*\[.*\]/);

  // There is no program of that name.
  const missing = startCommand([...effect, '--peers', 'wrk2', '--seed', '2'], home.env);
  expect(await missing.ended).toBe(2);
  expect(missing.stderr()).toContain('--peers wrk2: there is no wrk2 in PATH');
});
