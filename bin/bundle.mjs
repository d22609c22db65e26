// Bundles TypeScript for Node: the commands, scenarios, and programs that run on this and other hosts.
import { readFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Options for esbuild, without which it reads what anybody put into the caller's folder or one above: a tsconfig.json or a manifest of
 * Yarn (.pnp.cjs), which lead imports to other code.
 */
export const withoutFound = { absWorkingDir: '/', tsconfigRaw: {} };

/** Names a project's sources in the comments of a bundle by their place in it. @param {string} text @param {string} projectRoot */
export const withShortNames = (text, projectRoot) =>
  text.replaceAll(`// ${projectRoot.replace(/^\/|\/$/g, '')}/`, '// ');

/** @satisfies {import('esbuild').BuildOptions} */
const forNode = {
  ...withoutFound,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  logLevel: 'silent',
  // CommonJS modules call `require`.
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; import { fileURLToPath as pathOf } from 'node:url'; const bundleUrl = import.meta.url, require = requireOf(bundleUrl);",
  },
};

/**
 * Bundles TypeScript into a text that needs only Node.
 * @param {URL} source
 * @param {Readonly<Record<string, unknown>>} values definitions of names that the source declares
 * @returns {Promise<string>}
 */
export async function bundledForNode(source, values) {
  // Imported only here, because the bundled agent has no packages.
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    ...forNode,
    entryPoints: [fileURLToPath(source)],
    write: false,
    minify: true,
    external: ['esbuild'],
    define: Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]),
    ),
  });
  return outputFiles[0].text;
}

/**
 * Options for esbuild.
 * @param {string} outdir without symbolic links in its path
 * @returns {import('esbuild').BuildOptions & { plugins: import('esbuild').Plugin[] }}
 */
export function nodeModules(outdir) {
  return {
    ...forNode,
    outdir,
    outExtension: { '.js': '.mjs' },
    splitting: true,
    // A source finds files relative to its own path. That path is computed relative to the bundle, because the project may be
    // moved.
    define: {
      'import.meta.url': 'sourceUrl',
      'import.meta.dirname': 'sourceFolder',
      __dirname: 'sourceFolder',
    },
    plugins: [
      {
        name: 'places',
        setup: (builder) =>
          builder.onLoad({ filter: /\.[cm]?[jt]s$/ }, ({ path }) => withPlace(path, outdir)),
      },
    ],
  };
}

function withPlace(path, outdir) {
  const text = readFileSync(path, 'utf8');
  if (!/import\.meta\.(?:url|dirname)|__dirname/.test(text)) return undefined;
  const url = (file) =>
    `new URL(${JSON.stringify(relative(outdir, file).split('/').map(encodeURIComponent).join('/'))}, bundleUrl)`;
  return {
    contents: `const sourceUrl = ${url(path)}.href, sourceFolder = pathOf(${url(dirname(path))});\n${text}`,
    loader: /\.[cm]?ts$/.test(path) ? 'ts' : 'js',
  };
}
