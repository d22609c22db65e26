// Code in one side's config that opens connections to the other side.
import { mkdirSync, readFileSync, writeFileSync, chmodSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { buildServer } from '../../lib/features/calibrate/servers.ts';
import type { Result } from '../../lib/result/result.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { listening } from '../fixtures/listening.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { newOut, startCommand, useHome, wholeResult } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'h2o']);
beforeEach((context) => {
  if (process.getuid?.() !== 0) context.skip('without root all servers run as one user');
});

/**
 * Writes the kernel setting that it sees to a file. Then asks all servers of bakeoff's ports that it reaches, again and again, and writes
 * how their bodies begin. Its arguments are the file, how many processes do so, the requests on each connection, and for how many seconds
 * it keeps all of them open.
 */
const stranger = `
use Socket;
my ($log, $processes, $requests, $kept) = @ARGV;
sub note { open my $out, '>>', $log; print $out @_; close $out; }
open my $setting, '<', '/proc/sys/net/core/somaxconn';
note(<$setting>);
for (2..$processes) { fork or last; }
$SIG{PIPE} = 'IGNORE';
for (;;) {
  open my $tcp, '<', '/proc/net/tcp';
  my @ports = grep { $_ >= 20000 && $_ < 30000 } map { my @f = split; $f[3] eq '0A' ? hex((split /:/, $f[1])[1]) : () } <$tcp>;
  my @open;
  for my $port (@ports) {
    socket(my $to, PF_INET, SOCK_STREAM, 0);
    connect($to, sockaddr_in($port, INADDR_LOOPBACK)) or next;
    my $answer;
    for (1..$requests) {
      syswrite $to, "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" or last;
      sysread $to, $answer, 9999 or last;
    }
    note($answer =~ /\\r\\n\\r\\n(.{7})/ ? "$1\\n" : '');
    push @open, $to;
  }
  select undef, undef, undef, $kept;
}`;

/** Writes two configs that are equal but for code in the second. Returns them, and what this code has written so far. @param how it asks */
function configs(how = '4 100 0.01') {
  const folder = newFolder();
  chmodSync(folder, 0o777);
  const log = join(folder, 'answers');
  writeFileSync(log, '');
  chmodSync(log, 0o666);
  writeFileSync(join(folder, 'stranger.pl'), stranger);
  const config = (name: string, code: string) => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'index.html'), `hello ${name}`);
    const file = join(folder, `${name}.yaml`);
    const paths = `      /: {file.dir: ${join(folder, name)}}\n${code}`;
    writeFileSync(file, `listen: 8080\nhosts:\n  default:\n    paths:\n${paths}`);
    return file;
  };
  const program = `exec perl ${join(folder, 'stranger.pl')} ${log} ${how}`;
  const files = [config('a', ''), config('b', `      /code: {fastcgi.spawn: "${program}"}\n`)];
  return { files, written: () => new Set(readFileSync(log, 'utf8').split('\n').filter(Boolean)) };
}

/** Compares the sides. @param before a command prefix */
async function compared(
  sides: readonly string[],
  before: readonly string[] = [],
  duration = '1s',
): Promise<Result> {
  const out = newOut();
  const options =
    `--no-look --rounds 1 --duration ${duration} --store none --out ${out} --load`.split(' ');
  const args = ['compare', ...sides, ...options, 'wrk -c 8 -t 1'];
  return wholeResult(startCommand(args, home.env, before), out);
}

/** A network in which a setting is another than the kernel's default. */
const changing = 'ip link set lo up && echo 777 >/proc/sys/net/core/somaxconn && exec "$@"';
const tuned = ['unshare', '--net', 'sh', '-c', changing, 'sh'];

test('code in a config does not reach another config; kernel settings are those of the machine', async () => {
  const { files, written } = configs();
  const { comparisons, kernelSettings, variants } = await compared(files, tuned);
  expect(written()).toEqual(new Set(['777', 'hello b']));
  expect(comparisons[0]?.why).not.toContain('connections');
  expect(kernelSettings).toEqual([]);
  expect(variants.map(({ network }) => network)).toEqual([null, null]);
});

test('where sides share a loopback, one that loads another costs the verdict', async () => {
  // Its work in the turns of others is far too little to be loaded alone.
  const { files, written } = configs('1 1 2');
  // No compiler of its own works while it is loaded.
  const program = await buildServer(thisMachine(), newFolder());
  const { comparisons, warnings } = await compared([...files, `c=${program}`], [], '2s');
  expect([...written()]).toEqual(expect.arrayContaining(['hello a', 'hello b', '.......']));
  const verdicts = comparisons.map(({ variant, verdict, why }) => [variant, verdict, why]);
  expect(verdicts, warnings.join('\n')).toEqual([
    ['b', 'none', 'b had connections to a too'],
    ['c', 'none', 'b had connections to a too'],
  ]);
  expect(warnings).toContain(
    'a and c: b had connections to its server in the only round, so its figures are not of this load alone: look for code in b that does so, and run again',
  );
});

test('a proxy and its backend are loaded one after the other', async () => {
  const port = await listening(createServer((_, to) => to.end('an answer of the backend')));
  const folder = newFolder();
  chmodSync(folder, 0o755);
  const proxy = join(folder, 'proxy.yaml');
  const backend = `http://127.0.0.1:${port}/`;
  writeFileSync(
    proxy,
    `listen: 8080\nhosts:\n  default:\n    paths:\n      /: {proxy.reverse.url: "${backend}"}\n`,
  );
  const { comparisons, warnings } = await compared([`backend=${backend}`, proxy]);
  expect(comparisons[0]?.why).toBe('needs 4 rounds');
  expect(warnings.join('\n')).toContain(
    `the config of proxy has the server of backend (port ${port}) as a backend, and could load it in the turns of backend; so the sides are loaded one after the other`,
  );
});

test('code in a config goes on reaching a service of the machine that its answers depend on', async () => {
  let asked = 0;
  const service = createServer((_, to) => {
    asked += 1;
    to.end('an answer of the service');
  });
  const port = await listening(service);
  const folder = newFolder();
  chmodSync(folder, 0o755);
  const files = ['a.yaml', 'b.yaml'].map((name) => join(folder, name));
  for (const file of files)
    writeFileSync(
      file,
      `listen: 8080
hosts:
  default:
    paths:
      /:
        mruby.handler: |
          Proc.new do |env|
            [200, {}, [http_request("http://127.0.0.1:${port}/").join[2].join]]
          end
`,
    );
  const { variants } = await compared(files);
  for (const { load, rounds } of variants) {
    expect(load['bodyBytes']).toBe('an answer of the service'.length);
    const responses = rounds.flatMap(({ phases }) => phases.map((phase) => phase.responses['2xx']));
    expect(asked).toBeGreaterThan(responses[0] as number);
  }
});
