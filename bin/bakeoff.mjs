#!/usr/bin/env node
// The entry point of every command. On a fresh clone nothing is installed yet, so this file is plain JavaScript that needs only
// Node. In a checkout it updates node_modules if package-lock.json has changed, and dist/ if the sources have. An installed
// package has no package-lock.json (npm does not pack it); dist/ is in the package, and npm has installed the dependencies. This
// file prints to stderr only, because stdout belongs to the command (`--json`).
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { pathToFileURL } from 'node:url';
import { installPackages, isCheckout, projectRoot } from './packages.mjs';
import { refusalForRoot } from './refusal.mjs';
import { helperIfThere, whoMayChange } from './trust.mjs';

/** Node 20 cannot reserve memory for WebAssembly with 32 GB of address space; with 64 GB it can. */
const leastAddressSpace = 64e9;

/** A few times the size of one round's records. */
const leastFileSize = 100e6;

/** Node itself has some 25 open before a command begins. */
const leastOpenFiles = 128;

/** Returns a limit, in bytes if it is one of sizes; Infinity if unlimited. @param {string} name the limit's name in /proc/self/limits */
function limitOf(name) {
  try {
    const limit = new RegExp(`^Max ${name} +(\\d+)`, 'm').exec(
      readFileSync('/proc/self/limits', 'utf8'),
    );
    return limit === null ? Infinity : Number(limit[1]);
  } catch {
    return Infinity;
  }
}

/** Returns the first unmet requirement, as a line to print; undefined if all are met. */
function unsupported() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  // Same as `engines` in package.json, which npm only warns about.
  const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
  if (!fits) {
    return `bakeoff needs Node 20.19, 22.12 or newer, this is ${process.versions.node}: get one from https://nodejs.org`;
  }
  if (process.platform !== 'linux')
    return `bakeoff measures on Linux only, this is ${process.platform}`;
  const limit = limitOf('address space');
  if (limit < leastAddressSpace) {
    return `the address space of a process is limited to ${(limit / 1e9).toFixed(1)} GB here, and Node reserves tens of GB without using them: lift it with ulimit -v unlimited`;
  }
  const fileSize = limitOf('file size');
  if (fileSize < leastFileSize)
    return `files may have ${fileSize} bytes here, and what a run records takes more: lift the limit with ulimit -f unlimited`;
  const openFiles = limitOf('open files');
  if (openFiles < leastOpenFiles)
    return `${openFiles} files may be open at a time here, and a command needs more: raise the limit with ulimit -n 1024`;
  const refusal = refusalForRoot(projectRoot);
  if (refusal !== undefined) return refusal;
  // Every process is started through these two programs. Busybox's versions lack some options.
  const [setpriv, taskset] = [helperIfThere('setpriv'), helperIfThere('taskset')];
  const isThere = setpriv !== undefined && taskset !== undefined;
  if (!isThere || !answers(setpriv, '--pdeathsig', 'TERM', '--', taskset, '--version'))
    return 'setpriv and taskset of util-linux are missing: install util-linux';
  try {
    // "/." makes the check fail for anything but a folder.
    accessSync(`${tmpdir()}/.`, constants.W_OK | constants.X_OK);
  } catch {
    return `no files can be written to ${tmpdir()}: make that folder, or name another one in TMPDIR`;
  }
  return unsafeTmpdir();
}

/** @param {string} program @param {string[]} words */
const answers = (program, ...words) => spawnSync(program, words).status === 0;

/** Returns why root's temporary files could be replaced by others. */
function unsafeTmpdir() {
  if (process.geteuid?.() !== 0) return undefined;
  const problem = whoMayChange(tmpdir());
  if (problem === undefined) return undefined;
  return `root's temporary files are not safe in ${tmpdir()}: ${problem}; name another folder in TMPDIR, or make one of root's sticky (chmod +t)`;
}

const compiledMain = `${projectRoot}dist/main.mjs`;

/** Returns the remedy if the script `prepare` did not run at installation; undefined if it did. */
function missing() {
  if (existsSync(compiledMain)) return undefined;
  return `bakeoff was installed without the script that makes its dist/ (--ignore-scripts): make it with node ${projectRoot}bin/compile.mjs`;
}

async function main() {
  const problem = unsupported();
  if (problem !== undefined) {
    console.error(problem);
    return 1;
  }
  const words = process.argv.slice(2);
  const mayInstall = !words.includes('--no-install') && process.env.BAKEOFF_INSTALL !== 'no';
  const refusal = isCheckout ? await installPackages(mayInstall) : missing();
  if (refusal !== undefined) {
    console.error(refusal);
    return 1;
  }
  const file = isCheckout
    ? await (await import('./compile.mjs')).compiledCommands(projectRoot)
    : compiledMain;
  const commands = await import(pathToFileURL(file).href);
  return commands.main(words);
}

/** @param {string | undefined} code of a system error */
function remedyFor(code) {
  if (!isCheckout) return 'install server-bakeoff anew, e.g. npm ci';
  if (code === 'EACCES' || code === 'EROFS')
    return 'dist/ is compiled from the sources: start a command as a user who may write it';
  return 'remove node_modules and start again';
}

// If the event loop runs empty before main has finished, the command has failed.
process.exitCode = 1;
main().then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error) => {
    if (process.env.BAKEOFF_DEBUG === '1') throw error;
    const [line] = String(error?.message ?? error).split('\n');
    console.error(
      `bakeoff cannot start: ${line} (${remedyFor(error?.code)}; BAKEOFF_DEBUG=1 shows where)`,
    );
    process.exitCode = 1;
  },
);
