// Code in one side's config that opens connections to the other side.
import { mkdirSync, readFileSync, writeFileSync, chmodSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { newOut, startCommand, useHome, wholeResult } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'h2o']);
beforeEach((context) => {
  if (process.getuid?.() !== 0) context.skip('without root all servers run as one user');
});

/** Asks all servers of bakeoff's ports that it reaches, again and again, and writes the bodies of their answers to a file. */
const stranger = `
use Socket;
my ($log) = @ARGV;
fork for 1..2;
$SIG{PIPE} = 'IGNORE';
for (;;) {
  open my $tcp, '<', '/proc/net/tcp';
  my @ports = grep { $_ >= 20000 && $_ < 30000 } map { my @f = split; $f[3] eq '0A' ? hex((split /:/, $f[1])[1]) : () } <$tcp>;
  for my $port (@ports) {
    socket(my $to, PF_INET, SOCK_STREAM, 0);
    connect($to, sockaddr_in($port, INADDR_LOOPBACK)) or next;
    my $answer;
    for (1..100) {
      syswrite $to, "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" or last;
      sysread $to, $answer, 9999 or last;
    }
    open my $out, '>>', $log; print $out $answer =~ /(hello \\w)/ ? "$1\\n" : ""; close $out;
  }
  select undef, undef, undef, 0.01;
}`;

/** Writes two configs that are equal but for code in the second, and returns them with the answers that this code has got so far. */
function configs() {
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
  const program = `exec perl ${join(folder, 'stranger.pl')} ${log}`;
  const files = [config('a', ''), config('b', `      /code: {fastcgi.spawn: "${program}"}\n`)];
  return { files, answers: () => new Set(readFileSync(log, 'utf8').split('\n').filter(Boolean)) };
}

async function compared(files: readonly string[]): Promise<Result> {
  const out = newOut();
  const options = `--no-why --rounds 4 --duration 1s --store none --out ${out} --load`.split(' ');
  const run = startCommand(['compare', ...files, ...options, 'wrk -c 8 -t 1'], home.env);
  return wholeResult(run, out);
}

test('code in a config does not reach another config', async () => {
  const { files, answers } = configs();
  const { comparisons, kernelSettings, variants } = await compared(files);
  // It runs, and reaches its own server.
  expect(answers()).toEqual(new Set(['hello b']));
  expect(comparisons[0]?.why).not.toContain('connections');
  expect(kernelSettings).toEqual([]);
  expect(variants.map(({ network }) => network)).toEqual([null, null]);
});
