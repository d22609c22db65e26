// What checks the sources: format, lint, types, and Go's tests. Each is a program of its own, whose words are printed as they are.
import { dirname, join } from 'node:path';
import { run, type Finished } from '../lib/process.ts';
import { findGo } from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { ensureTools } from '../lib/setup/tools.ts';
import { givingWay } from './fixtures/giving-way.ts';
import { quickly, ranGo, withoutK6 } from './go.ts';

/** The Go module of the known servers. */
const serverSources = join(projectRoot, 'lib/features/calibrate/server');

interface Check {
  name: string;
  /** Whether it is in `npm test`, in `npm run test:all`, or in both (undefined). */
  only?: 'usual' | 'rare';
  check(): Promise<Finished>;
}

/** A program of node_modules. */
const node = (name: string, program: string, ...args: string[]): Check => ({
  name,
  check: () =>
    run({
      command: process.execPath,
      args: [`node_modules/${program}`, ...args],
      cwd: projectRoot,
      ...givingWay,
    }),
});

const linter = (name: string, ...args: string[]): Check => ({
  name,
  only: 'rare',
  check: () => ranGo(['tool', '-modfile=../test/linters/go.mod', name, ...args], quickly),
});

/** gofmt prints the names of files whose format is another, and ends with 0. */
async function gofmt(): Promise<Finished> {
  const machine = thisMachine();
  const command = join(dirname((await findGo(machine)).binary), 'gofmt');
  const args = ['-l', '.', serverSources];
  const { code, ...others } = await run({ command, args, cwd: machine.k6Sources });
  return { ...others, code: others.stdout === '' ? code : 1 };
}

/** The engine's tests with the race detector. Those that fail run again: beside others, the cores may be away for longer than a test tolerates. */
async function raced(): Promise<Finished> {
  const { gcc } = await ensureTools(['gcc']);
  const env = { CGO_ENABLED: '1', CC: gcc, GOGC: '100' };
  const test = (...args: string[]) =>
    ranGo(['test', '-vet=off', '-race', ...args, './engine'], { env });
  const first = await test('-timeout=10m');
  const failed = [...first.stdout.matchAll(/^--- FAIL: (\w+)/gm)].map(([, name]) => name);
  if (failed.length === 0 || /DATA RACE/.test(first.stdout + first.stderr)) return first;
  const again = await test('-run', `^(${failed.join('|')})$`);
  return { ...again, stdout: first.stdout + again.stdout };
}

const checks: readonly Check[] = [
  {
    name: 'tests of the engine',
    only: 'usual',
    check: () => ranGo(['test', '-vet=off', './engine']),
  },
  { name: 'tests of the engine, with the race detector', only: 'rare', check: raced },
  {
    name: 'other tests in Go',
    // go test would vet again, and build all of k6 for that.
    check: () => ranGo(['test', '-vet=off', '.', './cmd/...', './internal/...', './link']),
  },
  {
    name: 'tests of the known servers',
    check: () => ranGo(['-C', serverSources, 'test', '-vet=off', '.']),
  },
  { name: 'gofmt', check: gofmt },
  { name: 'go vet', check: () => ranGo(['vet', ...withoutK6], quickly) },
  {
    name: 'go vet of the known servers',
    check: () => ranGo(['-C', serverSources, 'vet', '.'], quickly),
  },
  linter('staticcheck', ...withoutK6),
  // It would also run linters for scripts if they are on PATH.
  linter('actionlint', '-shellcheck=', '-pyflakes='),
  node('format', 'prettier/bin/prettier.cjs', '--check', '--cache', '**/*.{ts,mjs,js}'),
  node('lint', 'oxlint/bin/oxlint'),
  node(
    'types',
    'typescript/bin/tsc',
    ...'--noEmit --incremental --tsBuildInfoFile node_modules/.cache/types.json'.split(' '),
  ),
  // The plots run in a browser.
  node('types of the plots', 'typescript/bin/tsc', '--noEmit', '-p', 'lib/report/html/plots'),
];

/** Runs the checks, one after the other, and prints what those that fail have printed. Returns whether none failed. */
export async function passChecks(only: 'usual' | 'rare'): Promise<boolean> {
  let passed = true;
  for (const { name, check } of checks.filter((each) => (each.only ?? only) === only)) {
    const startedAt = performance.now();
    const { code, stdout, stderr } = await check();
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    passed &&= code === 0;
    const words = code === 0 ? `passed, ${seconds} s` : `FAILED\n${stdout}${stderr}`;
    console.log(`${name}: ${words}`);
  }
  return passed;
}
