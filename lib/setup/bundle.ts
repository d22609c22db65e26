// Bundles TypeScript into a file that needs only Node, for processes here and on other hosts.
import { fileURLToPath } from 'node:url';

/** @param values definitions of names that the source declares */
export async function bundledForNode(
  source: URL,
  values: Readonly<Record<string, unknown>>,
): Promise<string> {
  // Imported only here, because the bundled agent has no packages.
  const { build } = await import('esbuild');
  const {
    outputFiles: [bundled],
  } = await build({
    entryPoints: [fileURLToPath(source)],
    write: false,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['esbuild'],
    define: Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]),
    ),
    // CommonJS parts load Node's modules by this name.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'silent',
  });
  return bundled?.text ?? '';
}
