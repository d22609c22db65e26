// npm test: vitest, and beside it the checks of the sources. With --rare also what takes long. Other words go to vitest, which then runs alone.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { passChecks } from './checks.ts';

const words = process.argv.slice(2);
const isRare = words[0] === '--rare';
const more = words.slice(Number(isRare));
const projects = isRare ? [] : ['--project', '!rare*'];
const vitest = spawn(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', ...projects, ...more],
  { stdio: 'inherit' },
);
const [[code], passed] = await Promise.all([
  once(vitest, 'exit') as Promise<[number | null]>,
  more.length > 0 || passChecks(isRare ? 'rare' : 'usual'),
]);
if (!passed) console.log('A check of the sources failed: its words are above.');
process.exitCode = code === 0 && passed ? 0 : 1;
