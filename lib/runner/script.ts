// Compiles the k6 script into the one file that k6 runs.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = fileURLToPath(new URL('../k6/main.ts', import.meta.url));

const banner = `// Written by bakeoff; needs a k6 with the module k6/x/loadgen, and a server at the address in load.json. By hand:
// BAKEOFF_LOAD="$(cat round-1/k6-1/load.json)" k6 run script.js
// Credentials are not kept: where load.json has *** put them in.`;

/** Writes lib/k6/main.ts with all that it imports, except for k6's own modules, to `file`. Throws the file system's error. */
export async function compileScript(file: string): Promise<void> {
  const {
    outputFiles: [script],
  } = await build({
    entryPoints: [source],
    // Written below: esbuild would wrap what goes wrong into several lines of its own.
    write: false,
    bundle: true,
    platform: 'neutral',
    format: 'esm',
    target: 'es2023',
    external: ['k6', 'k6/*'],
    banner: { js: banner },
    logLevel: 'silent',
  });
  await writeFile(file, script?.contents ?? '');
}
