// Whether root may run the bakeoff of a folder: whoever else may change its code, or what npm and Node read beside it, would become root.
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isShared, problemOf, problemOfLists, whoMayChange } from './trust.mjs';

/** npm and Node look for these in all parent folders. */
const readInParents = ['node_modules', 'package.json', '.npmrc'];

/**
 * Says in one line why root must not run the bakeoff of this folder; undefined if it may, and for other users.
 * @param {string} projectRoot
 * @param {boolean} usesAll whether packages are loaded that commands do not load, as in tests
 * @returns {string | undefined}
 */
export function refusalForRoot(projectRoot, usesAll = false) {
  if (process.geteuid?.() !== 0) return undefined;
  const root = realpathSync(projectRoot);
  const refusal = (problem, remedy) =>
    `root does not run bakeoff in ${root}: ${problem}; ${remedy}, or start it as another user`;
  const becomesRoot = (problem) => `${problem}, and could so become root`;
  const above = whoMayChange(dirname(root));
  if (above !== undefined)
    return refusal(
      becomesRoot(above),
      'move bakeoff, or close what is named (chown root, chmod go-w)',
    );
  const below = problemBelow(root, usesAll);
  if (below !== undefined)
    return refusal(
      becomesRoot(below),
      `close it with chown -R root ${root} and chmod -R go-w ${root} (if it is behind a link, that place)`,
    );
  const beside = problemOfDependencies(root);
  if (beside !== undefined)
    return refusal(
      becomesRoot(beside),
      'install server-bakeoff as root, in a folder of its own (npm install)',
    );
  const read = problemInParents(root);
  if (read === undefined) return undefined;
  return refusal(`${read}, and npm and Node read it too`, 'remove it, or move bakeoff');
}

/**
 * Says whose file npm or Node would read in a folder above this place. @param {string} root @returns {string | undefined}
 */
export function problemInParents(root) {
  for (let folder = dirname(root); ; folder = dirname(folder)) {
    const inShared = isShared(lstatSync(folder));
    for (const name of readInParents) {
      const place = join(folder, name);
      const stats = lstatSync(place, { throwIfNoEntry: false });
      const problem = stats && problemOf(place, stats, inShared);
      if (problem !== undefined) return problem;
    }
    if (folder === dirname(folder)) return undefined;
  }
}

/**
 * Looks at the packages that a package loads, with theirs: npm puts them beside it in another project's node_modules, whose other packages
 * are not bakeoff's. @param {string} root @returns {string | undefined}
 */
function problemOfDependencies(root) {
  // A checkout's packages are below it.
  if (basename(dirname(root)) !== 'node_modules') return undefined;
  const folders = new Set([root]);
  // The loop also visits the folders that it adds.
  for (const folder of folders)
    for (const place of dependenciesOf(folder)) {
      const real = realpathSync.native(place);
      if (folders.has(real)) continue;
      folders.add(real);
      const problem = whoMayChange(place) ?? problemBelow(real);
      if (problem !== undefined) return problem;
    }
  return undefined;
}

/** The folders of a package's dependencies, as Node finds them. @param {string} folder of the package */
function dependenciesOf(folder) {
  const file = join(folder, 'package.json');
  if (!existsSync(file)) return [];
  const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(
    readFileSync(file, 'utf8'),
  );
  const names = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  return names.flatMap((name) => {
    for (let above = folder; ; above = dirname(above)) {
      const place = `${above}/node_modules/${name}`;
      if (basename(above) !== 'node_modules' && existsSync(place)) return [place];
      if (above === dirname(above)) return [];
    }
  });
}

/** Folders of a checkout that have no code. */
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

/** The packages that every command loads or runs; others serve tests, or the pages that a browser shows. */
const loaded = /\/node_modules\/(?:@?esbuild|fastest-levenshtein|valibot|yaml)(?:\/|$)/;

/**
 * Looks at all folders and files with code, also behind links. Files in packages that no command loads are left out: thousands would take
 * a tenth of a second. @param {string} root @param {boolean} usesAll @returns {string | undefined}
 */
function problemBelow(root, usesAll = false) {
  const packages = `${root}/node_modules`;
  const left = [root];
  /** Folders behind links, whose links may lead back. */
  const followed = new Set();
  // git's settings name programs that it runs. In a work tree .git is a file.
  const settings = `${root}/.git/config`;
  if (existsSync(settings)) left.push(settings);
  /** @type {string[]} */
  const mayHaveLists = [];
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    const stats = lstatSync(place, { throwIfNoEntry: false });
    // Another command may remove its temporary files meanwhile.
    if (stats === undefined) continue;
    const isLink = stats.isSymbolicLink() && existsSync(place);
    const problem = isLink ? whoMayChange(place) : problemOf(place, stats, false, mayHaveLists);
    if (problem !== undefined) return problem;
    const hasOthersFiles = !usesAll && place.startsWith(`${packages}/`) && !loaded.test(place);
    if (isLink) {
      const real = realpathSync(place);
      if (hasOthersFiles || followed.has(real) || `${real}/`.startsWith(`${root}/`)) continue;
      followed.add(real);
    }
    const behind = isLink ? statSync(place, { throwIfNoEntry: false }) : stats;
    if (behind?.isDirectory() !== true) continue;
    for (const entry of entriesOf(place)) {
      const isLeftOut = place === root && withoutCode.has(entry.name);
      if (!isLeftOut && !(hasOthersFiles && entry.isFile())) left.push(`${place}/${entry.name}`);
    }
  }
  return problemOfLists(mayHaveLists);
}
