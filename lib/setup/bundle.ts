// Makes one file of TypeScript, which needs Node alone: for processes of their own, here and on other machines.
import { fileURLToPath } from 'node:url';

/**
 * @param values what the source declares and does not define, by name
 */
export async function bundledForNode(
  source: URL,
  values: Readonly<Record<string, unknown>>,
): Promise<string> {
  // Not in what is made: the agent has no packages beside it, and makes nothing.
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
    // What is CommonJS in it asks for Node's own modules by this name.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'silent',
  });
  return bundled?.text ?? '';
}
