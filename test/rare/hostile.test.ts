// Code that escapes its server ends with it: for each kind of cgroup, without cgroups, and if bakeoff is killed.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { userOf } from '../../lib/proc-files.ts';
import { expectHarmless, type Case } from '../fixtures/attack.ts';
import { isOpenToAll } from '../fixtures/open-checkout.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { isRunning } from '../fixtures/processes.ts';
import { startedBy, useServers } from '../fixtures/servers.ts';

const test = useServers();

const cgroup1 = '/sys/fs/cgroup/freezer';
const cgroup2 = existsSync('/sys/fs/cgroup/unified') ? '/sys/fs/cgroup/unified' : '/sys/fs/cgroup';

/** The command prefix that hides these mounts from a program. */
const without = (...mounts: string[]) => [
  'unshare',
  '--mount',
  'sh',
  '-c',
  `for mount in ${mounts.join(' ')}; do umount -l $mount; done 2>/dev/null; exec "$@"`,
  'sh',
];
const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'];
const hasPerl = existsSync('/usr/lib/nginx/modules/ngx_http_perl_module.so');

const ways: Record<string, Case> = {
  'a command': { server: 'command' },
  'h2o, killed': { server: 'h2o', end: 'SIGKILL' },
  'a command, killed': { server: 'command', end: 'SIGKILL' },
};
const waysOfRoot: Record<string, Case> = {
  'h2o with cgroups of version 1': { server: 'h2o', before: without(cgroup2) },
  'h2o without cgroups': { server: 'h2o', before: without(cgroup1, cgroup2) },
  'h2o without cgroups, killed': {
    server: 'h2o',
    before: without(cgroup1, cgroup2),
    end: 'SIGKILL',
  },
  'h2o of another user': { server: 'h2o', before: nobody, clearsEnvironment: false },
  'a command without cgroups': {
    server: 'command',
    before: without(cgroup1, cgroup2),
    clearsEnvironment: false,
  },
  'a command of another user, killed': {
    server: 'command',
    before: nobody,
    clearsEnvironment: false,
    end: 'SIGKILL',
  },
};

it.each(Object.entries(ways))('of %s', (_, way) => expectHarmless(test, way));

const isRoot = process.getuid?.() === 0;
for (const [name, way] of Object.entries(waysOfRoot))
  it.runIf(isRoot && (way.before !== nobody || isOpenToAll))(`of ${name}`, () =>
    expectHarmless(test, way),
  );

/**
 * Mounts a FUSE file system that never responds, and starts a process that accesses it with the connection open, so that KILL
 * does not end the process. Writes the pids to a file.
 */
const hangs = `
use Fcntl;
my ($pids) = @ARGV;
sysopen my $fuse, '/dev/fuse', O_RDWR or die $!;
my @mount = ("x\0", "/mnt\0", "fuse\0");
my $options = 'fd=' . fileno($fuse) . ",rootmode=40000,user_id=0,group_id=0\0";
syscall(165, @mount, 6, $options) == 0 or die $!;
my $reader = fork;
unless ($reader) { stat '/mnt/a'; exit; }
sysread $fuse, my $asked, 1 << 20;
my $version = pack 'L<4 S<2 L<2 S<2 L< x28', 7, 31, 0, 0, 16, 12, 131072, 1, 0, 0, 0;
syswrite $fuse, pack('L<l<Q<', 80, 0, unpack('x8 Q<', $asked)) . $version;
sysread $fuse, $asked, 1 << 20;
open my $out, '>', $pids; print $out "$$ $reader\n"; close $out;
sleep 9 while 1;`;

const atConnections = (script: string) => [
  'unshare',
  '--mount',
  'sh',
  '-c',
  `mount -t fusectl none /sys/fs/fuse/connections; ${script}`,
  'sh',
];
const canHang =
  process.getuid?.() === 0 &&
  process.arch === 'x64' &&
  spawnSync('unshare', [
    ...atConnections('exec "$@"').slice(1),
    ...nobody,
    'sh',
    '-c',
    '[ -w /dev/fuse ] && unshare -Urm true',
  ]).status === 0;

it.runIf(canHang)('that hangs in the kernel, in a FUSE file system', async () => {
  const folder = await ownFiles({ 'hangs.pl': hangs, 'www/index.html': 'hello', pids: '' });
  const pids = path.join(folder, 'pids');
  await chmod(pids, 0o666);
  const pidsNow = () => (readFileSync(pids, 'utf8').match(/\d+/g) ?? []).map(Number);
  const config = `listen: 8080\nhosts:\n  a:\n    paths:\n      /: {file.dir: ${folder}/www}\n      /code: {fastcgi.spawn: "exec unshare -Urm perl ${folder}/hangs.pl ${pids}"}\n`;
  const file = path.join(folder, 'own.yaml');
  await writeFile(file, config);
  const { printed, runner } = await startedBy(
    { name: 'h2o', config: [file], workers: 1, asIs: {} },
    { binaries: test.binaries, folder: path.join(folder, 'run'), page: { path: '/' } },
    { before: atConnections('exec "$@"'), env: { TMPDIR: test.folder } },
  );
  expect(printed).toMatch(/^\d+\n$/);
  await vi.waitFor(() => expect(pidsNow()).toHaveLength(2), { timeout: 30_000, interval: 20 });
  const user = userOf(String(pidsNow()[1]));
  onTestFinished(() => {
    const abort = `find /sys/fs/fuse/connections -name abort -user ${user} -exec sh -c 'echo 1 >$0' {} ";"`;
    const [command = '', ...args] = atConnections(abort);
    spawnSync(command, args);
  });
  const exited = once(runner, 'exit');
  runner.kill('SIGTERM');
  await exited;
  expect(pidsNow().filter(isRunning)).toEqual([]);
  expect(await test.scratchFolders()).toEqual([]);
});

/**
 * Continues in a grandchild that kills all other processes of the user, including any that would end it. A survivor reports
 * itself.
 */
const kills = `
my ($order, $fate) = @ARGV;
open my $out, '>', $fate or die $!;
select undef, undef, undef, 0.01 until -s $order;
$out->autoflush;
print $out "begun\n";
for (my $end = time + 20; time < $end;) {
  my $child = fork;
  if ($child) { sleep 9 } else { kill 'KILL', -1 }
}
print $out "left\n";`;

it.runIf(process.getuid?.() === 0)('that kills who would end it, without cgroups', async () => {
  const folder = await ownFiles({ 'kills.pl': kills, 'www/index.html': 'hello', order: '' });
  const [order, fate] = [path.join(folder, 'order'), path.join(folder, 'fate')];
  spawnSync('mkfifo', ['-m', '666', fate]);
  let output = '';
  const listener = createReadStream(fate, 'utf8').on('data', (text) => (output += text.toString()));
  const begun = once(listener, 'data');
  const ended = once(listener, 'end');
  const config = `listen: 8080\nhosts:\n  a:\n    paths:\n      /: {file.dir: ${folder}/www}\n      /code: {fastcgi.spawn: "exec perl -MIO::Handle ${folder}/kills.pl ${order} ${fate}"}\n`;
  const file = path.join(folder, 'own.yaml');
  await writeFile(file, config);
  const { runner } = await startedBy(
    { name: 'h2o', config: [file], workers: 1, asIs: {} },
    { binaries: test.binaries, folder: path.join(folder, 'run'), page: { path: '/' } },
    { before: without(cgroup1, cgroup2), env: { TMPDIR: test.folder } },
  );
  const exited = once(runner, 'exit');
  await writeFile(order, 'go');
  await begun;
  runner.kill('SIGTERM');
  await Promise.all([exited, ended]);
  expect(output).toBe('begun\n');
});

it.runIf(hasPerl)('of perl in nginx', () => expectHarmless(test, { server: 'nginx' }));
