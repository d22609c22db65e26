// Installs the packages of a checkout. A fresh clone has none, so this file needs only Node. `npm test` begins with it.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { refusalForRoot } from './refusal.mjs';
import { callerOwning, foldersOf, helper, whoMayPut } from './trust.mjs';

/** Ends with a slash. */
export const projectRoot = fileURLToPath(new URL('..', import.meta.url));
const lockFile = `${projectRoot}package-lock.json`;
const stampFile = `${projectRoot}node_modules/.bakeoff-stamp`;

/** False in an installed package, because npm packs no lock file. */
export const isCheckout = existsSync(lockFile);

/** Identifies the lock file and the processor (some packages are binaries). */
function wantedStamp() {
  return createHash('sha256').update(readFileSync(lockFile)).update(process.arch).digest('hex');
}

function installedStamp() {
  try {
    return readFileSync(stampFile, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Returns whether the user's own `npm ci` has installed these packages: npm lists them in node_modules. */
function isAsLocked() {
  try {
    const [wanted, installed] = [lockFile, `${projectRoot}node_modules/.package-lock.json`].map(
      (file) => JSON.parse(readFileSync(file, 'utf8')).packages,
    );
    // Most optional packages are for other machines.
    const isNeeded = ({ optional, cpu, os, libc }) =>
      !optional ||
      (libc === undefined && cpu?.includes(process.arch) && os?.includes(process.platform));
    return Object.entries(wanted).every(
      ([path, entry]) =>
        path === '' ||
        (installed[path] === undefined
          ? !isNeeded(entry)
          : installed[path].integrity === entry.integrity),
    );
  } catch {
    return false;
  }
}

/**
 * Installs the packages of package-lock.json if node_modules has others. Every command holds a shared lock on the checkout until its
 * process ends, so that no start replaces node_modules under a running command.
 * @param {boolean} mayInstall
 * @param {number} mostSeconds to wait for a process that holds the checkout for itself
 * @returns {Promise<string | undefined>} why the packages cannot be installed, in one line
 */
export async function installPackages(mayInstall = true, mostSeconds = 600) {
  const stamp = wantedStamp();
  let startedAt;
  for (let tries = 1; ; tries++) {
    const lock = await sharedLock(mostSeconds, stamp);
    if (lock === undefined)
      return `another process has held the lock on ${projectRoot} for ${mostSeconds} s: find it with lslocks, end it, and start again`;
    if (installedStamp() === stamp || isAsLocked()) {
      if (startedAt !== undefined)
        console.error(`Node packages: done in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
      return undefined;
    }
    closeSync(lock);
    if (!mayInstall)
      return 'the Node packages of package-lock.json are not all there, and none may be installed: run npm ci, or leave out --no-install and BAKEOFF_INSTALL=no';
    if (startedAt === undefined) console.error('Node packages: installing (npm ci) …');
    startedAt ??= Date.now();
    const { code, errors } = await runNpm(stamp);
    if (code === inUse) {
      // Another command may have held the shared lock just for its check.
      if (tries === 20)
        return 'package-lock.json has changed, and other bakeoff commands still use node_modules: start again when they have ended';
      await delay(250);
    } else if (code !== 0)
      return `Node packages could not be installed (npm ci): ${causeLine(errors)}`;
  }
}

/**
 * Takes the shared lock, after any running `npm ci`. Closing the descriptor or ending this process releases the lock. Every user can hold a
 * lock on a folder that all may read, so it does not wait for ever, nor without a word, nor where the packages are
 * there: whoever installs others removes the stamp first.
 * @param {number} mostSeconds
 * @param {string} stamp of the packages that are needed
 * @returns {Promise<number | undefined>} the descriptor; undefined if another process keeps the lock
 */
async function sharedLock(mostSeconds, stamp) {
  const descriptor = openSync(projectRoot, 'r');
  if (await isLocked(descriptor, quietSeconds)) return descriptor;
  if (installedStamp() === stamp) return descriptor;
  console.error(
    `Node packages: waiting for another process that holds the lock on ${projectRoot}, as npm ci does …`,
  );
  if (await isLocked(descriptor, mostSeconds)) return descriptor;
  closeSync(descriptor);
  return undefined;
}

/** So long a start waits for the lock without a word. */
const quietSeconds = 2;

/** flock's exit code when others hold the lock. */
const inUse = 75;

/** Tries to get the shared lock. @param {number} descriptor @param {number} seconds */
async function isLocked(descriptor, seconds) {
  const flags = ['--shared', '--timeout', String(seconds), '--conflict-exit-code', String(inUse)];
  const child = spawn(helper('flock'), [...flags, '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
  });
  const code = await new Promise((resolve) => child.once('error', resolve).once('close', resolve));
  return code !== inUse;
}

/** Flags without the user's settings and cache of npm if others may put theirs there, as in a HOME that is /tmp. */
function ownSettings() {
  const named = Object.keys(process.env).find(
    (name) => name.toLowerCase() === 'npm_config_userconfig',
  );
  const file = (named && process.env[named]) || join(homedir(), '.npmrc');
  if (whoMayPut(file) === undefined) return [];
  return ['--userconfig=/dev/null', `--cache=${projectRoot}.bakeoff/npm`];
}

/**
 * Runs `npm ci` under an exclusive lock, which is released when npm's processes have ended. The stamp is removed first, so an interrupted
 * run leaves none. Returns the exit code and npm's error output.
 */
async function runNpm(stamp) {
  // Where the umask is 0, as in some containers, other users could replace the packages.
  const script =
    'umask go-w; stamp=$1; text=$2; owner=$3; cache=$4; flags=$5; shift 5; rm -f "$stamp"; npm ci $flags "$@" && chmod -R go-w node_modules && echo "$text" >"$stamp"; code=$?; ' +
    'for folder in ${owner:+"${stamp%/*}" "$cache"}; do [ ! -d "$folder" ] || chown -R -P "$owner" -- "$folder"; done; exit $code';
  // Optional and dev packages are named, so that NODE_ENV or the user's npm settings don't exclude them. The log level is set
  // because npm inherits `npm run -s`. None of the packages needs its install script.
  const flags =
    '--include=dev --include=optional --ignore-scripts --no-audit --no-fund --loglevel=error --no-progress ' +
    '--fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000';
  // The owner of the checkout installs packages in this folder too.
  const caller = callerOwning(projectRoot);
  const owner = caller === undefined ? '' : `${caller.uid}:${caller.gid}`;
  // `sudo -E` keeps the caller's HOME.
  const isCallersHome = existsSync(homedir()) && callerOwning(homedir()) !== undefined;
  const cache = isCallersHome ? join(homedir(), '.npm') : '';
  // Before npm starts, because a signal may come right after.
  const interrupts = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const forward = (name) => {
    process.kill(-child.pid, 'SIGTERM');
    for (const interrupt of interrupts) process.off(interrupt, forward);
    process.kill(process.pid, name);
  };
  for (const interrupt of interrupts) process.on(interrupt, forward);
  const { kept } = foldersOf(`${process.env.PATH ?? ''}:${dirname(process.execPath)}`);
  const child = spawn(
    helper('flock'),
    [
      '--exclusive',
      '--nonblock',
      '--conflict-exit-code',
      String(inUse),
      projectRoot,
      helper('sh'),
      '-c',
      script,
      'sh',
      stampFile,
      stamp,
      owner,
      cache,
      flags,
      // Without --prefix npm asks the parent folders whether they are the workspace's root.
      `--prefix=${projectRoot}`,
      ...ownSettings(),
    ],
    {
      cwd: projectRoot,
      // npm's compile cache would be in the folder of temporary files, where another user may have made it.
      env: { ...process.env, PATH: kept.join(':'), NODE_DISABLE_COMPILE_CACHE: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    },
  );
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const code = await new Promise((resolve) => {
    child.once('error', (error) => {
      errors += error.message;
      resolve(1);
    });
    child.once('close', resolve);
  });
  for (const interrupt of interrupts) process.off(interrupt, forward);
  return { code, errors };
}

/** The line of npm's output that names the cause: the first after the error codes, before the general advice. */
function causeLine(errors) {
  const lines = errors.split('\n').map((line) => line.replace(/^npm (error|ERR!) ?/, '').trim());
  const cause = lines.find(
    (line) => line !== '' && !/^(npm warn|code|errno|syscall|path|dest) /i.test(line),
  );
  return (cause || 'npm ended without a message').replace(/^network /, '').slice(0, 300);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const refusal =
    refusalForRoot(projectRoot, true) ??
    (await installPackages(process.env.BAKEOFF_INSTALL !== 'no'));
  if (refusal !== undefined) {
    console.error(refusal);
    process.exitCode = 1;
  }
}
