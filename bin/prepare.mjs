// What npm runs after `npm ci` in a checkout, and before it packs one: makes dist/, the commands and the types of the package.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { compiledCommands } from './compile.mjs';
import { installPackages, projectRoot } from './packages.mjs';

// A project that depends on a folder has npm run this there, whatever is installed there.
const refusal = existsSync(`${projectRoot}node_modules/typescript`)
  ? undefined
  : await installPackages();
if (refusal !== undefined) {
  console.error(refusal);
  process.exit(1);
}
// What is packed has no parts of an earlier state.
rmSync(`${projectRoot}dist/state`, { force: true });
await compiledCommands(projectRoot, 0);
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
// A declaration itself, which tsc does not write.
copyFileSync(`${projectRoot}lib/k6/loadgen.d.ts`, `${types}/lib/k6/loadgen.d.ts`);
