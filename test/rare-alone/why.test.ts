// Known causes: real servers differ only in the cause, and the run must name it.
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startChild } from '../../lib/process.ts';
import { partsOf } from '../../lib/features/why/perf-output.ts';
import { samplerArgs } from '../../lib/features/why/perf.ts';
import { whyLines } from '../../lib/features/why/report.ts';
import type { Comparison } from '../../lib/result/result.ts';
import type { StartedServer } from '../../lib/servers/index.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { stillRunning } from '../fixtures/processes.ts';
import {
  newOut,
  readResult,
  wholeResult,
  runFolder,
  startCommand,
  startedOf,
  useHome,
} from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'perf', 'openssl']);

function newPlace() {
  const folder = newFolder();
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, 'www'));
  writeFileSync(join(folder, 'www/index.html'), 'x'.repeat(612));
  // To compress it takes milliseconds.
  const text = randomBytes(100_000).toString('hex');
  writeFileSync(join(folder, 'www/text.html'), text);
  return folder;
}

function config(folder: string, name: string, lines: string, workers = 1, listen = '8080') {
  const file = join(folder, `${name}.conf`);
  writeFileSync(
    file,
    `worker_processes ${workers};
events { worker_connections 1024; }
http { types { text/html html; } ${lines}
server { listen ${listen}; root ${join(folder, 'www')}; } }\n`,
  );
  return file;
}

const args = (out: string, duration = '200ms') =>
  `--quick --why --duration ${duration} --warmup 200ms --server-cpus 1 --generator-cpus 0 --store none --out ${out}`.split(
    ' ',
  );

/** @param equal the name of a side that does not differ from the first */
async function causes(
  sides: readonly string[],
  flags: readonly string[] = [],
  duration?: string,
  equal?: string,
): Promise<string[]> {
  const out = newOut();
  const run = startCommand(['compare', ...sides, ...flags, ...args(out, duration)], home.env);
  const result = await wholeResult(run, out);
  const { alone, why, variants } = result;
  for (const { name, serverCpuMicrosPerRequest, rounds } of variants) {
    const use = rounds.flatMap(({ phases: [first] }) => first?.perRequest ?? []);
    const us =
      use.reduce((sum, phase) => sum + (phase.userCpuUs ?? 0) + (phase.systemCpuUs ?? 0), 0) /
      rounds.length;
    // The kernel counts this in ticks of 10 ms.
    expect.soft(us / (serverCpuMicrosPerRequest?.median ?? 0), name).toBeCloseTo(1, 0);
  }
  expect(why?.missing).toEqual([]);
  // Sides without a verdict are not held against the rounds.
  expect(alone?.missing ?? []).toEqual([]);
  expect(why?.sides.map(({ variant }) => variant)).toEqual(variants.map(({ name }) => name));
  expect(readdirSync(join(runFolder(out), 'stacks'))).toHaveLength(variants.length);
  expect(readFileSync(join(runFolder(out), 'report.html'), 'utf8')).toContain('class="flame"');
  // A few short rounds on a busy machine may have no verdict, but all other sides are known to differ.
  const comparisons = result.comparisons.map((comparison): Comparison => {
    if (comparison.variant === equal) return comparison;
    return { ...comparison, cpu: comparison.cpu && { ...comparison.cpu, verdict: 'faster' } };
  });
  const sentences = whyLines({ ...result, comparisons });
  const printed = run.stdout().match(/^Why\b.*$/gm) ?? [];
  expect(sentences).toEqual(expect.arrayContaining(printed));
  return sentences;
}

test('lines of an nginx config, and no cause without a difference', async () => {
  const folder = newPlace();
  const log = `access_log ${join(folder, 'log')} combined`;
  const sides = [
    config(folder, 'base', `${log};`),
    config(folder, 'again', `${log};`),
    config(folder, 'cache', `${log}; open_file_cache max=100;`),
    config(folder, 'sendfile', `${log}; sendfile on;`),
    config(folder, 'closes', `${log}; keepalive_timeout 0;`),
    config(folder, 'two', `${log};`, 2),
  ];
  const sentences = await causes(sides, [], undefined, 'again');
  expect(sentences.filter((sentence) => sentence.includes('again'))).toEqual([]);
  // Calls of requests at the ends of the count may be 2.1 or 1.9 for each.
  const [one, two] = ['(1(\\.[0-4])?|0\\.9\\d?)', '(2(\\.[0-4])?|1\\.[6-9])'];
  const expected = [
    `Why \\(open_file_cache\\): cache makes .*: no newfstatat \\(${two}\\), no (close|openat)`,
    `.*sendfile makes .*: (${one} sendfile64 and no pread64|no pread64 and ${one} sendfile64)`,
    `.*closes opens a connection for each request, base keeps its connections; closes makes .*: (?=.*${one} accept4)(?=.*${two} close instead of ${one})`,
    'Why \\(worker_processes\\): two has 2 workers, base 1',
  ];
  for (const [index, pattern] of expected.entries())
    expect.soft(sentences[index]).toMatch(new RegExp(`^${pattern}`));
});

test('an interrupt during perf ends the run cleanly, with the verdict', async () => {
  const folder = newPlace();
  const sides = [config(folder, 'a', ''), config(folder, 'b', 'access_log off;')];
  const out = newOut();
  const run = startCommand(['compare', ...sides, ...args(out)], home.env);
  const started = await startedOf(run, (commands) => expect(commands).toContain('perf'));
  run.kill('SIGINT');
  expect(await run.ended).toBe(130);
  expect(stillRunning(started)).toEqual([]);
  expect(readResult(out).why).toBeUndefined();
  expect(readdirSync(runFolder(out))).not.toContain('why');
});

test('an interrupt also ends a perf that hangs', async () => {
  const folder = newPlace();
  const sides = [config(folder, 'a', ''), config(folder, 'b', 'access_log off;')];
  const perf = join(folder, 'perf');
  const hang = "trap '' INT TERM; echo > $0.hangs; while :; do sleep 1; done";
  writeFileSync(
    perf,
    `#!/bin/sh\ncase $1 in record) ${hang};; esac\nexec ${home.env['PERF_BIN']} "$@"\n`,
    { mode: 0o755 },
  );
  const out = newOut();
  const run = startCommand(['compare', ...sides, ...args(out)], { ...home.env, PERF_BIN: perf });
  const started = await startedOf(run, () => expect(existsSync(`${perf}.hangs`)).toBe(true));
  run.kill('SIGINT');
  expect(await run.ended).toBe(130);
  expect(stillRunning(started)).toEqual([]);
  expect(readResult(out).why).toBeUndefined();
});

test('the key type, with new TLS connections, and compression', async () => {
  const folder = newPlace();
  const side = (name: string, kind: string, key: string, lines = '') => {
    const [keyFile, certificate] = [join(folder, `${key}.key`), join(folder, `${key}.crt`)];
    execFileSync(
      home.env['OPENSSL_BIN'] as string,
      `req -x509 ${kind} -nodes -keyout ${keyFile} -out ${certificate} -days 1 -subj /CN=x`.split(
        ' ',
      ),
      { stdio: 'ignore' },
    );
    chmodSync(keyFile, 0o644);
    const tls = `ssl_protocols TLSv1.2; ssl_certificate ${certificate}; ssl_certificate_key ${keyFile};`;
    return config(folder, name, `access_log off; ${tls} ${lines}`, 1, '8080 ssl');
  };
  const ecdsa = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1';
  // A signature with the long key takes milliseconds too, and all the rest tenths of one: that is seen on a busy machine.
  const sentences = await causes(
    [
      side('ecdsa', ecdsa, 'ecdsa'),
      side('rsa', '-newkey rsa:4096', 'rsa'),
      side('packed', ecdsa, 'ecdsa', 'gzip on;'),
    ],
    [
      '--url',
      '/text.html',
      '--load',
      `wrk -t 1 -c 5 -d 5 -H "Connection: close" -H "Accept-Encoding: gzip"`,
    ],
    // In a shorter time the initial connections, which are open at the start, would matter.
    '400ms',
  );
  expect(sentences).toEqual([
    expect.stringMatching(
      /^Why \(ssl_certificate, ssl_certificate_key\): rsa spends [\d,]+ µs more CPU time per request in libcrypto /,
    ),
    expect.stringMatching(
      /^Why \(gzip\): packed answers with \d+ % of the bytes; packed spends [\d,]+ µs more CPU time per request in libz /,
    ),
  ]);
});

test.runIf(process.getuid?.() === 0)(
  'names of functions come from no file that is closed to the server, and without control characters',
  async () => {
    const folder = newFolder();
    chmodSync(folder, 0o755);
    const map = join(folder, 'map');
    const perf = home.env['PERF_BIN'] as string;
    writeFileSync(map, '0 7fffffffffff its \u001B[31mname\n', { mode: 0o600 });
    const id = 0x7000_0000;
    const busy = await startChild({
      command: process.execPath,
      args: ['-e', 'for (let a = 0; ; ) a++'],
      user: { uid: id, gid: id },
    });
    const link = `/tmp/perf-${busy.pid}.map`;
    symlinkSync(map, link);
    onTestFinished(async () => {
      rmSync(link);
      await busy.stop();
    });
    const file = join(folder, 'samples');
    const output = openSync(file, 'w');
    const pid = String(busy.pid);
    spawnSync(perf, [...samplerArgs(), '-p', pid, '--', 'sleep', '0.5'], {
      stdio: ['ignore', output, 'ignore'],
    });
    closeSync(output);
    const server = { processes: () => [pid] } as StartedServer;
    const functions = async () => {
      const of = { perf, calls: new Set<string>() };
      const parts = await partsOf(of, server, file, new AbortController().signal);
      return parts.of(1).functions.map(({ name }) => name);
    };
    expect(await functions()).not.toContain('its  [31mname');
    chmodSync(map, 0o644);
    expect(await functions()).toContain('its  [31mname');
  },
);
