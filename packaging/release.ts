// npm run release -- --dry-run: builds the files of a release in release/. The build is reproducible: the same commit gives the
// same bytes.
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError, usageError } from '../lib/errors.ts';
import { inTemporaryFolder } from '../lib/files.ts';
import {
  buildFlags,
  compileK6,
  goCompiler,
  goEnvironment,
  hashOfSources,
  k6Package,
  sourcesFile,
  writeSizes,
} from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { bill, modulesOf, noticesOf, written } from './contents.ts';

/** Architectures: Node's name and Go's. */
const architectures = { x64: 'amd64', arm64: 'arm64' } as const;
export type Architecture = keyof typeof architectures;

interface Manifest {
  version: string;
  [field: string]: unknown;
}

const sources = join(projectRoot, 'xk6-loadgen');
const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

/** Packs a folder into `into` and returns the file name. npm sets the same time for all packed files. */
const packed = (folder: string, into: string, ...flags: string[]): string =>
  written('npm', ['pack', '--silent', '--pack-destination', into, ...flags], folder)
    .split('\n')
    .at(-1) as string;

/**
 * Builds the npm packages, the image's build context, the bill of materials (SPDX), release notes and checksums.
 * @param into the folder, which is emptied
 * @param built the architectures for which k6 is built
 * @returns the file names in `into`
 * @throws UserError if Go is missing, or k6 cannot be built
 */
export async function makeRelease(
  into: string,
  built: readonly Architecture[] = ['x64', 'arm64'],
): Promise<string[]> {
  const { version } = manifestOf(projectRoot);
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const go = await goCompiler(thisMachine());
  const programs: Parameters<typeof bill>[1][number][] = [];
  await inTemporaryFolder('bakeoff-release-', async (folder) => {
    for (const architecture of built) {
      const modules = await packK6(join(folder, architecture), into, architecture, version, go);
      programs.push({ name: k6Package(architecture), version, modules });
    }
    packProject(folder, into, built, version);
  });
  const committed = written('git', ['log', '-1', '--format=%cI'], projectRoot);
  const context = `bakeoff-${version}-image-context.tar.gz`;
  written('git', ['archive', '--format=tar.gz', '-o', join(into, context), 'HEAD'], projectRoot);
  writeFileSync(join(into, 'sbom.spdx.json'), bill(projectRoot, programs, new Date(committed)));
  writeFileSync(join(into, 'RELEASE_NOTES.md'), notes(version));
  const sums = readdirSync(into)
    .sort()
    .map((file) => `${sha256(readFileSync(join(into, file)))}  ${file}\n`);
  writeFileSync(join(into, 'SHA256SUMS'), sums.join(''));
  return readdirSync(into).sort();
}

const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

/** Builds k6 for an architecture and packs it with the notices of its modules. Returns those modules. */
async function packK6(
  programs: string,
  into: string,
  architecture: Architecture,
  version: string,
  go: string,
): Promise<ReturnType<typeof modulesOf>> {
  mkdirSync(programs, { recursive: true });
  const { homepage, bugs, repository } = manifestOf(projectRoot);
  const env = {
    ...goEnvironment(process.env),
    GOOS: 'linux',
    GOARCH: architectures[architecture],
    GOTMPDIR: tmpdir(),
  };
  const problem = await compileK6({ go, sources, programs, flags: buildFlags }, env);
  if (problem !== undefined)
    throw new UserError(`k6 could not be built for ${architecture}: ${problem}`);
  await writeSizes(programs);
  const modules = modulesOf(go, sources, env);
  const k6 = written(go, ['list', '-m', '-f', '{{.Dir}}', 'go.k6.io/k6/v2'], sources, env);
  cpSync(join(k6, 'LICENSE.md'), join(programs, 'LICENSE.md'));
  writeFileSync(join(programs, sourcesFile), `${await hashOfSources(sources)}\n`);
  writeFileSync(
    join(programs, 'modules.txt'),
    `${written(go, ['version', '-m', 'k6'], programs)}\n`,
  );
  writeFileSync(join(programs, 'NOTICES'), noticesOf(modules));
  writeFileSync(
    join(programs, 'README.md'),
    `# k6 with bakeoff's load engine, for Linux on ${architecture}

k6 is licensed under the GNU Affero General Public License 3.0 (LICENSE.md), and so is this program as a whole; NOTICES has the
licences of the modules in it. Its source: the modules in modules.txt with their versions, and \`xk6-loadgen/\` of the package
server-bakeoff ${version}, which also says how it is built
(\`go build ${buildFlags.map((flag) => (flag.includes(' ') ? `'${flag}'` : flag)).join(' ')} ./cmd/...\`).
`,
  );
  writeFileSync(
    join(programs, 'package.json'),
    `${JSON.stringify(
      {
        name: k6Package(architecture),
        version,
        description: `k6 with bakeoff's load engine, for Linux on ${architecture}`,
        license: 'AGPL-3.0-only',
        homepage,
        bugs,
        repository,
        os: ['linux'],
        cpu: [architecture],
        preferUnplugged: true,
      },
      null,
      2,
    )}\n`,
  );
  packed(programs, into);
  return modules;
}

/** Packs the project with the packages of k6 as optional dependencies, which a checkout builds instead. */
function packProject(
  folder: string,
  into: string,
  built: readonly Architecture[],
  version: string,
): void {
  written('tar', ['-xf', packed(projectRoot, folder)], folder);
  const unpacked = join(folder, 'package');
  const { private: _, devDependencies: __, scripts: ___, ...rest } = manifestOf(unpacked);
  const optionalDependencies = Object.fromEntries(
    built.map((architecture) => [k6Package(architecture), version]),
  );
  writeFileSync(
    join(unpacked, 'package.json'),
    `${JSON.stringify({ ...rest, optionalDependencies }, null, 2)}\n`,
  );
  packed(unpacked, into, '--ignore-scripts');
}

/** What CHANGELOG.md says of the version. @throws UserError if it says nothing */
function notes(version: string): string {
  const changes = readFileSync(join(projectRoot, 'CHANGELOG.md'), 'utf8');
  const [, text = ''] = changes.split(`\n## ${version}\n`);
  const section = text.split('\n## ')[0] as string;
  if (section.trim() === '') throw new UserError(`CHANGELOG.md has no "## ${version}"`);
  return `# ${version}\n\n${section.trim()}\n`;
}

async function main(args: readonly string[]): Promise<void> {
  if (args.length !== 1 || args[0] !== '--dry-run')
    throw usageError(
      'npm run release -- --dry-run makes what is published, in release/; npm publish takes each package of it',
    );
  const folder = join(projectRoot, 'release');
  for (const file of await makeRelease(folder)) console.log(`release/${file}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await main(process.argv.slice(2)).catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    console.error(error.message);
    process.exitCode = error.exitCode;
  });
