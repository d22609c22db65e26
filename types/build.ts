// Writes types/**/*.d.ts, what editors and tsc read of the package: `npm run -s types`. tsc in a project of somebody's own
// would check our sources by that project's rules, so declarations are made of them. They are committed, since a package
// that is installed by path or git is not built; a test fails when one is stale.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { projectRoot } from '../lib/setup/paths.ts';

/** What package.json's `exports` name. The second is a declaration itself, which tsc does not write. */
const entries = ['index.d.ts', 'k6/loadgen.d.ts'];

/** The text of each generated file, by its name in types/. Throws an Error with what tsc says when lib/ has type errors. */
export async function declarations(): Promise<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'bakeoff-types-'));
  try {
    const lib = join(projectRoot, 'lib');
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({
      extends: join(projectRoot, 'tsconfig.json'),
      compilerOptions: {
        noEmit: false, declaration: true, emitDeclarationOnly: true, stripInternal: true,
        rootDir: lib, outDir: join(folder, 'types'), typeRoots: [join(projectRoot, 'node_modules/@types')],
      },
      include: [],
      files: [join(lib, 'index.ts')],
    }));
    await promisify(execFile)(process.execPath, [join(projectRoot, 'node_modules/typescript/bin/tsc'), '-p', folder]).catch((error: Error & { stdout?: string }) => {
      throw new Error(error.stdout || error.message);
    });
    return reachable((file) => readFileSync(entries.indexOf(file) > 0 ? join(lib, file) : join(folder, 'types', file), 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Of what tsc writes, what the entries come to: it writes a file for everything that is imported, types or not. */
function reachable(read: (file: string) => string): Record<string, string> {
  const texts: Record<string, string> = {};
  const visit = (file: string): void => {
    if (file in texts) return;
    const text = read(file);
    texts[file] = `// Made of lib/${file.replace(/\.d\.ts$/, file === entries[1] ? '.d.ts' : '.ts')} by \`npm run types\`.\n${text}`;
    for (const [, imported] of text.matchAll(/(?:from |import\()'(\.[^']+)\.ts'/g)) visit(normalize(join(dirname(file), `${imported}.d.ts`)));
  };
  entries.forEach(visit);
  return texts;
}

/** The names of the declarations that are there. */
export function present(): string[] {
  return readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.d.ts'));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const texts = await declarations();
  for (const stale of present().filter((file) => !(file in texts))) rmSync(join(import.meta.dirname, stale));
  for (const [file, text] of Object.entries(texts)) {
    mkdirSync(join(import.meta.dirname, dirname(file)), { recursive: true });
    writeFileSync(join(import.meta.dirname, file), text);
    console.log(`types/${file}`);
  }
}
