#!/usr/bin/env node
// The start of every command. On a fresh clone nothing is installed yet, so this file is plain JavaScript that needs
// Node alone: it makes node_modules when that is missing or older than package-lock.json and hands over to TypeScript. As
// somebody's dependency it has no package-lock.json (npm packs none), and whoever installed it has brought its packages.
// Everything printed here goes to stderr, since stdout belongs to the command (`--json`).
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

const projectRoot = fileURLToPath(new URL('..', import.meta.url));
const lockFile = `${projectRoot}package-lock.json`;
const stampFile = `${projectRoot}node_modules/.bakeoff-stamp`;

/** Node 20 fails to make room for WebAssembly with 32 GB and does with 64. */
const leastAddressSpace = 64e9;

/** In bytes, Infinity without one (`ulimit -v`). */
function addressSpaceLimit() {
  try {
    const limit = /^Max address space +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return limit === null ? Infinity : Number(limit[1]);
  } catch {
    return Infinity;
  }
}

/** What is wrong with this machine, in one line; undefined when nothing is. */
function unsupported() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  // As in package.json, of which npm only warns.
  const fits = major === 20 ? minor >= 19 : major === 22 ? minor >= 12 : major > 22;
  if (!fits) {
    return `bakeoff needs Node 20.19, 22.12 or newer, this is ${process.versions.node}: get one from https://nodejs.org`;
  }
  if (process.platform !== 'linux') return `bakeoff measures on Linux only, this is ${process.platform}`;
  const limit = addressSpaceLimit();
  if (limit < leastAddressSpace) {
    return `the address space of a process is limited to ${(limit / 1e9).toFixed(1)} GB here, and Node reserves tens of GB without using them: lift it with ulimit -v unlimited`;
  }
  return undefined;
}

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

/**
 * Runs `npm ci`. flock(1) makes a second start wait for the first, which then finds the stamp; the lock goes with the
 * processes that hold it. `npm ci` empties node_modules first, so an interrupted one leaves no stamp behind.
 * Returns npm's error output, undefined when it went well.
 */
async function installPackages(stamp) {
  const script = '[ "$(cat "$1" 2>/dev/null)" = "$2" ] || { npm ci $3 && echo "$2" >"$1"; }';
  // Optional and dev packages are named, so that NODE_ENV or the person's npm settings don't leave them out; the error
  // level, since `npm run -s` hands its silence down. No package here needs its install script.
  const flags = '--include=dev --include=optional --ignore-scripts --no-audit --no-fund --loglevel=error --no-progress '
    + '--fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000';
  const child = spawn('flock', ['package-lock.json', 'sh', '-c', script, 'sh', stampFile, stamp, flags], {
    cwd: projectRoot,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const interrupts = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const forward = (name) => {
    process.kill(-child.pid, 'SIGTERM');
    for (const interrupt of interrupts) process.off(interrupt, forward);
    process.kill(process.pid, name);
  };
  for (const interrupt of interrupts) process.on(interrupt, forward);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => { errors += text; });
  const code = await new Promise((resolve) => {
    child.once('error', (error) => { errors += error.message; resolve(1); });
    child.once('close', resolve);
  });
  for (const interrupt of interrupts) process.off(interrupt, forward);
  return code === 0 ? undefined : errors;
}

/** npm's line that names the cause: the first after its codes. What follows is general advice, a stack, where its log is. */
function causeLine(errors) {
  const lines = errors.split('\n').map((line) => line.replace(/^npm (error|ERR!) ?/, '').trim());
  const cause = lines.find((line) => line !== '' && !/^(npm warn|code|errno|syscall|path|dest) /i.test(line));
  return (cause || 'npm ended without a message').replace(/^network /, '').slice(0, 300);
}

async function main() {
  const problem = unsupported();
  if (problem !== undefined) {
    console.error(problem);
    return 1;
  }
  const stamp = existsSync(lockFile) ? wantedStamp() : undefined;
  if (stamp !== undefined && installedStamp() !== stamp) {
    console.error('Node packages: installing (npm ci) …');
    const startedAt = Date.now();
    const errors = await installPackages(stamp);
    if (errors !== undefined) {
      console.error(`Node packages could not be installed (npm ci): ${causeLine(errors)}`);
      return 1;
    }
    console.error(`Node packages: done in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  }
  const commands = await commandsModule(stamp !== undefined);
  return commands.main(process.argv.slice(2));
}

/** Of a checkout compiled; of a package, whose folder may be closed to who uses it, and where that fails, TypeScript as it is. */
async function commandsModule(isCheckout) {
  try {
    if (isCheckout) {
      const { compiledCommands } = await import('./compile.mjs');
      return await import(pathToFileURL(await compiledCommands(projectRoot)).href);
    }
  } catch (error) {
    if (process.env.BAKEOFF_DEBUG === '1') console.error(error);
  }
  const { register } = await import('tsx/esm/api');
  register();
  return import('../lib/cli/main.ts');
}

main().then((exitCode) => { process.exitCode = exitCode; }, (error) => {
  if (process.env.BAKEOFF_DEBUG === '1') throw error;
  const [line] = String(error?.message ?? error).split('\n');
  const remedy = existsSync(lockFile) ? 'remove node_modules and start again' : 'install server-bakeoff anew, e.g. npm ci';
  console.error(`bakeoff cannot start: ${line} (${remedy}; BAKEOFF_DEBUG=1 shows where)`);
  process.exitCode = 1;
});
