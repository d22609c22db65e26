// Set-up with real Go and real child processes, but a fake apt.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createRunProgress } from '../../lib/cli/run-output.ts';
import { Progress } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import {
  realPath,
  script,
  source,
  testMachine,
  tinyK6,
  type TestMachine,
} from '../fixtures/machine.ts';
import { pidIn, start } from '../fixtures/node-process.ts';
import { screen } from '../fixtures/screen.ts';
import { isRunning } from '../fixtures/processes.ts';

const realGo = realPath('go');
const goCache = execFileSync(realGo, ['env', 'GOCACHE'], { encoding: 'utf8' }).trim();

function goMachine() {
  const machine = testMachine({ commands: ['flock'] });
  machine.env.GOCACHE = goCache;
  useRealGo(machine);
  tinyK6(machine, 'one');
  return machine;
}

function useRealGo(machine: TestMachine) {
  rmSync(join(machine.binFolder, 'go'), { force: true });
  symlinkSync(realGo, join(machine.binFolder, 'go'));
}

/** Puts a `go` on PATH that runs the shell code `onBuild` instead of a build; $out is the output folder. */
function fakeBuild(machine: TestMachine, onBuild: string) {
  script(
    machine,
    'go',
    `[ "$1" = build ] || exec ${realGo} "$@"\nwhile [ "$1" != -o ]; do shift; done; out=$2\n${onBuild}`,
  );
}

function k6Says(path: string) {
  // Go's println writes to stderr.
  return execFileSync('sh', ['-c', '"$0" 2>&1', path], { encoding: 'utf8' }).trim();
}

test.runIf(process.getuid?.() === 0)('a build below sudo is the caller’s', async () => {
  const machine = goMachine();
  vi.stubEnv('SUDO_UID', '12345').stubEnv('SUDO_GID', '12345');
  // Whom root trusts is read once, and a worker's test files share what was read.
  vi.resetModules();
  onTestFinished(() => void vi.unstubAllEnvs().resetModules());
  const { ensureTools } = await import('../../lib/setup/tools.ts');
  mkdirSync(machine.bakeoffFolder);
  chownSync(machine.bakeoffFolder, 12_345, 12_345);
  const { k6 } = await ensureTools(['k6'], machine);
  const cache = dirname(dirname(k6));
  const owners = [cache, join(cache, 'lock'), dirname(k6), k6].map((path) => statSync(path).uid);
  expect(owners).toEqual([12_345, 12_345, 12_345, 12_345]);
});

test('a build says how far it is, and why it failed', async () => {
  const machine = goMachine();
  const packages = 'example.com/package/v2\n'.repeat(82);
  fakeBuild(machine, `echo '${packages}main.go:1:1: no such thing\n${packages}' >&2; exit 1`);
  await expect(ensureTools(['k6'], machine)).rejects.toThrow(/: main.go:1:1: no such thing$/);
  expect(machine.printed()).toMatch(/\nk6: building from .*: 20 % of its packages …\nk6: failed/);
});

test('k6 is built once, and again only when its sources change', async () => {
  const machine = goMachine();
  await expect(ensureTools(['k6'], { ...machine, mayInstall: false })).rejects.toThrow(
    /^k6 is not built yet, and nothing may be .* --no-install .*K6_BIN/,
  );
  const { k6 } = await ensureTools(['k6'], machine);
  expect(k6Says(k6)).toBe('one');
  expect(await ensureTools(['k6'], { ...machine, mayInstall: false })).toEqual({ k6 });
  expect(k6Says(join(dirname(k6), 'delaylink'))).toBe('one');
  expect(k6.startsWith(`${machine.bakeoffFolder}/k6/`)).toBe(true);
  const built = statSync(k6).ino;
  const printed = machine.printed();
  expect(printed).toMatch(/^k6: building from xk6-loadgen\/, .* …\nk6: done, \d+(\.\d)? s\n$/);

  source(machine, 'cmd/k6/main_test.go', 'package main\n');
  source(machine, 'cmd/k6/testdata/fuzz/FuzzMain/0123456789abcdef', 'go test fuzz v1\n');
  source(machine, 'README.md', 'What people read.\n');
  source(machine, 'examples/run.js', 'What k6 runs.\n');
  fakeBuild(machine, 'exit 1');
  expect(await ensureTools(['k6'], machine)).toEqual({ k6 });
  expect(statSync(k6).ino).toBe(built);
  expect(machine.printed()).toBe(printed);

  useRealGo(machine);
  tinyK6(machine, 'two');
  const second = await ensureTools(['k6'], machine);
  expect(second.k6).not.toBe(k6);
  expect([k6Says(k6), k6Says(second.k6)]).toEqual(['one', 'two']);
});

test('the two most recently used builds are kept', async () => {
  const machine = goMachine();
  fakeBuild(machine, 'echo "#!/bin/sh" >"$out/k6"; chmod 755 "$out/k6"');
  symlinkSync(realPath('chmod'), join(machine.binFolder, 'chmod'));
  const build = async (answer: string) => {
    tinyK6(machine, answer);
    return (await ensureTools(['k6'], machine)).k6;
  };
  const firstBuild = await build('one');
  utimesSync(firstBuild, 1000, 1000);
  const two = await build('two');
  utimesSync(two, 2000, 2000);
  // Using the oldest build makes it the newest.
  expect(await build('one')).toBe(firstBuild);
  const three = await build('three');
  expect([firstBuild, two, three].map((path) => existsSync(path))).toEqual([true, false, true]);
});

test.each<[string, (k6: string, delaylink: string) => void]>([
  ['half of k6', (k6) => truncateSync(k6, Math.floor(statSync(k6).size / 2))],
  ['a delaylink that may not be run', (_, delaylink) => chmodSync(delaylink, 0o644)],
])('a damaged build is built again: %s', async (_, damage) => {
  const machine = goMachine();
  const { k6 } = await ensureTools(['k6'], machine);
  const delaylink = join(dirname(k6), 'delaylink');
  damage(k6, delaylink);
  expect(await ensureTools(['k6'], machine)).toEqual({ k6 });
  expect([k6Says(k6), k6Says(delaylink)]).toEqual(['one', 'one']);
  const { ino } = statSync(k6);
  await ensureTools(['k6'], machine);
  expect(statSync(k6).ino).toBe(ino);
});

test('a new k6 that does not run is not kept', async () => {
  const machine = goMachine();
  source(machine, 'cmd/k6/main.go', 'package main\n\nfunc main() { panic("no luck") }\n');
  await expect(ensureTools(['k6'], machine)).rejects.toThrow(
    /^k6 was built and does not run in .*: [^\n]+; if programs may not run there \(noexec\), name another folder in BAKEOFF_HOME$/,
  );
  expect(readdirSync(join(machine.bakeoffFolder, 'k6'))).toEqual(['lock']);
});

test('two at once: one builds, the other waits and uses the same binary', async () => {
  const machine = goMachine();
  const builds = join(machine.folder, 'builds');
  fakeBuild(
    machine,
    `echo build >>${builds}; exec ${realGo} build -trimpath -buildvcs=false -o "$out" ./cmd/...`,
  );
  const both = [1, 2].map(() => ensureTools(['k6'], machine));
  const [first, second] = (await Promise.all(both)) as [{ k6: string }, { k6: string }];
  expect(first).toEqual(second);
  expect(k6Says(first.k6)).toBe('one');
  expect(readFileSync(builds, 'utf8')).toBe('build\n');
});

test.each([
  ['SIGINT', [130, null]],
  ['SIGKILL', [null, 'SIGKILL']],
] as const)('a build interrupted by %s ends, and is built again', async (name, end) => {
  const machine = goMachine();
  const pidFile = join(machine.folder, 'pid');
  for (const command of ['sleep', 'chmod'])
    symlinkSync(realPath(command), join(machine.binFolder, command));
  fakeBuild(
    machine,
    `echo half >"$out/k6"; chmod 755 "$out/k6"; echo $$ >${pidFile}; exec sleep 60`,
  );
  const child = startEnsureTool('k6', machine);
  const buildPid = await pidIn(pidFile);
  child.process.kill(name);
  expect(await child.ended).toEqual(end);
  await vi.waitFor(() => expect(isRunning(buildPid)).toBe(false), 10_000);

  useRealGo(machine);
  const { k6 } = await ensureTools(['k6'], machine);
  expect(k6Says(k6)).toBe('one');
});

test('a failed build shows the last line of Go and leaves no binary', async () => {
  const machine = goMachine();
  source(machine, 'cmd/delaylink/main.go', 'package main\n\nfunc main() { undefinedName() }\n');
  await expect(ensureTools(['k6'], machine)).rejects.toThrow(
    `k6 could not be built from ${machine.k6Sources}: cmd/delaylink/main.go:3:15: undefined: undefinedName`,
  );
  expect(readdirSync(join(machine.bakeoffFolder, 'k6'))).toEqual(['lock']);
  expect(machine.printed()).toMatch(/\nk6: failed, .* s\n$/);
});

/**
 * A system with a fake apt. `apt-get install` runs the shell code `install`; there, `bring PACKAGE [PROGRAM]` installs a program
 * and a service of the same name. The log shows the answers that package scripts would get about services.
 */
function aptSystem(install: string) {
  const machine = testMachine({ isRoot: true, commands: ['cat', 'chmod', 'flock', 'sleep'] });
  const at = (name: string) => join(machine.folder, name);
  const policyFile = join(machine.systemRoot, 'usr/sbin/policy-rc.d');
  writeFileSync(at('installed'), 'libc6\n');
  writeFileSync(at('log'), '');
  machine.env.FOLDER = machine.folder;
  script(
    machine,
    'bring',
    `program=${machine.binFolder}/${'${2:-$1}'}; echo "#!/bin/sh" >$program; chmod 755 $program; echo "$1" >>${at('installed')}
${policyFile}; echo "$1 may start: $?" >>${at('log')}`,
  );
  script(
    machine,
    'apt-get',
    `for word in "$@"; do case $word in update|install|--simulate) action=$word;; -*|*=*) ;; *) names="$names $word";; esac; done
echo "apt-get $action" >>${at('log')}; echo "$*" >>${at('arguments')}
case $action in
--simulate) echo "Inst libc6 [1] (2 test [amd64])"; for name in $names $DEPENDENCIES; do echo "Inst $name (1 test [amd64])"; done;;
install) ${install};;
esac`,
  );
  script(
    machine,
    'dpkg-query',
    `[ $1 = -L ] && shift && for name in "$@"; do while read -r known; do
[ $name != $known ] || { echo /usr/sbin/$name; echo /etc/init.d/$name; echo /usr/lib/systemd/system/$name.service; }
done <${at('installed')}; done`,
  );
  script(machine, 'update-rc.d', `echo "update-rc.d $*" >>${at('log')}`);
  return { machine, policyFile, log: () => readFileSync(at('log'), 'utf8').trim().split('\n') };
}

test('apt: all packages at once, no service is started or enabled', async () => {
  const { machine, log, policyFile } = aptSystem(
    'bring nginx; bring influxdb influxd; bring nginx-common; umask >"$0.umask"',
  );
  // Same umask as in a run.
  const umask = process.umask(0o077);
  onTestFinished(() => void process.umask(umask));
  machine.env.DEPENDENCIES = 'nginx-common libc6-common';
  script(machine, 'wrk', 'exit 0');
  expect(await ensureTools(['nginx', 'influxd', 'wrk'], machine)).toEqual(
    Object.fromEntries(
      ['nginx', 'influxd', 'wrk'].map((name) => [name, join(machine.binFolder, name)]),
    ),
  );
  const packages = ['nginx', 'influxdb', 'nginx-common'];
  expect(log()).toEqual([
    'apt-get update',
    'apt-get --simulate',
    'apt-get install',
    ...packages.map((name) => `${name} may start: 101`),
    ...packages.map((name) => `update-rc.d ${name} disable`),
  ]);
  const used = readFileSync(join(machine.binFolder, 'apt-get.umask'), 'utf8');
  expect(parseInt(used, 8)).toBe(umask);
  expect(readFileSync(join(machine.folder, 'arguments'), 'utf8')).toMatch(
    /install -y --no-install-recommends --no-remove nginx influxdb\n$/,
  );
  expect(existsSync(policyFile)).toBe(false);
  const printed = machine.printed();
  expect(printed).toContain(
    'apt-get installs nginx and influxdb with 2 dependencies, since nginx and influxd are missing; no service is started or enabled; --no-install forbids it\n',
  );

  await ensureTools(['nginx', 'influxd'], machine);
  expect(machine.printed()).toBe(printed);
});

test('apt fails half-way: its error line, no service is enabled', async () => {
  const { machine, log, policyFile } = aptSystem(
    'bring nginx; echo "E: Failed to fetch http://h/i.deb  Could not connect" >&2; echo "E: Unable to fetch some archives" >&2; exit 100',
  );
  await expect(ensureTools(['nginx', 'influxd'], machine)).rejects.toThrow(
    /^apt-get could not install nginx, influxdb: Failed to fetch .*; by hand: apt-get update && apt-get install nginx influxdb$/,
  );
  expect(log().at(-1)).toBe('update-rc.d nginx disable');
  expect(existsSync(policyFile)).toBe(false);
});

// Shell code that runs for a minute or until interrupted.
const lasts = ': >"$FOLDER/started"; i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done';

test('after an interrupt, apt finishes its work', async () => {
  const { machine, log, policyFile } = aptSystem(`trap "bring nginx; exit 100" INT; ${lasts}`);
  const controller = new AbortController();
  const running = ensureTools(['nginx'], machine, controller.signal);
  const refused = expect(running).rejects.toThrow('enough');
  await vi.waitFor(() => expect(existsSync(join(machine.folder, 'started'))).toBe(true), 10_000);
  controller.abort(new Error('enough'));
  await refused;
  expect(log().slice(-2)).toEqual(['nginx may start: 101', 'update-rc.d nginx disable']);
  expect(existsSync(policyFile)).toBe(false);
  expect(machine.printed()).toContain('nginx: interrupted, apt-get finishes what it has begun …\n');
});

test('while a package installs during a run, its line stands in place of the round’s', async () => {
  const { machine } = aptSystem('sleep 1.2; bring linux-perf perf');
  let text = '';
  const seen: string[] = [];
  const stream = {
    isTTY: true,
    columns: 80,
    write(more: string) {
      text += more;
      seen.push(screen(text).replaceAll(/\d+\.\d s/g, '0.0 s'));
    },
  };
  const progress = createRunProgress(stream);
  progress.running({ what: 'round 4 of 4', seen: 'b +3 %', secondsLeft: 20 });
  await ensureTools(['perf'], { ...machine, progress: new Progress(stream) });
  progress.clear();
  const [stays = ''] = /^apt-get installs.*\n/.exec(seen.at(-1) ?? '') ?? [];
  expect(seen.at(-1)).toBe(`${stays}perf: done, 0.0 s\n`);
  const shown = new Set(seen.map((now) => now.replace(stays, '')));
  expect(stays).toContain('linux-perf');
  expect([...shown].filter((now) => now !== '')).toEqual([
    'round 4 of 4 · 0:20 left · b +3 %',
    'perf: installing with apt-get … 0.0 s',
    'perf: done, 0.0 s\n',
    expect.stringMatching(/^perf: done, 0.0 s\nround 4 of 4 · 0:1\d left · b \+3 %$/),
  ]);
});

test('an existing policy-rc.d stays', async () => {
  const system = aptSystem('bring nginx');
  writeFileSync(system.policyFile, '#!/bin/sh\nexit 102\n', { mode: 0o755 });
  await ensureTools(['nginx'], system.machine);
  expect(readFileSync(system.policyFile, 'utf8')).toBe('#!/bin/sh\nexit 102\n');
});

test('waits for the locks of apt', async () => {
  const { machine, log } = aptSystem(
    '[ -e "$SEEN" ] && bring nginx || { : >"$SEEN"; echo "E: Could not get lock /var/cache/apt/archives/lock. It is held by process 7" >&2; exit 100; }',
  );
  machine.env.SEEN = join(machine.folder, 'seen');
  await ensureTools(['nginx'], machine);
  expect(log().filter((line) => line === 'apt-get install')).toHaveLength(2);
});

function startEnsureTool(tool: string, machine: TestMachine) {
  const json = JSON.stringify({ ...machine, env: undefined, progress: undefined });
  return start(
    ['--import', 'tsx', join(projectRoot, 'test/fixtures/ensure-tool.mts'), tool, json],
    machine.env,
  );
}
