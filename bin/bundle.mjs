// How TypeScript becomes what Node runs: the commands, and scenarios.
import { readFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';

/**
 * Options for esbuild.
 * @param {string} outdir without symbolic links in its path
 * @returns {import('esbuild').BuildOptions & { plugins: import('esbuild').Plugin[] }}
 */
export function nodeModules(outdir) {
  return {
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'silent',
    // What is CommonJS asks for other modules by this name.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; import { fileURLToPath as pathOf } from 'node:url'; const bundleUrl = import.meta.url, require = requireOf(bundleUrl);",
    },
    // Files are found from where the source is, and that from here, since the whole may be moved.
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
