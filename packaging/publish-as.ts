// npm run publish-as -- github.com/OWNER/REPO: changes the repository's address in all tracked files.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { helper } from '../bin/trust.mjs';
import { UserError, usageError } from '../lib/errors.ts';
import { findGo } from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';

/** Stricter than GitHub's rule: the address must also be valid as a Go module path and, in lower case, as an image name. */
const addressForm = /^github\.com\/[a-z\d]+(-[a-z\d]+)*\/(?!.*\.git$)[a-z\d]+([._-][a-z\d]+)*$/i;

const git = (...args: string[]): string =>
  execFileSync(helper('git'), args, { cwd: projectRoot, encoding: 'utf8' }).trimEnd();

/** The place in the README for the `git clone` line, which needs the real address. */
const cloneMark = '<!-- publish-as: git clone -->';

/** The address without its host. */
const shortOf = (address: string): string => address.slice(address.indexOf('/') + 1);

/** The forms of the address in files: in links and Go import paths, as an action with a tag, as an image with a version. */
function namesOf(address: string): { name: string; pattern: RegExp }[] {
  const short = shortOf(address);
  return [
    { name: address, end: '(?![\\w-]|\\.(?!git\\b)\\w)' },
    { name: short, end: '(?=@v\\d)' },
    { name: short.toLowerCase(), end: '(?=:\\d+\\.\\d)' },
  ].map(({ name, end }) => ({
    name,
    pattern: new RegExp(`(?<![\\w.-])${name.replaceAll('.', '\\.')}${end}`, 'g'),
  }));
}

/**
 * Replaces the present address, which is read from go.mod.
 * @returns the changed files, from the project's root; empty if the address is the present one
 * @throws UserError for an invalid address, uncommitted changes, or an address that files already name as another project's
 */
async function publishAs(address: string): Promise<string[]> {
  if (!addressForm.test(address))
    throw usageError(`"${address}" is no address: npm run publish-as -- github.com/OWNER/REPO`);
  const goMod = readFileSync(join(projectRoot, 'xk6-loadgen/go.mod'), 'utf8');
  const present = /^module (.*)\/xk6-loadgen(?:\/v\d+)?$/m.exec(goMod)?.[1] as string;
  if (present === address) return [];
  if (git('status', '--porcelain') !== '')
    throw usageError('there are uncommitted changes: commit or stash them');
  const gofmt = join(dirname((await findGo(thisMachine())).binary), 'gofmt');
  const [before, after] = [namesOf(present), namesOf(address)];
  const naming = git('grep', '-iIlF', '-e', shortOf(present), '-e', shortOf(address)).split('\n');
  const files = [...new Set([...naming, 'README.md'])].map((file) => ({
    file,
    text: readFileSync(join(projectRoot, file), 'utf8'),
  }));
  const other = files.find(({ text }) => after.some(({ pattern }) => text.search(pattern) >= 0));
  if (other !== undefined)
    throw usageError(`${address} is another project, which ${other.file} names`);
  const changed = files.flatMap(({ file, text }) => {
    const clone = ` (\`git clone https://${address}.git\`)`;
    const renamed = before.reduce(
      (result, { pattern }, index) => result.replace(pattern, after[index]?.name ?? ''),
      file === 'README.md' ? text.replace(cloneMark, clone) : text,
    );
    if (renamed === text) return [];
    writeFileSync(join(projectRoot, file), renamed);
    return file;
  });
  // The new paths may sort differently, so gofmt reorders the imports.
  const ofGo = changed.filter((file) => file.endsWith('.go'));
  execFileSync(gofmt, ['-w', ...ofGo], { cwd: projectRoot });
  return changed;
}

await publishAs(process.argv[2] ?? '').then(
  (changed) =>
    console.log(
      changed.length === 0
        ? 'nothing changed: this is the address already'
        : `${changed.length} files changed: see git diff, then commit`,
    ),
  (error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    console.error(error.message);
    process.exitCode = error.exitCode;
  },
);
