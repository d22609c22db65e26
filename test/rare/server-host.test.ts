// Servers on another host: a real sshd in a network namespace, with bakeoff's agent behind it.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { total } from '../../lib/analysis/statistics.ts';
import { compareCommand } from '../../lib/cli/compare.ts';
import { additions } from '../../lib/cli/main.ts';
import { knobsCommand } from '../../lib/features/knobs/command.ts';
import { scenarioCommand } from '../../lib/cli/scenario.ts';
import { textOf } from '../../lib/files.ts';
import { openServerHost } from '../../lib/features/hosts/server-host.ts';
import { machineName } from '../../lib/machine/locks.ts';
import { command, nginx } from '../../lib/scenario/index.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { find, thisMachine } from '../../lib/setup/machine.ts';
import { run as runCommand, wordsOf } from '../../lib/process.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { descendants, stillRunning, type Seen } from '../fixtures/processes.ts';
import { filesThere, openSshHost, whyNoHost, type SshHost } from '../fixtures/ssh-host.ts';
import { newOut, readResult, startCommand, useHome } from '../scenario-run.ts';

const sshVariable = 'BAKEOFF_SSH';
const node = [process.execPath, '--import', 'tsx'];

const home = useHome(['k6', 'nginx']);
let host: SshHost;
let impossible: string | undefined;
beforeAll(async () => {
  impossible = await whyNoHost();
  if (impossible !== undefined) return;
  host = await openSshHost();
}, 300_000);
afterAll(async () => {
  delete process.env[sshVariable];
  if (impossible !== undefined) return;
  await host.close();
});
beforeEach((context) => {
  if (impossible !== undefined) return context.skip(impossible);
  process.env[sshVariable] = host.ssh;
});

function runThere(args: readonly string[], serverHost = host) {
  return startCommand(
    [...args, '--store', 'none', '--server-host', serverHost.name],
    { ...home.env, [sshVariable]: serverHost.ssh },
    wordsOf(serverHost.before),
  );
}

async function another(...options: Parameters<typeof openSshHost>) {
  const opened = await openSshHost(...options);
  onTestFinished(() => opened.close());
  process.env[sshVariable] = opened.ssh;
  return opened;
}

async function linksTo(names: readonly string[]) {
  const folder = newFolder();
  for (const name of names)
    symlinkSync((await find(name, thisMachine())) as string, join(folder, name));
  return folder;
}

async function open(name = host.name): ReturnType<typeof openServerHost> {
  const opened = await openServerHost(name);
  onTestFinished(() => opened.close());
  return opened;
}

const agentFolders = () =>
  readdirSync(tmpdir()).filter((name) => name.startsWith('bakeoff-agent-'));

/** A config with an absolute path, which also exists on the "other" host. */
async function ownConfig() {
  const folder = await ownFiles({ 'part.conf': 'access_log off;\n', 'www/index.html': 'hello' });
  writeFileSync(
    join(folder, 'own.conf'),
    `events {}\nhttp { include linked.conf; server { listen 80; root ${join(folder, 'www')}; } }\n`,
  );
  symlinkSync(join(folder, 'part.conf'), join(folder, 'linked.conf'));
  symlinkSync('/etc/shadow', join(folder, 'elsewhere'));
  return join(folder, 'own.conf');
}

async function comparedThere(args: string) {
  const configs = [await ownConfig(), await ownConfig()];
  return runThere(['compare', ...configs, ...args.split(' ')]);
}

async function serversThere() {
  return vi.waitFor(
    () => {
      const processes = descendants(host.pid).filter(({ command: name }) => name === 'nginx');
      expect(processes.length).toBeGreaterThan(3);
      return processes;
    },
    { timeout: 60_000, interval: 20 },
  );
}

it('are sent, started and loaded there, and leave nothing behind', async () => {
  const before = agentFolders();
  const out = newOut();
  const run = await comparedThere(`--rounds 1 --duration 500ms --out ${out}`);
  const servers = await serversThere();
  expect(await run.ended, run.stderr()).toBe(0);
  expect(stillRunning(servers)).toEqual([]);
  expect(agentFolders()).toEqual(before);
  expect(run.stdout()).toMatch(new RegExp(`listen 80 → ${host.address}:\\d+`));
  expect(run.stdout()).toContain(`of ${host.name} (`);

  const { environment, variants } = readResult(out);
  expect(environment.serverHost).toMatchObject({ name: host.name, address: host.address });
  expect(environment.serverHost?.roundTripMs.p50).toBeGreaterThan(0);
  expect(environment.serverHost?.bytesPerSecond).toBeGreaterThan(1e6);
  for (const { rounds, successRatio, server, load } of variants) {
    expect([successRatio, load.bodyBytes, server?.atAddress]).toEqual([1, 5, undefined]);
    for (const phase of rounds.flatMap(({ phases }) => phases)) {
      // A response of nginx takes about 20 µs.
      const secondsEach = (phase.serverCpuSeconds ?? 0) / phase.requests;
      expect(secondsEach, JSON.stringify(phase)).toBeGreaterThan(1e-6);
      expect(secondsEach, JSON.stringify(phase)).toBeLessThan(1e-3);
      expect(phase.serverRssBytes).toBeGreaterThan(1e6);
      expect(phase.turns?.count).toBeGreaterThan(0);
      expect(phase.noise?.serverStealShare).toBeGreaterThanOrEqual(0);
    }
  }
});

/** Watches all nginx workers there. The returned function gives their CPU seconds, including ended ones. */
function watchWorkers() {
  const used = new Map<string, number>();
  const timer = setInterval(() => {
    const all = descendants(host.pid).filter(({ command: name }) => name === 'nginx');
    for (const worker of all.flatMap(({ pid }) => descendants(pid))) {
      const [nanoseconds = ''] = textOf(`/proc/${worker.pid}/schedstat`).split(' ');
      if (nanoseconds !== '')
        used.set(`${worker.pid} ${worker.startedAt}`, Number(nanoseconds) / 1e9);
    }
  }, 50);
  onTestFinished(() => clearInterval(timer));
  return () => total([...used.values()], (seconds) => seconds);
}

it.each([
  ['in short turns', '1ms', ''],
  ['one after the other, since they wait', '300ms', '--load=wrk -c 400 -d 1s'],
  ['at a rate', '1ms', '--load=wrk -R 1000 -c 20 -d 1s'],
])('report the CPU time of their requests, %s', async (_, delay, load) => {
  const proxying = `events { worker_connections 4096; }
http { access_log off; server { listen 80; location / { proxy_pass http://app; } } }`;
  const configs = await Promise.all(
    ['a.conf', 'b.conf'].map(async (name) => join(await ownFiles({ [name]: proxying }), name)),
  );
  const out = newOut();
  const args = `--upstream app=stub:${delay}:6B --rounds 1 --out ${out}`.split(' ');
  const workersUsed = watchWorkers();
  const run = runThere(['compare', ...configs, ...args, ...(load === '' ? [] : [load])]);
  expect(await run.ended, run.stderr()).toBe(0);
  const { variants, dropped = [] } = readResult(out);
  const phases = variants.flatMap(({ rounds }) => rounds.flatMap((round) => round.phases));
  const all = total(phases, (phase) => phase.requests + phase.warmupRequests);
  const secondsEach =
    total(phases, (phase) => phase.serverCpuSeconds ?? NaN) /
    total(phases, (phase) => phase.requests);
  // The workers' CPU time includes their starts, and rounds that a busy machine has had dropped.
  const share = secondsEach / (workersUsed() / all);
  if (dropped.length === 0) expect(share, run.stdout()).toBeGreaterThan(0.75);
  expect(share, run.stdout()).toBeLessThan(1.25);
});

it('serve the sent files even if the host has a strict umask', async () => {
  const closed = newFolder();
  const hardened = await another({ TMPDIR: closed }, '027');
  // Only root can access the folder.
  await open(hardened.name);
  expect(readdirSync(closed)).toEqual([]);
  const files = {
    'own.yaml':
      'listen: 80\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: www/inner\n',
    'www/inner/index.html': 'hello',
  };
  const [a, b] = [join(await ownFiles(files), 'own.yaml'), join(await ownFiles(files), 'own.yaml')];
  const main = join(await ownFiles({ 'main.conf': 'events {}\nhttp { }' }), 'main.conf');
  const proxying = 'server { listen 80; location / { proxy_pass http://app; } }';
  const site = join(await ownFiles({ 'site.conf': proxying }), 'site.conf');
  const out = newOut();
  const run = runThere(
    `compare ${a} ${b} ${site} --in ${main} --upstream app=stub:1ms:5B --rounds 1 --duration 200ms --out ${out}`.split(
      ' ',
    ),
    hardened,
  );
  expect(await run.ended, run.stderr()).toBe(0);
  expect(readResult(out).variants.map(({ load: { bodyBytes } }) => bodyBytes)).toEqual([5, 5, 5]);
});

it('get no unrequested installations', async () => {
  const names =
    'sh node id mkdir touch head wc chmod mv rm find setpriv taskset prlimit flock getent';
  const programs = await linksTo(names.split(' '));
  const called = join(programs, 'called');
  writeFileSync(
    join(programs, 'apt-get'),
    `#!/bin/sh\necho "$@" >>${called}\ncase "$*" in *install*) echo "E: no luck" >&2; exit 100; esac\n`,
    { mode: 0o755 },
  );
  const bare = await another({ PATH: programs });
  const opened = await open(bare.name);
  const options = {
    binaries: { nginx: home.env['NGINX_BIN'] as string },
    folder: '/',
    cpus: [0],
    workers: 1,
    page: { docroot: 'small', path: '/' },
    load: { protocol: 'h2' as const },
  };
  await expect(opened.start(nginx(['h2'], { workers: 1 }), options)).rejects.toThrow(
    `${bare.name}: openssl is missing: install it with: apt-get install `,
  );
  expect(existsSync(called)).toBe(false);

  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => logged.mockRestore());
  await expect(opened.tools(['h2o'], true, new AbortController().signal)).rejects.toThrow(
    /apt-get could not install h2o: no luck/,
  );
  expect(logged.mock.calls.flat()).toEqual([
    `${bare.name}: h2o: installing with apt-get …`,
    expect.stringMatching(`^${bare.name}: h2o: failed, `),
  ]);
});

it('are started for one run at a time', async () => {
  const [before = '', ...args] = wordsOf(host.there);
  const script = [...node, join(projectRoot, 'test/fixtures/hold-lock.mts')];
  const other = spawn(before, [...args, ...script, machineName, 'scenario', 'other'], {
    cwd: projectRoot,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void other.kill('SIGKILL'));
  await once(other.stdout, 'data');
  const opened = await open();
  const { binaries } = await opened.tools(['nginx'], false, new AbortController().signal);
  const start = () =>
    opened.start(nginx(['base'], { workers: 1 }), {
      binaries,
      folder: '/',
      cpus: [0],
      workers: 1,
      page: { docroot: 'small', path: '/' },
    });
  await expect(start()).rejects.toThrow(
    `another run of bakeoff is measuring (process ${other.pid} of root: scenario other, `,
  );
  other.kill('SIGTERM');
  await once(other, 'close');
  // It gets further now: as far as a machine that only ssh reaches the host from.
  await expect(start()).rejects.toThrow(/answers there, and port/);
});

it('end when the connection is lost during a round', async () => {
  const before = agentFolders();
  const run = await comparedThere(`--rounds 2 --duration 60s --out ${newOut()}`);
  const servers = await serversThere();
  await vi.waitFor(
    () => expect(descendants(run.pid).map(({ command: name }) => name)).toContain('k6'),
    { timeout: 60_000, interval: 20 },
  );
  const connection = descendants(host.pid).find(({ command: name }) => name === 'sshd');
  process.kill((connection as Seen).pid, 'SIGKILL');
  expect(await run.ended).toBe(1);
  expect(run.stderr()).toMatch(
    new RegExp(`the connection to ${host.name} ended.*[^.]: the run ends in round 1, and keeps `),
  );
  expect(run.stderr()).not.toMatch(/repeated|twice/);
  await vi.waitFor(() => expect(stillRunning(servers)).toEqual([]), {
    timeout: 20_000,
    interval: 50,
  });
  await vi.waitFor(() => expect(agentFolders()).toEqual(before), { timeout: 20_000, interval: 50 });
});

/** Opens the host from an empty network that only ssh can leave. */
const sshAlone = (name: string) =>
  runCommand({
    before: [['unshare', '--net']],
    command: process.execPath,
    args: ['--import', 'tsx', join(projectRoot, 'test/fixtures/ssh-alone.mts'), name],
    cwd: projectRoot,
  });

it.each([
  [
    'an unknown key',
    () => host.ssh.replace(/known_hosts$/, 'none'),
    /^the host key of root@\S+ is not known here: connect once by hand \(.* -i \S+ .* root@\S+\)/,
  ],
  [
    'a changed key',
    () => host.ssh.replace(/known_hosts$/, 'changed'),
    /^the host key of .* has changed: .*\(ssh-keygen -R \d[\d.]+\) and connect once by hand \(.* root@/,
  ],
  [
    'refused keys',
    () => host.ssh.replace(/-i \S+/, `-i ${join(host.folder, 'host')}`),
    /refuses this user's keys: make this work without a password \(ssh-copy-id\): .* root@/,
  ],
  ['a port without sshd', () => `${host.ssh} -p 1`, /refuses ssh connections/],
  ['no ssh here', () => 'no-such-ssh', /^there is no no-such-ssh here/],
])('reports %s', async (_, ssh, line) => {
  writeFileSync(
    join(host.folder, 'changed'),
    `${host.address} ${readFileSync(join(host.folder, 'user.pub'), 'utf8')}`,
  );
  process.env[sshVariable] = ssh();
  await expect(openServerHost(host.name)).rejects.toThrow(line);
});

it.each([
  ['nowhere.invalid', /^the name nowhere\.invalid does not resolve/],
  ['root@192.0.2.1', /root@192\.0\.2\.1 cannot be reached from here/],
])('reports that %s is out of reach', async (name, line) => {
  await expect(openServerHost(name)).rejects.toThrow(line);
});

it('reports missing Node, and a full disk', async () => {
  const without = await another({ PATH: await linksTo(['sh']) });
  await expect(openServerHost(without.name)).rejects.toThrow(/there is no Node there: install it/);

  const full = await another();
  mkdirSync(full.cache);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', full.cache]);
  onTestFinished(() => void execFileSync('umount', [full.cache]));
  await expect(openServerHost(full.name)).rejects.toThrow(/the disk of root@\S+ is full/);
  expect(
    readdirSync(full.cache, { recursive: true }).filter((name) => String(name).endsWith('.tmp')),
  ).toEqual([]);
});

it('reports ports that this machine cannot reach', async () => {
  const { stdout } = await sshAlone(host.name);
  const [server, link] = JSON.parse(stdout) as string[];
  expect(server).toMatch(
    /answers there, and port 2\d{4} of \S+ does not from here: open ports 20000 to 29999 /,
  );
  expect(link).toMatch(
    /is reached by ssh, and port 2\d{4} of \S+ is not from here \(.*\): open ports 20000 to 29999 /,
  );
});

it('reports translated addresses', async () => {
  // Only ssh maps this address to the host.
  const elsewhere = '203.0.113.7';
  const keys = `-i ${join(host.folder, 'user')} -o IdentitiesOnly=yes -o UserKnownHostsFile=${join(host.folder, 'known_hosts')}`;
  const proxy = `ssh -F none ${keys} -W ${host.address}:22 ${host.name}`;
  process.env[sshVariable] =
    `${host.ssh} -o HostKeyAlias=${host.address} -o 'ProxyCommand=${proxy}'`;
  const { stdout, stderr } = await sshAlone(`root@${elsewhere}`);
  const reason = `: root@${elsewhere} is ${elsewhere} here, so it is behind address translation, `;
  for (const message of JSON.parse(stdout || `["${stderr}"]`) as string[])
    expect(message).toContain(reason);
});

it('reports servers that cannot be started there', async () => {
  const opened = await open();
  expect(opened.files).toBe(filesThere);
  const options = {
    binaries: {},
    folder: '/',
    cpus: [0],
    workers: 1,
    page: { docroot: 'small', path: '/' },
  };
  await expect(opened.start(command('node server.js'), options)).rejects.toThrow(
    /only configs can be started: start 'node server\.js' there, and compare its address/,
  );
  const { binaries } = await opened.tools(['nginx'], false, new AbortController().signal);
  await expect(
    opened.start(nginx(['no-such-knob'], { workers: 1 }), { ...options, binaries }),
  ).rejects.toThrow(new RegExp(`^${host.name}: .*no-such-knob`));
});

it.each([
  [compareCommand, 'a.conf b.conf --server-host=-oProxyCommand=x', /: write it as ssh takes it/],
  [knobsCommand, 'a.conf --server-host web1', /leave --server-host out/],
  [scenarioCommand, 'nginx-tuning-under-delay --server-host web1', /networks of its own/],
])('refuses conflicting flags %#', async (start, flags, line) => {
  await expect(start(flags.split(' '), additions)).rejects.toThrow(line);
});
