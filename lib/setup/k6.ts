// The k6 binary: stock k6 with the module k6/x/loadgen in it, built once from xk6-loadgen/ and kept under a hash of what
// it was built from; beside it delaylink, which holds networks.
import { createHash } from 'node:crypto';
import {
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { filesBelow, makeFolder, requireSpace } from '../files.ts';
import { UserError } from '../errors.ts';
import { withLock } from '../lock-file.ts';
import { causeLine } from '../process.ts';
import { type Machine, atLeast, findAll, isExecutableFile } from './machine.ts';
import { run } from './run.ts';

const buildsKept = 2;

/** The programs, twice over, and what Go's linker writes meanwhile. */
const buildBytes = 300e6;

export interface Go {
  binary: string;
  version: string;
  architecture: string;
}

/** What Go is run with: the module alone, by the Go that is there (it would download another, or hang at it). */
export function goEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, GOTOOLCHAIN: 'local', GOWORK: 'off', CGO_ENABLED: '0' };
}

/** The first Go that is new enough for xk6-loadgen/go.mod. Throws UserError when there is none. */
export async function findGo(machine: Machine): Promise<Go> {
  const needed =
    /^go\s+(\S+)/m.exec(await readFile(join(machine.k6Sources, 'go.mod'), 'utf8'))?.[1] ?? '1';
  const tooOld: string[] = [];
  for (const binary of await findAll('go', machine)) {
    // In a folder without go.mod: an old Go refuses to say anything next to a newer one's.
    const answer = await run({
      command: binary,
      args: ['env', 'GOVERSION', 'GOARCH'],
      cwd: '/',
      env: goEnvironment(machine.env),
    });
    const [version, architecture] = answer.stdout.trim().split('\n');
    if (answer.code !== 0 || version === undefined || architecture === undefined) continue;
    if (atLeast(version, needed)) return { binary, version, architecture };
    tooOld.push(`${binary} is ${version}`);
  }
  const found = tooOld.length === 0 ? 'Go is missing' : `Go is too old (${tooOld.join(', ')})`;
  throw new UserError(
    `${found}: k6 is built with Go ${needed} or newer, get it from https://go.dev/dl/, or set K6_BIN to a k6 with k6/x/loadgen in it`,
  );
}

/** Where the binary for the present sources and this Go lies, or will lie. */
export async function k6Path(machine: Machine, go: Go): Promise<string> {
  const files = (await filesBelow(machine.k6Sources)).filter(isBuiltFrom);
  const contents = await Promise.all(files.map((file) => readFile(join(machine.k6Sources, file))));
  const hash = createHash('sha256').update(`${go.version} ${go.architecture}\n`);
  for (const [index, content] of contents.entries()) {
    hash.update(`/${files[index]} ${content.length}\n`).update(content);
  }
  return join(machine.bakeoffFolder, 'k6', hash.digest('hex').slice(0, 16), 'k6');
}

/** Path of the delaylink that was built with this k6; undefined where there is none beside a k6 of the person's own. */
export async function delaylinkBeside(k6: string): Promise<string | undefined> {
  const path = join(dirname(k6), 'delaylink');
  return (await isExecutableFile(path)) ? path : undefined;
}

/** Beside the programs: how many bytes each has, by name. Written when they are whole and on the disk. */
const sizesFile = 'sizes.json';

/** The path of the k6 of the present sources, and how to build it where it is not there. Throws UserError as findGo. */
export async function lookForK6(
  machine: Machine,
): Promise<{ path: string; build?: (signal: AbortSignal) => Promise<void> }> {
  const go = await findGo(machine);
  const path = await k6Path(machine, go);
  if (!(await isWholeBuild(path)))
    return { path, build: (signal) => buildK6(machine, go, path, signal) };
  // When it was last used decides about its removal, and is its owner's to say.
  await utimes(path, new Date(), new Date()).catch(() => undefined);
  return { path };
}

/** Whether all that was built with this k6 is there as it was built. A full disk or a crash may have left less of it. */
async function isWholeBuild(k6: string): Promise<boolean> {
  const folder = dirname(k6);
  try {
    const sizes = Object.entries(
      JSON.parse(await readFile(join(folder, sizesFile), 'utf8')) as Record<string, number>,
    );
    const whole = await Promise.all(
      sizes.map(
        async ([name, size]) =>
          (await isExecutableFile(join(folder, name))) &&
          (await stat(join(folder, name))).size === size,
      ),
    );
    return whole.every(Boolean) && (await isExecutableFile(k6));
  } catch {
    return false;
  }
}

/** Makes sure that the programs run where they will lie, and outlast a crash, and notes their sizes. */
async function finishBuild(programs: string, signal: AbortSignal): Promise<void> {
  const { code, stdout, stderr } = await run({
    command: join(programs, 'k6'),
    args: ['version'],
    signal,
  });
  if (code !== 0) {
    const said = cause(stderr || stdout) || `it ended with code ${code}`;
    throw new UserError(
      `k6 was built and does not run in ${dirname(dirname(programs))}: ${said}; if programs may not run there (noexec), name another folder in BAKEOFF_HOME`,
    );
  }
  const sizes: Record<string, number> = {};
  for (const name of await readdir(programs)) {
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

/** What only tests read, fuzzing's finds among it, and what people read is not in the binary. */
function isBuiltFrom(file: string): boolean {
  return (
    !file.endsWith('_test.go') && !file.endsWith('.md') && !file.split(sep).includes('testdata')
  );
}

/**
 * Builds k6 to `target`, and its other programs beside it, unless they are there and whole by now. They are built in another folder, which
 * is moved, so that what stands at `target` is always whole; of two builds at once the second waits and finds the first
 * one's result.
 * Throws UserError with Go's last line when the build fails.
 */
async function buildK6(
  machine: Machine,
  go: Go,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  const cache = join(machine.bakeoffFolder, 'k6');
  try {
    makeFolder(cache);
    await withLock(join(cache, 'lock'), signal, () => build(machine, go, target, cache, signal));
  } catch (error) {
    if (signal.aborted || error instanceof UserError) throw error;
    throw new UserError(
      `k6 cannot be kept in ${cache}: ${(error as Error).message}; BAKEOFF_HOME names another folder`,
    );
  }
}

async function build(
  machine: Machine,
  go: Go,
  target: string,
  cache: string,
  signal: AbortSignal,
): Promise<void> {
  if (await isWholeBuild(target)) return;
  await requireSpace(
    cache,
    buildBytes,
    'k6, while it is built,',
    'name another folder in BAKEOFF_HOME',
  );
  // Go's own temporary files too, so that an interrupted build leaves nothing that the next one doesn't remove.
  const unfinished = join(cache, 'unfinished');
  await rm(unfinished, { recursive: true, force: true });
  const programs = join(unfinished, 'programs');
  await mkdir(programs, { recursive: true });
  try {
    const built = await run({
      command: go.binary,
      args: ['build', '-trimpath', '-buildvcs=false', '-o', `${programs}/`, './cmd/...'],
      cwd: machine.k6Sources,
      env: { ...goEnvironment(machine.env), GOTMPDIR: unfinished },
      signal,
    });
    if (built.code !== 0)
      throw new UserError(
        `k6 could not be built from ${machine.k6Sources}: ${cause(built.stderr)}`,
      );
    await finishBuild(programs, signal);
    // What is there is not whole.
    await rm(dirname(target), { recursive: true, force: true });
    await rename(programs, dirname(target));
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  await removeOldBuilds(cache);
}

function cause(said: string): string {
  return (
    causeLine(
      said
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    ) ?? ''
  );
}

async function removeOldBuilds(cache: string): Promise<void> {
  const folders = (await readdir(cache, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(cache, entry.name));
  const builds = await Promise.all(
    folders.map(async (folder) => ({
      folder,
      time: await stat(join(folder, 'k6')).then(
        (file) => file.mtimeMs,
        () => 0,
      ),
    })),
  );
  builds.sort((a, b) => b.time - a.time);
  await Promise.all(builds.slice(buildsKept).map(({ folder }) => rm(folder, { recursive: true })));
}
