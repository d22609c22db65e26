// Loads scenarios' files as they are now: TypeScript or not, a person's own among them.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type BuildFailure, type Plugin } from 'esbuild';
import { nodeModules } from '../../bin/bundle.mjs';
import { inTemporaryFolder } from '../folders.ts';
import { projectRoot } from '../setup/paths.ts';

/** What the files export. Throws Error with one line for what cannot be compiled, or as a module throws it. */
export async function loadModules(files: readonly string[]): Promise<unknown[]> {
  return inTemporaryFolder('bakeoff-scenario-', async (folder) => {
    const options = nodeModules(folder);
    const entryPoints = files.map((file, index) => ({ in: file, out: String(index) }));
    await build({ ...options, entryPoints, plugins: [packages, ...options.plugins] }).catch(
      ({ errors: [first] }: BuildFailure) => {
        throw new Error(
          first === undefined
            ? 'it cannot be compiled'
            : `${first.text}${first.location === null ? '' : ` (line ${first.location.line})`}`,
        );
      },
    );
    return Promise.all(
      files.map(
        (_, index) =>
          import(pathToFileURL(path.join(folder, `${index}.mjs`)).href) as Promise<unknown>,
      ),
    );
  });
}

/** Our own is the one that runs, whether the file's project has it or not; others are where that project has them. */
const packages: Plugin = {
  name: 'packages',
  setup(builder) {
    builder.onResolve({ filter: /^server-bakeoff$/ }, () => ({
      path: path.join(projectRoot, 'lib/index.ts'),
    }));
    builder.onResolve(
      { filter: /^[^./]/ },
      async ({ path: name, kind, importer, resolveDir, pluginData }) => {
        if (pluginData === resolved || kind === 'entry-point') return undefined;
        const found = await builder.resolve(name, {
          kind,
          importer,
          resolveDir,
          pluginData: resolved,
        });
        if (found.external || !/\/node_modules\//.test(found.path)) return found;
        return {
          path: kind === 'require-call' ? found.path : pathToFileURL(found.path).href,
          external: true,
        };
      },
    );
  },
};

/** Marks what is asked again. */
const resolved = Symbol('resolved');
