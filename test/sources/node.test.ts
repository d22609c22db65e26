// Programs of node_modules that only read the sources.
import { expect, test } from 'vitest';
import { run } from '../../lib/process.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { givingWay } from '../fixtures/giving-way.ts';

test.each([
  ['format', 'prettier/bin/prettier.cjs', '--check', '--cache', '**/*.{ts,mjs,js}'],
  ['lint', 'oxlint/bin/oxlint'],
  [
    'types',
    'typescript/bin/tsc',
    '--noEmit',
    '--incremental',
    '--tsBuildInfoFile',
    'node_modules/.cache/types.json',
  ],
  // The plots run in a browser.
  ['types of the plots', 'typescript/bin/tsc', '--noEmit', '--project', 'lib/report/html/plots'],
])('%s', async (_, program, ...args) => {
  const { code, stdout, stderr } = await run({
    command: process.execPath,
    args: [`node_modules/${program}`, ...args],
    cwd: projectRoot,
    ...givingWay,
  });
  expect(code, stdout + stderr).toBe(0);
});
