// Parsers of untrusted text must accept any text: return, or refuse it in one line, within the time limit. A failure prints the
// seed; BAKEOFF_FUZZ_SEED repeats it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc, { type Arbitrary } from 'fast-check';
import { expect, test } from 'vitest';
import { additions } from '../../lib/cli/main.ts';
import { UserError } from '../../lib/errors.ts';
import { flameGraph } from '../../lib/features/why/flame.ts';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import { checkResult } from '../../lib/result/result-file.ts';
import { countsIn, partsOf } from '../../lib/features/why/perf-output.ts';
import { readOwnConfig, type StartedServer } from '../../lib/servers/index.ts';
import {
  globPattern,
  parseConfig,
  printConfig,
  type Directive,
} from '../../lib/servers/nginx-config.ts';
import { printYaml, readYaml, type Tree } from '../../lib/servers/own/yaml.ts';
import { readHar, readTargets } from '../../lib/features/traffic/lists.ts';
import { readLog } from '../../lib/features/traffic/log.ts';
import { newFolder, sharedFolder } from '../fixtures/new-folder.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

const seed = Number(process.env['BAKEOFF_FUZZ_SEED'] ?? Date.now() % 2 ** 31);
/** Time per parser, for mixed texts and again for long ones. */
const limitMs = 2000;
const never = new AbortController().signal;
const folder = sharedFolder();

/** Limit of CPU time: a quadratic parser takes minutes for the longest texts. */
const mostCpuMs = (text: string) => 1500 + text.length / 40;
const longest = 60_000;

const oneLine = /^[^\p{Cc}]*$/u;

/** Parses the text. Fails if the parser takes too long, or throws anything but a one-line UserError. */
async function held(read: (text: string) => unknown, text: string): Promise<void> {
  const before = process.cpuUsage();
  try {
    await read(text);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    expect(error.message).toMatch(oneLine);
  }
  const { user } = process.cpuUsage(before);
  expect(user / 1000).toBeLessThan(mostCpuMs(text));
}

const noises = [
  ['\n', '\r\n', '\0', '\t', ' ', '\u2028', '\u202e', '\ud800', '\uFFFD', 'é', '😀', '"', "'"],
  ['\\', '{', '}', '[', ']', '(', ')', '$', ';', ':', '#', '*', '&', '!', '?', '-', '|', '<', '>'],
  ['%', '@', ',', '=', '__proto__', 'constructor', '0', '-1', '1e308', '9'.repeat(400), 'NaN'],
];
const noise = fc.constantFrom(...noises.flat());

interface Grammar {
  parts: readonly (string | readonly string[])[];
  /** Frames for a text, so that parsers get further. */
  around?: readonly [string, string][];
}

/** Texts from a grammar's tokens and noise: a random mix, and few tokens repeated many times. */
function textsOf({ parts, around = [] }: Grammar): Record<'mixed' | 'long', Arbitrary<string>> {
  const word = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...parts.flat()) }, noise);
  const frame = fc.constantFrom<[string, string]>(['', ''], ...around);
  const framed = (inner: Arbitrary<string>) =>
    fc.tuple(frame, inner).map(([[before, after], text]) => before + text + after);
  const mixed = fc.array(word, { maxLength: 60 }).map((all) => all.join(''));
  const piece = fc.array(word, { minLength: 1, maxLength: 4 }).map((all) => all.join(''));
  const long = fc
    .tuple(mixed, piece, piece)
    .map(([before, piece, last]) => before + piece.repeat(longest / piece.length) + last);
  return { mixed: framed(mixed), long: framed(long) };
}

/** Parses random texts until the time limit. */
async function fuzzed(
  texts: Record<string, Arbitrary<string>>,
  read: (text: string) => unknown,
): Promise<void> {
  for (const arbitrary of Object.values(texts))
    await fc.assert(
      fc.asyncProperty(arbitrary, (text) => held(read, text)),
      { seed, numRuns: 1e6, interruptAfterTimeLimit: limitMs, endOnFailure: true },
    );
}

console.log(`BAKEOFF_FUZZ_SEED=${seed}`);

let files = 0;

/** Configs are cached by name, so each text gets a separate file. */
function written(text: string): string {
  const file = join(folder, `file-${files++}`);
  writeFileSync(file, text);
  return file;
}

/** Drops origins, which differ. */
const plain = (value: readonly Directive[] | Tree): unknown =>
  JSON.parse(JSON.stringify(value, (key, inner: unknown) => (key === 'origin' ? '' : inner)));

/** Bakeoff's own output must be accepted. */
function taken<T>(read: () => T): T {
  const fail = (error: unknown): never => {
    throw new Error('its own print is refused', { cause: error });
  };
  try {
    const value = read();
    return value instanceof Promise ? (value.catch(fail) as T) : value;
  } catch (error) {
    return fail(error);
  }
}

const nginx: Grammar = {
  parts: [
    ['http {', 'server {', 'location / {', 'events {', 'listen 80;', 'server_name a.b;', '}', ';'],
    [
      'log_format x "$status";',
      'map $a $b {',
      'proxy_pass http://a:1/;',
      'include x*;',
      'if ($x) {',
    ],
    ['access_by_lua_block {', '--[[', ']]', '[==[', '${a}', '${', '"a b"', "'a'", '\\"', 'a', ' '],
    ['upstream u {', 'return 200 "x";', 'root /x;', 'ssl_certificate x;', 'default 1;', '# x\n'],
  ],
  around: [
    ['http { server { ', ' } }'],
    ['http { server { location / { content_by_lua_block { ', ' } } } }'],
  ],
};

const h2o: Grammar = {
  parts: [
    ['listen: 80\n', 'hosts:\n', '  a.b:\n', '    paths:\n', '      /: ', 'file.dir: /x\n', '- '],
    ['a: b\n', '? ', '&x ', '*x', '<<: ', '[a, b]', '{a: b}', '!file x', '!!str ', '!t ', '|\n  '],
    ['>-\n  ', '"a\\n"', "'a'", '---\n', '...\n', '# x\n', '  ', '    ', '\n', ': ', '%YAML 1.2\n'],
    ['mruby.handler: |\n', 'proxy.reverse.url: http://a:1/\n', '~', 'null', '0x1'],
  ],
  around: [['listen: 80\nhosts:\n  a:\n    paths:\n      /:\n        ', '\n']],
};

const line = '1.2.3.4 - - [10/Oct/2025:13:55:36 +0000] "GET /a?b=1 HTTP/1.1" 200 612 "-" "x"\n';
const log: Grammar = {
  parts: [
    [
      line,
      '1.2.3.4 - - ',
      '[10/Oct/2025:13:55:36 +0000] ',
      '"GET ',
      '/a?b=',
      ' HTTP/1.1"',
      ' 200 ',
    ],
    ['[ ', '] "', '\\x', '\\"', '- ', 'a.b:80 ', 'POST ', 'CONNECT ', '999', ' 1', '#', '=', '&'],
    ['{"request":"GET / HTTP/1.1","status":200,"time":', '"uri":"/\\ud800",', '{"ts":1e308,', '}'],
    ['"method":"GET",', '"status":200,', '"request":{', '"host":"a",', '"msec":', '1', ','],
  ],
  around: [
    [line, `\n${line}`],
    ['1.2.3.4 - - [', `\n${line}`],
    ['{"method":"GET","status":200,"ts":1,"uri":"/', '"}'],
  ],
};

const formats: Grammar = {
  parts: ['$a', '$request', '$status', '${uri}', '$', '"', ' ', '\\', '[', ']', '-', '^', '|', 'x'],
};

const har: Grammar = {
  parts: [
    [
      '{"request":',
      '"method":"GET"',
      '"url":"http://a/"',
      '"headers":[',
      '{"name":"a","value":"b"}',
    ],
    [
      '"postData":{"text":',
      '"encoding":"base64"',
      '"response":{"status":',
      'null',
      '{}',
      '[]',
      '1',
    ],
    ['"x"', '"\\r\\n"', '}', ']', ',', 'true', '1e308'],
  ],
  around: [['{"log":{"entries":[', ']}}']],
};

const targets: Grammar = {
  parts: [
    [
      'GET http://a/\n',
      'POST http://a/x\n',
      'X-A: b\n',
      'Host: b\n',
      '@none\n',
      '@/dev/zero\n',
      '\n',
    ],
    ['{"method":"GET","url":"http://a/"}\n', '{"url":"http://a/","header":{"X":', '["a"]', '}}\n'],
    ['"body":"AA"', 'http://', 'GET ', ':', ' ', '//[::1]:80/', '@', '/'],
  ],
  around: [['GET http://a/\n', '']],
};

const folded: Grammar = {
  parts: ['a;b 1\n', 'a', ';', ' 1\n', ' 0\n', 'b_[k]', '1', ' ', '\n'],
};

const perf: Grammar = {
  parts: [
    ['  500000 \n', '\t7f12 write (/lib/libc.so.6)\n', ' ffff do_syscall_64 ([kernel.kallsyms])\n'],
    [' ffff __x64_sys_write ([kernel.kallsyms])\n', ' 1 [unknown] ([unknown])\n', '\n', ' (', ')'],
    ['12;;raw_syscalls:sys_enter;1;100.00;;\n', '<not supported>;;cycles:u;0\n', ';', 'a'],
  ],
};

test('nginx config, whose printed form parses to the same', () =>
  fuzzed(textsOf(nginx), (text) => {
    const read = parseConfig({ file: 'f', text, origin: 'o' });
    const printed = printConfig(read);
    const again = taken(() => parseConfig({ file: 'f', text: printed, origin: 'o' }));
    expect(plain(again)).toEqual(plain(read));
  }));

test('h2o YAML, whose printed form parses to the same', () =>
  fuzzed(textsOf(h2o), async (text) => {
    const read = await readYaml({ file: '/x/f', text, origin: 'o' });
    const printed = printYaml(read);
    const again = await taken(() => readYaml({ file: '/x/f', text: printed, origin: 'o' }));
    expect(plain(again)).toEqual(plain(read));
  }));

test('a config of any server', () => {
  const [ofNginx, ofH2o] = [textsOf(nginx), textsOf(h2o)];
  return fuzzed({ ...ofNginx, h2o: fc.oneof(ofH2o.mixed, ofH2o.long) }, (text) =>
    readOwnConfig(written(text)),
  );
});

test('an nginx include pattern', () =>
  fuzzed(textsOf({ parts: ['*', '?', '[', ']', '!', '^', 'a', 'b', '-', '.'] }), (text) =>
    globPattern(text.slice(0, 255)).test('ab'.repeat(127)),
  ));

test('an access log, in the usual formats and in a custom one', () => {
  const formatTexts = fc.sample(textsOf(formats).mixed, { seed, numRuns: 20 });
  return fuzzed(textsOf(log), (text) =>
    readLog([written(text)], { methods: 'all', formats: formatTexts }),
  );
});

test('a log_format', () => {
  const file = written(line.repeat(5) + '[ "x" '.repeat(longest / 10));
  return fuzzed(textsOf(formats), (format) => readLog([file], { formats: [format] }));
});

test('a HAR', () => {
  const odd = <T>(usual: T) =>
    fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, fc.string(), fc.jsonValue());
  const header = fc.record({ name: odd('a'), value: odd('b') });
  const entry = fc.record({
    request: fc.record(
      {
        method: odd('GET'),
        url: fc.oneof(odd('http://a/'), fc.webUrl({ withQueryParameters: true })),
        headers: fc.array(fc.oneof(header, fc.jsonValue())),
        postData: odd({ text: 'x' }),
      },
      { requiredKeys: [] },
    ),
    response: odd({ status: 200 }),
  });
  const entries = fc.array(fc.oneof({ weight: 9, arbitrary: entry }, fc.jsonValue()));
  const whole = entries.map((all) => JSON.stringify({ log: { entries: all } }));
  return fuzzed({ ...textsOf(har), whole }, (text) => readHar(written(text), 'all'));
});

test('vegeta targets', () => fuzzed(textsOf(targets), (text) => readTargets(written(text))));

test('result.json', async () => {
  const text = JSON.stringify(result([workers, openFileCache]));
  const values = /(?<=[:[,])(?:-?\d[\d.e+-]*|"[^"]*"|true|false|null)/g;
  const places = [...text.matchAll(values)].map(({ 0: value, index }) => ({ value, index }));
  const change = fc.tuple(
    fc.constantFrom(...places),
    fc.oneof(fc.json(), fc.constantFrom('1e308', '-1', '0', '""', '"\\u202e"', 'null', '[]', 'x')),
  );
  const changed = change.map(
    ([{ value, index }, other]) => text.slice(0, index) + other + text.slice(index + value.length),
  );
  await fuzzed({ changed }, (json) => {
    const read = checkResult(json, 'file');
    return htmlReport(read, additions.contributionsTo(read), []);
  });
});

test('folded stacks', () =>
  fuzzed(textsOf(folded), (text) => {
    const side = { variant: 'a', folded: text, us: 3 };
    flameGraph(side, { ...side, us: 4 });
  }));

test('the output of perf', () => {
  const stub = join(newFolder(), 'perf');
  // The last argument is the file.
  writeFileSync(stub, '#!/bin/sh\nfor file; do :; done\nexec cat "$file"\n', { mode: 0o755 });
  const server = { processes: () => [] } as unknown as StartedServer;
  const look = { perf: stub, calls: new Set(['write']) };
  return fuzzed(textsOf(perf), async (text) => {
    countsIn(text, 1);
    (await partsOf(look, server, written(text), never)).of(1);
  });
});
