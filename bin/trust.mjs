// Which places this process may take programs, packages and builds from: those that nobody but root, its own user and the caller of sudo
// may change. Whoever else could put a program into such a place would run it as this process's user. The first start needs this before
// any package is installed, so this file is plain JavaScript.
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readFileSync,
  readlinkSync,
  statSync,
} from 'node:fs';
import { delimiter, dirname, isAbsolute, join, resolve, sep } from 'node:path';

/** The kernel's limit, see path_resolution(7). */
const mostLinks = 40;

/**
 * Yields every folder and link that the kernel passes on the way to a path, and what is there. It follows links.
 * @param {string} path
 * @throws the file system's error
 */
export function* onTheWay(path) {
  const left = resolve(path).split(sep).filter(Boolean);
  let place = '/';
  yield { place, stats: lstatSync(place) };
  for (let links = 0; left.length > 0;) {
    const next = join(place, left.shift() ?? '');
    const stats = lstatSync(next);
    yield { place: next, stats };
    if (!stats.isSymbolicLink()) {
      place = next;
      continue;
    }
    if (++links > mostLinks) throw new Error('there are too many links on the way to it');
    const target = readlinkSync(next);
    if (isAbsolute(target)) place = '/';
    left.unshift(...target.split(sep).filter((part) => part !== '' && part !== '.'));
  }
}

/** @param {string} file */
function linesOf(file) {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** The user who called sudo; undefined if nobody did. */
export function callerOfSudo() {
  const { SUDO_UID: uid = '', SUDO_GID: gid = '' } = process.env;
  if (process.geteuid?.() !== 0 || !/^\d+$/.test(uid) || !/^\d+$/.test(gid)) return undefined;
  return { uid: Number(uid), gid: Number(gid) };
}

/**
 * The caller of sudo, if this folder is theirs; else undefined. Throws the error of stat(2).
 * @param {string} folder
 */
export function callerOwning(folder) {
  const caller = callerOfSudo();
  return statSync(folder).uid === caller?.uid ? caller : undefined;
}

function trustedUsers() {
  const own = process.geteuid?.() ?? 0;
  const users = new Set([0, own]);
  // The caller of sudo may do all that root may.
  const caller = process.env.SUDO_UID ?? '';
  if (own === 0 && /^\d+$/.test(caller)) users.add(Number(caller));
  return users;
}

const trusted = trustedUsers();

/** In a user namespace, all users outside of it are shown as this one, root among them; undefined if there are none. */
const outsider = userOutside();

function userOutside() {
  const shown = Number(linesOf('/proc/sys/kernel/overflowuid')[0]);
  const isMapped = linesOf('/proc/self/uid_map').some((line) => {
    const [first = NaN, , count = 0] = line.trim().split(/\s+/).map(Number);
    return first <= shown && shown < first + count;
  });
  return isMapped ? undefined : shown;
}

/** @type {Map<number, boolean>} */
const privateGroups = new Map();

/** Returns whether a group has only trusted members. @param {number} gid */
function isPrivateGroup(gid) {
  const known = privateGroups.get(gid);
  if (known !== undefined) return known;
  const isPrivate = hasOnlyTrusted(gid);
  privateGroups.set(gid, isPrivate);
  return isPrivate;
}

/** The group of this user, or of root's caller. */
function ownGroup() {
  return process.geteuid?.() === 0 ? Number(process.env.SUDO_GID) : process.getegid?.();
}

/** @param {number} gid */
function hasOnlyTrusted(gid) {
  const users = linesOf('/etc/passwd').map((line) => line.split(':'));
  const groups = linesOf('/etc/group')
    .map((line) => line.split(':'))
    .filter(([, , id]) => Number(id) === gid);
  // A user who is listed elsewhere, or in a container nowhere, has a group of the same number to themselves.
  if (groups.length === 0) return trusted.has(gid) && gid === ownGroup();
  const named = groups.flatMap(([, , , names = '']) => names.split(',').filter(Boolean));
  const uidOf = (name) => Number(users.find(([user]) => user === name)?.[2]);
  const primary = users.filter(([, , , id]) => Number(id) === gid).map(([, , uid]) => Number(uid));
  const members = [...named.map(uidOf), ...primary];
  // A directory service may have members of a group that is empty here. The system's own groups, such as staff, have numbers below 100.
  if (members.length === 0) return gid < 100;
  return members.every((uid) => trusted.has(uid));
}

/** Returns whether others may make files in a sticky folder. @param {import('node:fs').Stats} stats of a folder */
export const isShared = ({ mode }) => (mode & 0o1000) !== 0 && (mode & 0o022) !== 0;

/** Node does not read access control lists. */
const lists = ['/usr/bin/ls', '/bin/ls', '/run/current-system/sw/bin/ls'].find((file) =>
  existsSync(file),
);

/**
 * Says which of these places has an access control list. With one, the mode's group bits are what it grants at most.
 * @param {string[]} places that their group may write to
 * @returns {string | undefined}
 * @throws the system's error if ls cannot be run
 */
export function problemOfLists(places) {
  if (lists === undefined || places.length === 0) return undefined;
  const { error, stdout } = spawnSync(lists, ['-ldUb', '--', ...places], {
    cwd: '/',
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  // ls writes a plus after the mode.
  const at = stdout.split('\n').findIndex((line) => line[10] === '+');
  return at < 0 ? undefined : `others may write to ${places[at]} by its access control list`;
}

/**
 * Says why somebody else could change what is there; undefined if nobody could. The folders above it are not looked at.
 * @param {string} place
 * @param {import('node:fs').Stats} stats
 * @param {boolean} inShared whether it is in a shared folder
 * @param {string[]} [mayHaveLists] gets the place if only an access control list could let others write to it; absent: that is looked at
 */
export function problemOf(place, stats, inShared = false, mayHaveLists) {
  const { uid, gid, mode } = stats;
  // The system's files belong to an outsider, and so does what other users put into a shared folder.
  const isOwnersOwn = trusted.has(uid) || (uid === outsider && !inShared);
  if (!isOwnersOwn) return `${place} belongs to user ${uid}`;
  // In a sticky folder nobody may replace files of others.
  if (stats.isSymbolicLink() || (stats.isDirectory() && (mode & 0o1000) !== 0)) return undefined;
  if ((mode & 0o002) !== 0) return `every user may write to ${place}`;
  if ((mode & 0o020) === 0) return undefined;
  if (!isPrivateGroup(gid)) return `the members of group ${gid} may write to ${place}`;
  if (mayHaveLists === undefined) return problemOfLists([place]);
  mayHaveLists.push(place);
  return undefined;
}

const missing = new Set(['ENOENT', 'ENOTDIR']);

/**
 * @param {string} path
 * @param {(folder: string, stats: import('node:fs').Stats) => string | undefined} [ifMissing] says what is wrong with the last folder
 *   that is there; absent: it throws the file system's error
 */
function problemOnTheWay(path, ifMissing) {
  let [folder, above] = ['/', lstatSync('/')];
  try {
    for (const { place, stats } of onTheWay(path)) {
      const problem = problemOf(place, stats, isShared(above));
      if (problem !== undefined) return problem;
      if (stats.isDirectory()) [folder, above] = [place, stats];
    }
  } catch (error) {
    if (ifMissing === undefined || !missing.has(error?.code)) throw error;
    return ifMissing(folder, above);
  }
  return undefined;
}

/** @param {string} folder @param {import('node:fs').Stats} stats */
const problemOfShared = (folder, stats) =>
  isShared(stats) ? `others may write to ${folder}` : undefined;

/**
 * Says why somebody other than root, this user and the caller of sudo could put something else at a path, such as "/x belongs to user
 * 1000". @returns {string | undefined} undefined if nobody could
 * @param {string} path @throws the file system's error if nothing is there
 */
export function whoMayChange(path) {
  return problemOnTheWay(path);
}

/**
 * The same for a path of which only the beginning may be there. In a shared folder others may make the rest first, so that who makes it
 * has to ask again. @param {string} path
 */
export function whoMayMake(path) {
  return problemOnTheWay(path, () => undefined);
}

/** The same for a path that is read if something is there: nobody else may make it either. @param {string} path */
export function whoMayPut(path) {
  return problemOnTheWay(path, problemOfShared);
}

/** The same for the files that a folder has or gets: in a sticky folder, others may make them first. @param {string} folder */
export function whoMayWrite(folder) {
  return whoMayChange(folder) ?? problemOfShared(folder, statSync(folder));
}

/** @param {string} path */
function isSafe(path) {
  try {
    return whoMayChange(path) === undefined;
  } catch {
    return false;
  }
}

/** @param {string} file */
function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

const systemFolders = [
  '/usr/bin',
  '/bin',
  '/usr/sbin',
  '/sbin',
  '/usr/local/bin',
  '/usr/local/sbin',
  // NixOS has nothing else.
  '/run/current-system/sw/bin',
].filter(isSafe);

/** A PATH of the system's folders, for shell scripts that root runs. */
export const systemPath = systemFolders.join(delimiter);

/**
 * Returns whether the programs of a folder in PATH are used only if nobody else may change them. npm puts folders of all parents into PATH.
 * Other folders are the user's choice, but not root's. @param {string} folder
 */
function isHeld(folder) {
  // This process is Node's own already.
  if (folder === dirname(process.execPath)) return false;
  return folder.endsWith('/node_modules/.bin') || process.geteuid?.() === 0;
}

/** @param {string} folder */
function isLeftOut(folder) {
  if (!isHeld(folder)) return false;
  try {
    return whoMayPut(folder) !== undefined;
  } catch {
    // Links in a circle, or a folder that is closed to this user.
    return true;
  }
}

/**
 * Returns whether a program in a folder of PATH is used. A file of an unknown user counts as one of others: archives have the numbers of
 * users that are yet to come. @param {string} program
 */
export function mayRun(program) {
  return isProgram(program) && (!isHeld(dirname(program)) || isSafe(program));
}

/**
 * Splits a PATH into the absolute folders whose programs are run, and those that other users may change.
 * @param {string | undefined} path
 */
export function foldersOf(path) {
  const kept = [];
  const leftOut = [];
  for (const folder of (path ?? '').split(delimiter)) {
    const isKept = isAbsolute(folder) && !isLeftOut(folder);
    if (isKept) kept.push(folder);
    else if (isAbsolute(folder)) leftOut.push(folder);
  }
  return { kept, leftOut };
}

/** The path of a program that the user has on PATH; undefined if it is not there. @param {string} name */
export function onPath(name) {
  return foldersOf(process.env.PATH)
    .kept.map((folder) => join(folder, name))
    .find(mayRun);
}

/** @type {Map<string, string>} */
const helpers = new Map();

/**
 * Returns the path of one of the system's programs, such as setpriv. It is looked for once, in folders that nobody else may change.
 * @param {string} name
 * @throws Error if it is not there
 */
export function helper(name) {
  const path = helperIfThere(name);
  if (path === undefined) throw new Error(`${name} is missing in ${systemPath}: install it`);
  return path;
}

/** The same; undefined if it is not there. @param {string} name @returns {string | undefined} */
export function helperIfThere(name) {
  const known = helpers.get(name);
  if (known !== undefined) return known;
  const isUsable = (path) => isProgram(path) && isSafe(path);
  const path = systemFolders.map((folder) => join(folder, name)).find(isUsable) ?? onPath(name);
  if (path === undefined || !isSafe(path)) return undefined;
  helpers.set(name, path);
  return path;
}
