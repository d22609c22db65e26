// The packages of a checkout: on a fresh clone nothing is installed yet, so this needs Node alone.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** With a slash at its end. */
export const projectRoot = fileURLToPath(new URL('..', import.meta.url));
const lockFile = `${projectRoot}package-lock.json`;
const stampFile = `${projectRoot}node_modules/.bakeoff-stamp`;

/** And not a package of some project: npm packs no lock file. */
export const isCheckout = existsSync(lockFile);

/** What node_modules has to be made from: the lock file, for this processor (some packages are binaries). */
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

/** Whether somebody's own `npm ci` has made node_modules: npm lists there what it has installed. */
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
      ([path, one]) =>
        path === '' ||
        (installed[path] === undefined
          ? !isNeeded(one)
          : installed[path].integrity === one.integrity),
    );
  } catch {
    return false;
  }
}

/**
 * Makes node_modules from package-lock.json where it was not made from that. Returns undefined when it is there, else a line
 * that says why it cannot be.
 * @param {boolean} mayInstall
 */
export async function installPackages(mayInstall = true) {
  const stamp = wantedStamp();
  if (installedStamp() === stamp || isAsLocked()) return undefined;
  if (!mayInstall)
    return 'the Node packages of package-lock.json are not all there, and none may be installed: run npm ci, or leave out --no-install and BAKEOFF_INSTALL=no';
  console.error('Node packages: installing (npm ci) …');
  const startedAt = Date.now();
  const errors = await runNpm(stamp);
  if (errors !== undefined)
    return `Node packages could not be installed (npm ci): ${causeLine(errors)}`;
  console.error(`Node packages: done in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  return undefined;
}

/**
 * Runs `npm ci`. flock(1) makes a second start wait for the first, which then finds the stamp; the lock goes with the
 * processes that hold it. `npm ci` empties node_modules first, so an interrupted one leaves no stamp behind.
 * Returns npm's error output, undefined when it went well.
 */
async function runNpm(stamp) {
  const script = '[ "$(cat "$1" 2>/dev/null)" = "$2" ] || { npm ci $3 && echo "$2" >"$1"; }';
  // Optional and dev packages are named, so that NODE_ENV or the person's npm settings don't leave them out; the error
  // level, since `npm run -s` hands its silence down. No package here needs its install script.
  const flags =
    '--include=dev --include=optional --ignore-scripts --no-audit --no-fund --loglevel=error --no-progress ' +
    '--fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000';
  const child = spawn(
    'flock',
    ['package-lock.json', 'sh', '-c', script, 'sh', stampFile, stamp, flags],
    {
      cwd: projectRoot,
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    },
  );
  const interrupts = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const forward = (name) => {
    process.kill(-child.pid, 'SIGTERM');
    for (const interrupt of interrupts) process.off(interrupt, forward);
    process.kill(process.pid, name);
  };
  for (const interrupt of interrupts) process.on(interrupt, forward);
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
  return code === 0 ? undefined : errors;
}

/** npm's line that names the cause: the first after its codes. What follows is general advice, a stack, where its log is. */
function causeLine(errors) {
  const lines = errors.split('\n').map((line) => line.replace(/^npm (error|ERR!) ?/, '').trim());
  const cause = lines.find(
    (line) => line !== '' && !/^(npm warn|code|errno|syscall|path|dest) /i.test(line),
  );
  return (cause || 'npm ended without a message').replace(/^network /, '').slice(0, 300);
}
