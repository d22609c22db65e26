// Which places this process may take programs, packages and builds from: those that nobody but root, its own user and the caller of sudo
// may change. Whoever else could put a program into such a place would run it as this process's user. The first start needs this before
// any package is installed, so this file is plain JavaScript.
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
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

function trustedUsers() {
  const own = process.geteuid?.() ?? 0;
  const users = new Set([0, own]);
  // The caller of sudo may do all that root may.
  const caller = process.env.SUDO_UID ?? '';
  if (own === 0 && /^\d+$/.test(caller)) users.add(Number(caller));
  // In a user namespace, the users outside of it are all shown as this one.
  const outside = Number(linesOf('/proc/sys/kernel/overflowuid')[0]);
  const isMapped = linesOf('/proc/self/uid_map').some((line) => {
    const [first = NaN, , count = 0] = line.trim().split(/\s+/).map(Number);
    return first <= outside && outside < first + count;
  });
  if (!isMapped) users.add(outside);
  return users;
}

const trusted = trustedUsers();

/** Whether a group has only trusted members. @param {number} gid */
function isPrivateGroup(gid) {
  if (gid === 0) return true;
  const users = linesOf('/etc/passwd').map((line) => line.split(':'));
  const groups = linesOf('/etc/group')
    .map((line) => line.split(':'))
    .filter(([, , id]) => Number(id) === gid);
  if (groups.length === 0) return false;
  const named = groups.flatMap(([, , , names = '']) => names.split(',').filter(Boolean));
  const uidOf = (name) => Number(users.find(([user]) => user === name)?.[2]);
  const primary = users.filter(([, , , id]) => Number(id) === gid).map(([, , uid]) => Number(uid));
  return [...named.map(uidOf), ...primary].every((uid) => trusted.has(uid));
}

/** @param {string} place @param {import('node:fs').Stats} stats */
function problemOf(place, stats) {
  const { uid, gid, mode } = stats;
  if (!trusted.has(uid)) return `${place} belongs to user ${uid}`;
  // In a sticky folder nobody may replace files of others.
  if (stats.isSymbolicLink() || (stats.isDirectory() && (mode & 0o1000) !== 0)) return undefined;
  if ((mode & 0o002) !== 0) return `every user may write to ${place}`;
  if ((mode & 0o020) !== 0 && !isPrivateGroup(gid))
    return `the members of group ${gid} may write to ${place}`;
  return undefined;
}

/**
 * Says why somebody other than root, this user and the caller of sudo could put something else at a path, such as "/x belongs to user
 * 1000". @returns {string | undefined} undefined if nobody could
 * @param {string} path @throws the file system's error if nothing is there
 */
export function whoMayChange(path) {
  for (const { place, stats } of onTheWay(path)) {
    const problem = problemOf(place, stats);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The same for a path of which only the beginning may be there. @param {string} path */
export function whoMayMake(path) {
  let existing = resolve(path);
  while (lstatSync(existing, { throwIfNoEntry: false }) === undefined) existing = dirname(existing);
  try {
    return whoMayChange(existing);
  } catch (error) {
    // A link of this user's whose target is missing.
    if (error?.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The same for the files that a folder has or gets: in a sticky folder, others may make them first. @param {string} folder */
export function whoMayWrite(folder) {
  const open = (statSync(folder).mode & 0o1022) > 0o1000;
  return whoMayChange(folder) ?? (open ? `others may write to ${folder}` : undefined);
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

/** Whether programs of a folder in PATH are not run. @param {string} folder */
function isLeftOut(folder) {
  // This process is Node's own already.
  if (folder === dirname(process.execPath)) return false;
  // npm puts those of all parent folders into PATH. Others are the user's choice, but not root's.
  const isNpms = folder.endsWith('/node_modules/.bin');
  return (isNpms || process.geteuid?.() === 0) && whoMayMake(folder) !== undefined;
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
    .find(isProgram);
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
  const own = systemFolders.map((folder) => join(folder, name)).find(isProgram);
  const path = own ?? onPath(name);
  if (path === undefined || !isSafe(path)) return undefined;
  helpers.set(name, path);
  return path;
}

/** npm and Node look for these in all parent folders. */
const readInParents = ['node_modules', 'package.json', '.npmrc'];

/**
 * Says in one line why root must not run the bakeoff of this folder; undefined if it may, and for other users.
 * @param {string} projectRoot
 * @returns {string | undefined}
 */
export function refusalForRoot(projectRoot) {
  if (process.geteuid?.() !== 0) return undefined;
  const root = realpathSync(projectRoot);
  const problem = whoMayChange(root) ?? problemBelow(root);
  if (problem !== undefined)
    return `root does not run bakeoff in ${root}: ${problem}, and could so become root; move it, or close it with chown -R root and chmod -R go-w, or start it as another user`;
  for (let folder = dirname(root); ; folder = dirname(folder)) {
    for (const name of readInParents) {
      const place = join(folder, name);
      const stats = lstatSync(place, { throwIfNoEntry: false });
      const open = stats && problemOf(place, stats);
      if (open !== undefined)
        return `root does not run bakeoff in ${root}: ${open}, and npm and Node read it too; remove it, or move bakeoff`;
    }
    if (folder === dirname(folder)) return undefined;
  }
}

/** Of a checkout's folders, these have no code. */
const withoutCode = new Set(['.git', '.bakeoff', 'results']);

/** @param {string} folder */
function entriesOf(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (error?.code === 'ENOENT') return [];
    throw error;
  }
}

/** Looks at all folders and files with code. @param {string} root @returns {string | undefined} */
function problemBelow(root) {
  const left = [root];
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    const stats = lstatSync(place, { throwIfNoEntry: false });
    // Another command may remove its temporary files meanwhile.
    if (stats === undefined) continue;
    // Also of what is behind a link, such as a node_modules elsewhere.
    const problem =
      stats.isSymbolicLink() && existsSync(place) ? whoMayChange(place) : problemOf(place, stats);
    if (problem !== undefined) return problem;
    if (!stats.isDirectory()) continue;
    // Thousands of files in packages would take a tenth of a second: npm makes them as it makes their folders.
    const isPackage = place.startsWith(join(root, 'node_modules/'));
    for (const entry of entriesOf(place)) {
      const isLeftOut = place === root && withoutCode.has(entry.name);
      if (!isLeftOut && !(isPackage && entry.isFile())) left.push(join(place, entry.name));
    }
  }
  return undefined;
}
