// A message quotes at most one word of a file, because the file may contain secrets or not be a config.
import path from 'node:path';
import { expect, it } from 'vitest';
import { h2oKind } from '../../lib/servers/h2o.ts';
import { nginxKind } from '../../lib/servers/nginx.ts';
import { complaintOf } from '../../lib/servers/config-files.ts';
import { readOwnConfig, serverKinds } from '../../lib/servers/index.ts';
import { refusal } from '../fixtures/adopted.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { refusalOf } from '../fixtures/refused.ts';

const long = 'x'.repeat(300);

/** At most one word of the file, cut to fit a line. */
function expectBrief(message: string) {
  expect(message).not.toMatch(/hunter[2-9]/);
  expect(message).not.toContain('x'.repeat(256));
}

it.each([
  'http { }\nhunter1:$6$hunter2 hunter3\nhunter4 hunter5\n',
  'http { hunter1 hunter2 }',
  'include inc;\nhttp { }',
  'http { server { listen "a:hunter1 hunter2"; } }',
  `http { server { listen ${long}:x; } }`,
  'worker_processes "hunter1 hunter2"; http { server { } }',
  '-n hunter1 hunter2',
  `-n ${long}`,
  '-x hunter2 hunter3',
  'listen: hunter1 hunter2\nhosts: {}',
  `listen: ${long}\nhosts: {}`,
  `listen: 80\nhosts: *${long}`,
  'listen: 80\nhosts: hunter1\nhunter2 hunter3\n',
  'listen: 80\nhosts: "hunter1" hunter2 hunter3: 1',
  'listen: 80\nhosts: {a: 1} hunter2 hunter3',
  'listen: 80\nhosts: | hunter1 hunter2\n',
  'listen: 80\n- hunter1 hunter2: x\n',
  '%hunter1 hunter2\n---\nlisten: 80\nhosts: @hunter2 hunter3',
])('reading: %#', async (text) => {
  const folder = await ownFiles({ 'own.conf': text, inc: 'hunter1 hunter2\nhunter4' });
  const message = await refusalOf(readOwnConfig(path.join(folder, 'own.conf')));
  expectBrief(message.replaceAll(folder, ''));
});

it.each([
  [nginxKind, 'http { server { listen 80; proxy_pass "http://hunter1 hunter2 hunter3"; } }'],
  [nginxKind, 'http { upstream a { state "hunter1 hunter2"; } server { listen 80; } }'],
  [nginxKind, `http { server { listen 80; proxy_pass http://${long}; } }`],
  ...[
    'proxy.reverse.url: "http://hunter1 hunter2 hunter3"',
    'fastcgi.connect: {host: hunter1 hunter2, port: 1}',
    'error-doc: {url: "http://hunter1 hunter2", status: 404}',
  ].map((line) => [h2oKind, `listen: 80\nhosts: {a: {paths: {/: {${line}}}}}`] as const),
] as const)('where a config leads: %#', async (kind, text) => {
  expectBrief(await refusal(kind, text));
});

it.each([
  ['nginx', 'nginx: [emerg] 1#1: unknown directive "hunter1 hunter2 hunter3" in /c:1'],
  ['nginx', `nginx: [emerg] 1#1: unknown directive "${long}" in /c:1`],
  ['nginx', 'nginx: [emerg] invalid value "hunter1 hunter2" in "gzip" directive in /c:1'],
  ['h2o', '[/c:2] unknown command: hunter1 hunter2 hunter3'],
  ['h2o', '[/c:2] in command proxy.reverse.url, failed to parse URL: hunter1 hunter2 "hunter3"'],
  ['nghttpd', '-n: Bad option value: hunter1 hunter2 "hunter3"'],
  ['nghttpd', "nghttpd: unrecognized option '--hunter1 hunter2'"],
] as const)('errors of %s: %#', (name, directives) => {
  const config = `a: "hunter1 hunter2 \\"hunter3\\""  # own.conf:1\n`;
  const spec = { name, config: ['own.conf'], workers: 1 };
  const message = complaintOf(
    serverKinds[name],
    directives,
    config,
    { version: '1', answer: '' },
    spec,
  );
  expect(message).toContain('own.conf');
  expectBrief(message);
  expect(message.includes('hunter1') || directives.includes(long)).toBe(true);
});

it.each([
  ['nginx', '[emerg] cannot load key "/a/b.pem": BIO_new_file() failed', /b\.pem": BIO_new/],
  [
    'nginx',
    'nginx: [emerg] cannot load certificate "/a/b.pem": BIO_new_file() failed (SSL: error:80000002:system library::No such file or directory:calling fopen(/a/b.pem, r) error:10000080:BIO routines::no such file)',
    /accept it: cannot load certificate "\/a\/b\.pem": it is not there; copy it here, or name another in a copy of the config$/,
  ],
  [
    'nginx',
    'nginx: [emerg] dlopen() "/m/x.so" failed (/m/x.so: cannot open shared object file: No such file or directory)',
    /directory\); install the module \(libnginx-mod-…\), or take its load_module line out of a copy of the config$/,
  ],
  [
    'h2o',
    '[/c:1] in command listen, failed to resolve the listening address: Name not known',
    /: Name not known$/,
  ],
] as const)('errors of %s without quotes are kept: %s', (name, directives, expected) => {
  const spec = { name, config: ['own.conf'], workers: 1 };
  const build = { version: '1', answer: '' };
  expect(complaintOf(serverKinds[name], directives, 'a: "b"  # own.conf:1\n', build, spec)).toMatch(
    expected,
  );
});
