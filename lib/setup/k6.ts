// Builds k6 with the module of xk6-loadgen/, and delaylink beside it. Builds are kept in folders named by a hash of their sources.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  lchown,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { callerOwning, helper, whoMayChange, whoMayMake, whoMayPut } from '../../bin/trust.mjs';
import { filesBelow, foldersUp, inOwnFolder, makeOwnFolder, requireSpace } from '../files.ts';
import { UserError } from '../errors.ts';
import { withLock } from '../machine/locks.ts';
import { firstOf, present } from '../present.ts';
import { giveToCaller, leaveToCaller, run } from '../process.ts';
import { causeLine } from '../program-logs.ts';
import { type Machine, atLeast, findAll, isExecutableFile, leftOutOfPath } from './machine.ts';

const buildsKept = 2;

/** Both programs twice, and the linker's temporary files. */
const buildBytes = 300e6;

type Go = Awaited<ReturnType<typeof findGo>>;

/** Go's environment. It allows only this module, only flags that are in a build's hash, and no download of another Go. */
export function goEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = {
    ...env,
    GOTOOLCHAIN: 'local',
    GOWORK: 'off',
    CGO_ENABLED: '0',
    GOFLAGS: '-buildvcs=false',
  };
  // Go's settings may name programs that it runs (GOCACHEPROG).
  const config = env['XDG_CONFIG_HOME'] || join(env['HOME'] || '/', '.config');
  const settings = env['GOENV'] || join(config, 'go/env');
  return settings !== 'off' && whoMayPut(settings) !== undefined ? { ...own, GOENV: 'off' } : own;
}

/** Returns the first Go that is new enough for xk6-loadgen/go.mod. Throws UserError. */
export async function findGo(machine: Machine) {
  const needed =
    /^go\s+(\S+)/m.exec(await readFile(join(machine.k6Sources, 'go.mod'), 'utf8'))?.[1] ?? '1';
  const tooOld: string[] = [];
  for (const binary of await findAll('go', machine)) {
    // An old Go fails beside a go.mod of a newer Go.
    const answer = await run({
      command: binary,
      args: ['env', 'GOVERSION', 'GOARCH', 'GOCACHE', 'GOMODCACHE'],
      cwd: '/',
      env: goEnvironment(machine.env),
    });
    const [version, architecture, ...caches] = answer.stdout.trim().split('\n');
    if (answer.code !== 0 || version === undefined || architecture === undefined) continue;
    await leaveGosFilesToCaller(machine, []);
    if (atLeast(version, needed)) return { binary, version, architecture, caches };
    tooOld.push(`${binary} is ${version}`);
  }
  const problem =
    tooOld.length === 0
      ? `Go is missing${await leftOutOfPath('go')}`
      : `Go is too old (${tooOld.join(', ')})`;
  throw new UserError(
    `${problem}: k6 is built with Go ${needed} or newer, get it from https://go.dev/dl/, or set K6_BIN to a k6 with k6/x/loadgen in it`,
  );
}

/**
 * Gives Go's files to the caller of sudo. With `sudo -E` HOME is the caller's, and Go keeps files there: if they were root's, the caller
 * could no longer build.
 * @param caches of Go that it may have written to, beside its settings
 */
async function leaveGosFilesToCaller({ env }: Machine, caches: readonly string[]): Promise<void> {
  const { HOME = '' } = env;
  const caller = existsSync(HOME) ? callerOwning(HOME) : undefined;
  if (caller === undefined) return;
  const home = await realpath(HOME);
  const settings = join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'go');
  for (const folder of [...caches, settings].filter(existsSync)) {
    // A link may lead to a place of others.
    if (!(await realpath(folder)).startsWith(`${home}/`)) continue;
    for (const above of foldersUp(dirname(folder)))
      if (above.startsWith(`${home}/`)) await lchown(above, caller.uid, caller.gid);
    await giveToCaller(folder);
  }
}

/** Returns the SHA-256, in hexadecimal digits, of the text `first` and of everything that k6 is built from. */
export async function hashOfSources(folder: string, first = ''): Promise<string> {
  const hash = createHash('sha256').update(first);
  for (const file of await filesBelow(folder)) {
    // Tests, texts and scripts are not in the binary.
    if (!/\.go$|^go\.|\.json$/.test(file) || file.endsWith('_test.go')) continue;
    const content = await readFile(join(folder, file));
    hash.update(`/${file} ${content.length}\n`).update(content);
  }
  return hash.digest('hex');
}

/** Path of the k6 for the present sources, this Go and these flags. */
export async function k6Path(
  machine: Machine,
  go: Pick<Go, 'version' | 'architecture'>,
  flags: readonly string[] = quickFlags,
): Promise<string> {
  const first = `${go.version} ${go.architecture} ${JSON.stringify(flags)}\n`;
  const hash = await hashOfSources(machine.k6Sources, first);
  return join(machine.bakeoffFolder, 'k6', hash.slice(0, 16), 'k6');
}

/** The optional dependency of a release with k6 for an architecture, as Node names it. */
export const k6Package = (architecture: string): string =>
  `server-bakeoff-k6-linux-${architecture}`;

/** k6 and what is built with it. */
const programsBeside = (k6: string): string[] => [k6, join(dirname(k6), 'delaylink')];

/** File in such a package with the hash of its k6's sources. */
export const sourcesFile = 'sources.sha256';

/**
 * Returns the k6 of a package, if nobody else may change it, it is complete, and it was built from these sources. Otherwise prints why the
 * package cannot be used.
 */
async function packagedK6(machine: Machine): Promise<string | undefined> {
  const name = k6Package(process.arch);
  const path = machine.packageFolders
    .map((folder) => join(folder, name, 'k6'))
    .find((file) => existsSync(file));
  if (path === undefined) return undefined;
  const sources = await readFile(join(dirname(path), sourcesFile), 'utf8').catch(() => '');
  const isOfThese = sources.trim() === (await hashOfSources(machine.k6Sources));
  const problem = firstOf(programsBeside(path).filter(existsSync), whoMayChange);
  const isOfThisKind = (await programKind(path)) === (await programKind(process.execPath));
  const isUsable = isOfThese && isOfThisKind && problem === undefined;
  if (isUsable && (await isWholeBuild(path))) return path;
  let why = 'is of other sources';
  if (isOfThese) why = 'is damaged, or may not run where it is (noexec)';
  if (!isOfThisKind) why = 'is of another architecture';
  if (problem !== undefined) why = `may be changed by others (${problem})`;
  machine.progress.print(`k6 of the package ${name} ${why}: it is built instead`);
  return undefined;
}

/** Returns word size, byte order and processor from a program's ELF header; '' if it has none. */
async function programKind(path: string): Promise<string> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return '';
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(20), 0, 20, 0);
    return bytesRead === 20 ? buffer.toString('hex', 4, 6) + buffer.toString('hex', 18) : '';
  } finally {
    await file.close();
  }
}

/** Bytes of each program by name, written once they are on the disk. */
const sizesFile = 'sizes.json';

/** Builds k6. @param moved see watchPackages */
export type Build = (signal: AbortSignal, moved: (share: number) => void) => Promise<void>;

/** Returns the path of k6, and a function to build it if it is missing. Throws UserError if Go is missing, or if nothing may be built. */
export async function lookForK6(machine: Machine): Promise<{ path: string; build?: Build }> {
  const packaged = await packagedK6(machine);
  if (packaged !== undefined) return { path: packaged };
  const go = await findGo(machine);
  const path = await k6Path(machine, go);
  const isThere = await isWholeBuild(path);
  const places = isThere ? programsBeside(path) : [machine.bakeoffFolder];
  requireOwn(places, 'a k6', 'BAKEOFF_HOME', whoMayMake);
  if (!isThere && !machine.mayInstall)
    throw new UserError(
      'k6 is not built yet, and nothing may be installed or built: leave out --no-install and BAKEOFF_INSTALL=no once, or set K6_BIN to a k6 with k6/x/loadgen in it',
    );
  if (!isThere) {
    requireOwnCaches(go);
    return { path, build: (signal, moved) => build(machine, go, path, signal, moved) };
  }
  // The builds used last are kept. Another user cannot set the time.
  await utimes(path, new Date(), new Date()).catch(() => undefined);
  return { path };
}

/** Returns the path of the Go to compile with. Throws UserError without Go, or if other users may put compiled code into its caches. */
export async function goCompiler(machine: Machine): Promise<string> {
  const go = await findGo(machine);
  requireOwnCaches(go);
  return go.binary;
}

const requireOwnCaches = ({ caches }: Go): void =>
  requireOwn(caches, 'compiled code', 'GOCACHE and GOMODCACHE', (cache) =>
    // Others may make files in a sticky folder.
    whoMayPut(join(cache, 'file')),
  );

/**
 * Throws UserError if other users may change what is run or built from.
 * @param what names it in the error
 * @param variables that name other folders
 */
function requireOwn(
  paths: readonly string[],
  what: string,
  variables: string,
  whoMay: typeof whoMayMake,
): void {
  for (const path of paths.filter(isAbsolute)) {
    const problem = whoMay(path);
    if (problem !== undefined)
      throw new UserError(
        `others may put ${what} of theirs into ${path}: ${problem}; name folders of your own in ${variables}`,
      );
  }
}

/** A full disk or a crash may have cut a program. */
async function isWholeBuild(k6: string): Promise<boolean> {
  const folder = dirname(k6);
  try {
    const text = await readFile(join(folder, sizesFile), 'utf8');
    for (const [name, size] of Object.entries(JSON.parse(text) as Record<string, number>)) {
      const file = join(folder, name);
      if (!(await isExecutableFile(file)) || (await stat(file)).size !== size) return false;
    }
    return await isExecutableFile(k6);
  } catch {
    return false;
  }
}

/** Flushes the programs of a folder to the disk, and writes their sizes. */
export async function writeSizes(programs: string): Promise<void> {
  const sizes: Record<string, number> = {};
  for (const name of (await readdir(programs)).sort()) {
    const file = await open(join(programs, name));
    try {
      await file.sync();
      sizes[name] = (await file.stat()).size;
    } finally {
      await file.close();
    }
  }
  await writeFile(join(programs, sizesFile), `${JSON.stringify(sizes)}\n`, { flush: true });
}

/**
 * These flags leave out paths of this machine, and symbols, which are a third of the size. Go's stack traces name functions without them.
 */
export const buildFlags: readonly string[] = ['-trimpath', '-buildvcs=false', '-ldflags=-s -w'];

/** Packages that a load or a script passes through. */
const optimised = [
  'std',
  './...',
  'go.k6.io/k6/v2/...',
  'github.com/dlclark/...',
  'github.com/grafana/sobek/...',
  'github.com/mstoykov/...',
  'github.com/quic-go/...',
  'golang.org/x/crypto/...',
  'golang.org/x/net/...',
  'golang.org/x/sys/...',
  'golang.org/x/time/...',
  'gopkg.in/guregu/...',
];

/** Packages of k6's own that none passes through. */
const notOptimised = [
  'go.k6.io/k6/v2/internal/cmd/...',
  'go.k6.io/k6/v2/internal/js/modules/k6/browser/...',
];

/**
 * Flags for a build that somebody waits for: it has nothing for debuggers, which the linker would remove anyway, and optimises only the
 * packages that need it. The program is a ninth larger, so releases are built without these flags. If several patterns match a package, Go
 * uses the last one.
 */
export const quickFlags: readonly string[] = [
  ...buildFlags,
  '-gcflags=all=-N -l -dwarf=false',
  ...optimised.map((packages) => `-gcflags=${packages}=-dwarf=false`),
  ...notOptimised.map((packages) => `-gcflags=${packages}=-N -l -dwarf=false`),
];

/** k6 with its modules: `go list -deps ./cmd/... | wc -l`. */
const packages = 820;

/**
 * Returns a function that takes Go's output. It calls `moved` with the share of packages that Go has begun to compile, from 0 to 1 in steps
 * of 0.05.
 */
function watchPackages(moved: (share: number) => void): (text: string) => void {
  let [seen, told] = [0, 0];
  return (text) => {
    seen += text.split('\n').filter((line) => packageLine.test(line)).length;
    const share = Math.min(0.95, Math.floor((20 * seen) / packages) / 20);
    if (share > told) moved((told = share));
  };
}

/** A package's name as go build -v prints it. */
const packageLine = /^[\w./~-]+$/;

/**
 * Builds k6 and delaylink into a folder.
 * @param what Go's path, the folders of the sources and of the programs, and Go's flags
 * @param env see goEnvironment
 * @param moved see watchPackages
 * @returns Go's output if it fails
 */
export async function compileK6(
  what: { go: string; sources: string; programs: string; flags: readonly string[] },
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
  moved: (share: number) => void = () => undefined,
): Promise<string | undefined> {
  const built = await run({
    command: what.go,
    args: ['build', '-v', ...what.flags, '-o', `${what.programs}/`, './cmd/...'],
    cwd: what.sources,
    // Compilers run for seconds, and there is memory enough: with fewer garbage collections the build takes a sixth less time.
    env: { ...env, GOGC: '400' },
    said: watchPackages(moved),
    ...present({ signal }),
  });
  return built.code === 0 ? undefined : cause(built.stderr);
}

/** Builds k6 and delaylink. Another process that needs them waits, and uses the result. @throws UserError with Go's last line */
function build(
  machine: Machine,
  go: Go,
  target: string,
  ...[signal, moved]: Parameters<Build>
): Promise<void> {
  const cache = dirname(dirname(target));
  const another = 'name another folder in BAKEOFF_HOME';
  // The folder also has Go's temporary files. The next build removes an interrupted build.
  const unfinished = join(cache, 'unfinished');
  const programs = join(unfinished, 'programs');
  const remove = (folder: string) => rm(folder, { recursive: true, force: true });
  const underLock = async () => {
    if (await isWholeBuild(target)) return;
    await requireSpace(cache, buildBytes, 'k6, while it is built,', another);
    await remove(unfinished);
    await mkdir(programs, { recursive: true });
    try {
      const sources = machine.k6Sources;
      const env = { ...goEnvironment(machine.env), GOTMPDIR: unfinished };
      const what = { go: go.binary, sources, programs, flags: quickFlags };
      const problem = await compileK6(what, env, signal, moved);
      if (problem !== undefined)
        throw new UserError(`k6 could not be built from ${sources}: ${problem}`);
      const k6 = join(programs, 'k6');
      const { code, stdout, stderr } = await run({ command: k6, args: ['version'], signal });
      if (code !== 0)
        throw new UserError(
          `k6 was built and does not run in ${unfinished}: ${cause(stderr || stdout) || `it ended with code ${code}`}; if programs may not run there (noexec), ${another}`,
        );
      await writeSizes(programs);
      // If the cache has a default access control list, it replaces the umask.
      await run({ command: helper('chmod'), args: ['-R', 'go-w', programs], signal });
      // An incomplete build is in the way.
      await remove(dirname(target));
      await rename(programs, dirname(target));
    } finally {
      await remove(unfinished);
      await leaveToCaller(cache);
      await leaveGosFilesToCaller(machine, go.caches);
    }
    await removeOldBuilds(cache);
  };
  return inOwnFolder(cache, 'k6', signal, () => {
    makeOwnFolder(cache);
    return withLock(join(cache, 'lock'), signal, underLock);
  });
}

function cause(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  return causeLine(lines.filter((line) => line !== '' && !packageLine.test(line))) ?? '';
}

async function removeOldBuilds(cache: string): Promise<void> {
  const builds: { folder: string; time: number }[] = [];
  for (const entry of await readdir(cache, { withFileTypes: true })) {
    const folder = join(cache, entry.name);
    const k6 = await stat(join(folder, 'k6')).catch(() => undefined);
    if (entry.isDirectory()) builds.push({ folder, time: k6?.mtimeMs ?? 0 });
  }
  builds.sort((a, b) => b.time - a.time);
  for (const { folder } of builds.slice(buildsKept)) await rm(folder, { recursive: true });
}
