// The npm script `prepare`, which runs after `npm ci` and before `npm pack`: writes dist/, the compiled commands and the
// package's types.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { compiledCommands } from './compile.mjs';
import { installPackages, projectRoot } from './packages.mjs';
import { refusalForRoot } from './refusal.mjs';

// If a project depends on this folder (file:), npm runs this script without installing the folder's packages.
const refusal =
  refusalForRoot(projectRoot, true) ??
  (existsSync(`${projectRoot}node_modules/typescript`) ? undefined : await installPackages());
if (refusal !== undefined) {
  console.error(refusal);
  process.exit(1);
}
// Compile anew, so that a package has no chunks of an earlier compilation. Otherwise they stay: a running command may still load them.
const isPacked = ['pack', 'publish'].includes(process.env.npm_command ?? '');
rmSync(`${projectRoot}dist/state`, { force: true });
await compiledCommands(projectRoot, isPacked ? 0 : undefined);
const types = `${projectRoot}dist/types`;
rmSync(types, { recursive: true, force: true });
execFileSync(
  process.execPath,
  [
    `${projectRoot}node_modules/typescript/bin/tsc`,
    '--project',
    `${projectRoot}tsconfig.types.json`,
  ],
  { stdio: 'inherit' },
);
// tsc does not copy hand-written declarations.
copyFileSync(`${projectRoot}lib/k6/loadgen.d.ts`, `${types}/lib/k6/loadgen.d.ts`);
