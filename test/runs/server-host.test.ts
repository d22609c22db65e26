// Servers on another host: a real sshd in a network of its own, bakeoff's agent behind it.
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { run as runCommand } from '../../lib/setup/run.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { descendants, isRunning, stillRunning, type Seen } from '../fixtures/processes.ts';
import { openSshHost, whyNoHost, type SshHost } from '../fixtures/ssh-host.ts';
import { makeHome, newOut, readResult, startCommand, type Home, type ScenarioRun } from '../scenario-run.ts';

let home: Home;
let impossible: string | undefined;
beforeAll(async () => {
  impossible = await whyNoHost();
  home = await makeHome(['k6', 'nginx']);
}, 300_000);
afterAll(() => home.remove());
beforeEach((context) => { if (impossible !== undefined) context.skip(impossible); });

const rounds = ['--rounds', '2', '--store', 'none'];
const quick = ['--duration', '300ms'];

/** Starts a run whose servers are at the host. */
function runThere({ ssh, before, name }: SshHost, args: readonly string[], env: Readonly<Record<string, string>> = {}): ScenarioRun {
  return startCommand([...args, ...(args[0] === 'knobs' ? [] : rounds), '--server-host', name], { ...home.env, BAKEOFF_SSH: ssh, ...env }, before);
}

/** Folders of agents, which are temporary. */
const agentFolders = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('bakeoff-agent-'));

/** A config that serves files at an absolute path, which is the same on this "other" host. */
async function ownConfig(extra = ''): Promise<string> {
  const folder = await ownFiles({ 'own.conf': '', 'www/index.html': 'hello' });
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'own.conf'), `events {}\nhttp { ${extra} server { listen 80; root ${join(folder, 'www')}; } }\n`);
  return join(folder, 'own.conf');
}

async function serversThere(host: SshHost): Promise<Seen[]> {
  return vi.waitFor(() => {
    const found = descendants(host.pid).filter(({ command }) => command === 'nginx');
    expect(found.length).toBeGreaterThan(3);
    return found;
  }, { timeout: 60_000, interval: 20 });
}

it('are started, loaded in turns and sampled there, and nothing is left', async () => {
  const host = await openSshHost();
  const before = agentFolders();
  const out = newOut();
  const run = runThere(host, ['scenario', 'nginx-open-file-cache', ...quick, '--out', out]);
  const there = await serversThere(host);
  expect(await run.ended, run.stderr()).toBe(0);
  expect(stillRunning(there)).toEqual([]);
  expect(agentFolders()).toEqual(before);

  const { environment, variants, warnings } = readResult(out);
  expect(environment.serverHost).toMatchObject({ name: host.name, address: host.address });
  expect(environment.serverHost?.roundTripMs.p50).toBeGreaterThan(0);
  expect(environment.serverHost?.bytesPerSecond).toBeGreaterThan(1e6);
  expect(environment.versions['nginx']).toMatch(/^\d+\.\d+/);
  expect(run.stdout()).toContain(`of ${host.name} (`);
  expect(warnings.filter((line) => line.includes('alone'))).toEqual([]);
  for (const { rounds, successRatio, server } of variants) {
    expect(successRatio).toBe(1);
    expect(server?.atAddress).toBeUndefined();
    for (const { phases: [phase] } of rounds) {
      // An answer of nginx takes some 20 µs.
      const secondsEach = (phase?.serverCpuSeconds ?? 0) / (phase?.requests ?? 0);
      expect(secondsEach, JSON.stringify(phase)).toBeGreaterThan(1e-6);
      expect(secondsEach, JSON.stringify(phase)).toBeLessThan(1e-3);
      expect(phase?.serverRssBytes).toBeGreaterThan(1e6);
    }
  }
});

it('run a config of one\'s own, which is sent with its folder', async () => {
  const host = await openSshHost();
  const out = newOut();
  const files = await ownConfig('include part.conf;');
  writeFileSync(join(files, '../part.conf'), 'access_log off;\n');
  const run = runThere(host, ['compare', files, await ownConfig(), ...quick, '--out', out]);
  expect(await run.ended, run.stderr()).toBe(0);
  expect(run.stdout()).toMatch(new RegExp(`listen 80 → ${host.address}:\\d+`));
  for (const { successRatio, load: { bodyBytes } } of readResult(out).variants) expect([successRatio, bodyBytes]).toEqual([1, 5]);
});

it('end when the connection is cut in the midst of a round, and the run says so', async () => {
  const host = await openSshHost();
  const before = agentFolders();
  const run = runThere(host, ['scenario', 'nginx-open-file-cache', '--duration', '30s', '--out', newOut()]);
  const there = await serversThere(host);
  const connection = descendants(host.pid).find(({ command }) => command === 'sshd');
  await vi.waitFor(() => expect(descendants(run.pid).map(({ command }) => command)).toContain('k6'), { timeout: 60_000, interval: 20 });
  process.kill((connection as Seen).pid, 'SIGKILL');
  expect(await run.ended).toBe(1);
  expect(run.stderr()).toContain(`the connection to ${host.name} ended`);
  await vi.waitFor(() => expect(stillRunning(there)).toEqual([]), { timeout: 20_000, interval: 50 });
  await vi.waitFor(() => expect(agentFolders()).toEqual(before), { timeout: 20_000, interval: 50 });
  expect(isRunning(run.pid)).toBe(false);
});

describe('what is wrong is one line, and ends with', () => {
  const scenario = ['scenario', 'nginx-open-file-cache'];

  async function fails(run: ScenarioRun, code: number, line: RegExp): Promise<void> {
    expect(await run.ended, run.stderr()).toBe(code);
    const said = run.stderr().trimEnd().split('\n');
    expect(said.at(-1)).toMatch(line);
    expect(said.length, run.stderr()).toBe(1);
  }

  it('1: keys that are unknown, changed and refused', async () => {
    const host = await openSshHost();
    await fails(runThere(host, scenario, { BAKEOFF_SSH: host.ssh.replace(/known_hosts$/, 'none') }), 1, /^the host key of root@\S+ is not known here: connect once by hand/);
    await runCommand({ command: 'ssh-keygen', args: ['-q', '-t', 'ed25519', '-N', '', '-f', join(host.folder, 'other')] });
    const { stdout } = await runCommand({ command: 'cat', args: [join(host.folder, 'other.pub')] });
    writeFileSync(join(host.folder, 'changed'), `${host.address} ${stdout}`);
    await fails(runThere(host, scenario, { BAKEOFF_SSH: host.ssh.replace(/known_hosts$/, 'changed') }), 1, /has another host key than it had/);
    await fails(runThere(host, scenario, { BAKEOFF_SSH: host.ssh.replace(/-i \S+/, `-i ${join(host.folder, 'other')}`) }), 1, /refuses this user's keys: have ssh root@\S+ work without a password/);
  });

  it('1: a port where no sshd is, a name that does not resolve, a host without a way', async () => {
    const host = await openSshHost();
    await fails(runThere(host, scenario, { BAKEOFF_SSH: `${host.ssh} -p 1` }), 1, /refuses connections to its ssh/);
    await fails(runThere({ ...host, name: 'nowhere.invalid' }, scenario), 1, /^there is no host nowhere\.invalid/);
    await fails(runThere({ ...host, name: 'root@192.0.2.1' }, scenario), 1, /there is no way to root@192\.0\.2\.1 from here/);
  });

  it('1: no Node there', async () => {
    const host = await openSshHost({ PATH: '/nowhere' });
    await fails(runThere(host, scenario), 1, /there is no Node there: install it/);
  });

  it('1: a full disk there', async () => {
    const host = await openSshHost();
    const cache = join(host.folder, 'cache');
    mkdirSync(cache);
    const { code } = await runCommand({ command: 'mount', args: ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', cache] });
    expect(code).toBe(0);
    onTestFinished(async () => void await runCommand({ command: 'umount', args: [cache] }));
    await fails(runThere(host, scenario), 1, /the disk of root@\S+ is full/);
    expect(readdirSync(cache, { recursive: true }).filter((name) => String(name).endsWith('.tmp'))).toEqual([]);
  });

  it('1: a port of the server that does not let this machine in', async () => {
    const host = await openSshHost();
    // ssh comes there from inside, and the load would from a network that has no way there.
    const tunnel = `${host.inside.join(' ')} ${process.execPath} -e 'const s=require("node:net").connect(22,"${host.address}");process.stdin.pipe(s);s.pipe(process.stdout)'`;
    const file = join(host.folder, 'ssh_config');
    writeFileSync(file, `Host *\n  ProxyCommand ${tunnel}\n`);
    const alone = ['unshare', '--net', 'sh', '-c', 'exec "$@"', 'sh'];
    await fails(runThere({ ...host, before: alone }, scenario, { BAKEOFF_SSH: host.ssh.replace('-F none', `-F ${file}`) }), 1, /is reached by ssh, and port \d+ of \S+ is not from here/);
  });

  it('2: words that are no host, commands, and flags that do not go together', async () => {
    const host = await openSshHost();
    await fails(runThere({ ...host, name: '-oProxyCommand=x' }, scenario), 2, /--server-host/);
    await fails(runThere(host, ['compare', await ownConfig(), 'node server.js']), 2, /only configs can be started/);
    await fails(startCommand([...scenario, '--install'], home.env), 2, /--install is for the server host/);
    await fails(runThere(host, ['knobs', await ownConfig()]), 2, /leave --server-host out/);
    expect(existsSync(join(host.folder, 'cache'))).toBe(true);
  });

  it('2: a scenario with networks of its own', async () => {
    await fails(runThere(await openSshHost(), ['scenario', 'nginx-tuning-under-delay']), 2, /leave --server-host out/);
  });
});
