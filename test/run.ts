// npm test and npm run test:all: the project's checks. Missing tools are installed first.
import { basename, dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { UserError, unknownWord } from '../lib/errors.ts';
import { inTemporaryFolder } from '../lib/files.ts';
import { run, type RunOptions } from '../lib/process.ts';
import { underSignals } from '../lib/signals.ts';
import { findGo, goEnvironment, quickFlags } from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { ensureTools, type ToolName } from '../lib/setup/tools.ts';

/** `npm test` skips `rare`: slow checks of code that rarely changes. */
const parts = ['unit', 'integration', 'go', 'rare'] as const;
type Part = (typeof parts)[number];

/** Descriptions of the projects in vitest.config.ts. */
const titles = {
  unit: 'unit tests',
  integration: 'integration tests',
  runs: 'whole runs',
  rare: 'rare tests',
  alone: 'tests that need the machine to themselves',
  'rare-alone': 'rare tests that need the machine to themselves',
};

interface Shard {
  project: keyof typeof titles;
  /** For example 1/8; by default the whole project. */
  part?: string;
}

const integrationTools = ['k6', 'nginx', 'h2o', 'nghttpd', 'h2load', 'openssl', 'influxd'] as const;

/** Optional tools; without them some tests are skipped. */
const niceToHave: readonly (readonly [tools: readonly ToolName[], what: string])[] = [
  [['chromium'], 'the tests in a browser'],
  [['caddy', 'lighttpd', 'apache2', 'haproxy'], 'some of examples/any-server'],
  [['sshd'], 'the tests with other hosts'],
  [['perf'], 'the causes of verdicts'],
];

/** Programs of node_modules that only read the sources. The plots run in a browser, so they have a separate type check. */
const sourceChecks = [
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
  ['types of the plots', 'typescript/bin/tsc', '--noEmit', '--project', 'lib/report/html/plots'],
] as const;

interface Outcome {
  passed: number;
  failed: number;
  /** Printed if a test failed. */
  output: string;
}

/**
 * Runs the named parts (`all` for every part), by default all except `rare`. Returns 0 if all tests passed, otherwise 1. The last
 * line on stdout has the counts of all test runners. Throws UserError for an unknown part, Interrupted on Ctrl-C.
 */
export async function testCommand(args: readonly string[]): Promise<number> {
  const names = [...parts, 'all'] as const;
  const wrong = args.find((word) => !names.includes(word as Part));
  if (wrong !== undefined) throw unknownWord('part of the tests', wrong, names);
  const asked = args.length > 0 ? args : ['unit', 'integration', 'go'];
  const chosen = new Set(parts.filter((part) => asked.includes(part) || asked.includes('all')));
  const { passed, failed } = await underSignals(
    'ending the tests; again to end them at once',
    async (signal) => {
      const tests = new TestRun(signal);
      return tests.run(chosen).finally(() => tests.showFailures());
    },
  );
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

class TestRun {
  readonly #machine = thisMachine();
  readonly #signal: AbortSignal;
  readonly #total = { passed: 0, failed: 0 };
  readonly #failures: string[] = [];
  /** Checks waiting for a free lane. */
  readonly #waiting: (() => Promise<unknown>)[] = [];

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Most tests wait for servers or timers, so five lanes share two cores. */
  async run(chosen: ReadonlySet<Part>): Promise<{ passed: number; failed: number }> {
    const rare = chosen.has('rare');
    const tools = this.#tools(chosen);
    const go = tools.then(() => this.#go(chosen));
    const unit = chosen.has('unit') ? this.#sourcesAndUnit() : undefined;
    const wait = (all: Shard[]) =>
      this.#waiting.push(...all.map((shard) => () => this.#vitest(shard)));
    if (rare) wait(shards('rare', 16));
    if (chosen.has('integration')) wait([...shards('runs', 10), ...shards('integration', 8)]);
    const lanes = [go, unit, tools, tools, tools].map(async (before) => {
      await before;
      if (!(await tools)) return;
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) await next();
    });
    for (const lane of await Promise.allSettled(lanes))
      if (lane.status === 'rejected') throw lane.reason;
    if (!(await tools)) return this.#total;
    if (chosen.has('integration')) await this.#vitest({ project: 'alone' });
    if (rare) await this.#vitest({ project: 'rare-alone' });
    return this.#total;
  }

  /** Failures come last, so that they are easy to find in a long log. */
  showFailures(): void {
    for (const failure of this.#failures) this.#machine.progress.print(failure);
  }

  /** Returns whether tests with servers are selected and can run. */
  async #tools(chosen: ReadonlySet<Part>): Promise<boolean> {
    if (!chosen.has('integration') && !chosen.has('rare')) return false;
    const tools = await this.#had(() => ensureTools(integrationTools, this.#machine, this.#signal));
    for (const [names, without] of niceToHave)
      await this.#had(() => ensureTools(names, this.#machine, this.#signal), without);
    return tools !== undefined;
  }

  async #go(chosen: ReadonlySet<Part>): Promise<void> {
    const rare = chosen.has('rare');
    if (!chosen.has('go') && !rare) return;
    const compilers = await this.#had(async () => ({
      ...(await findGo(this.#machine)),
      ...(await ensureTools(['gcc'], this.#machine, this.#signal)),
    }));
    if (compilers === undefined) return;
    const { binary, gcc } = compilers;
    // The flags of the k6 build, so that linters and tests share what it has compiled: all of k6.
    const GOFLAGS = quickFlags.map((flag) => `'${flag}'`).join(' ');
    const env = { ...goEnvironment(this.#machine.env), GOFLAGS };
    const inModule = { command: binary, cwd: this.#machine.k6Sources, env };
    // The same flags as for the k6 build. Tests that measure memory do not use them.
    const quickly = { ...inModule, env: { ...env, GOGC: '400' } };
    // go test would vet again, and build all of k6 for that.
    const test = ['test', '-vet=off'];
    if (rare) {
      this.#waiting.unshift(() => this.#engine({ ...quickly, args: test }, gcc));
      // Tests run in isolated networks without outside access.
      await this.#command('modules of vegeta', {
        ...inModule,
        cwd: join(projectRoot, 'test/vegeta'),
        args: ['mod', 'download'],
      });
    }
    // For packages that import k6, linters would read all of k6, which takes minutes.
    const packages = ['./engine', './link', './internal/...', './cmd/delaylink'];
    if (chosen.has('go')) {
      const gofmt = { command: join(dirname(binary), 'gofmt'), args: ['-l', '.'] };
      await this.#command('gofmt', { ...inModule, ...gofmt }, true);
      await this.#command('go vet', { ...quickly, args: ['vet', ...packages] });
      // The engine's tests run with the race detector elsewhere.
      const tested = rare ? ['.', './link', './internal/...'] : ['./...'];
      await this.#goTest('go test', { ...inModule, args: [...test, '-v', ...tested] });
    }
    if (rare) {
      // Compiling these linters takes minutes. A separate module keeps their dependencies out of the k6 build.
      const linter = ['tool', '-modfile=../test/linters/go.mod'];
      const statics = [...linter, 'staticcheck', ...packages];
      await this.#command('staticcheck', { ...quickly, args: statics });
      // actionlint would also run linters for scripts if they are on PATH.
      const workflows = ['actionlint', '-shellcheck=', '-pyflakes='];
      await this.#command('actionlint', { ...inModule, args: [...linter, ...workflows] });
    }
  }

  /** The engine's tests with the race detector, then Go fuzzing of each of its targets and its parsers' for some seconds. */
  #engine(options: RunOptions, gcc: string): Promise<void> {
    return inTemporaryFolder('bakeoff-engine-', async (folder) => {
      const parsers = [
        'internal/h1',
        'internal/h2',
        'internal/h3',
        'internal/headers',
        'internal/tlsconn',
      ];
      const packages = ['engine', ...parsers];
      const build = {
        ...options,
        env: { ...options.env, CGO_ENABLED: '1', CC: gcc },
        args: [
          ...options.args,
          '-race',
          '-c',
          '-o',
          `${folder}/`,
          ...packages.map((p) => `./${p}`),
        ],
      };
      if (!(await this.#command('engine with the race detector', build))) return;
      const testsOf = (packagePath: string): Omit<RunOptions, 'args'> => ({
        // An interrupted Go fuzzer leaves 100 MB per worker in TMPDIR.
        env: { ...options.env, GOGC: '100', TMPDIR: folder },
        command: join(folder, `${basename(packagePath)}.test`),
        // Go stores a failing input in testdata as a test of the target.
        cwd: join(this.#machine.k6Sources, packagePath),
      });
      await this.#goTest('tests of the engine', {
        ...testsOf('engine'),
        args: ['-test.v', '-test.timeout=10m'],
      });
      for (const packagePath of packages) await this.#fuzz(testsOf(packagePath), folder);
    });
  }

  /** Go fuzzing of each target of a package's built tests for some seconds. Inputs that it finds are kept in the folder. */
  async #fuzz(test: Omit<RunOptions, 'args'>, folder: string): Promise<void> {
    const { stdout } = await this.#run({ ...test, args: ['-test.list', '^Fuzz'] });
    const time = ['-test.fuzztime=5s', '-test.fuzzminimizetime=2s'];
    for (const target of stdout.match(/^Fuzz\w*$/gm) ?? ['Fuzz'])
      await this.#check(`fuzz ${target}`, async () => {
        const fuzz = [`-test.fuzz=^${target}$`, `-test.fuzzcachedir=${folder}`, ...time];
        const ended = await this.#run({ ...test, args: ['-test.run=^$', ...fuzz] });
        const output = ended.stdout + ended.stderr;
        // Before 1.27, Go may report the end of -fuzztime as a failure if a worker is late (golang/go#75804).
        const endedLate = /^--- FAIL: \S+ \([\d.]+s\)\n +context deadline exceeded\n(FAIL|exit)/m;
        const passed = ended.code === 0 ? output.includes('fuzz: elapsed') : endedLate.test(output);
        return { ...oneCheck(passed), output };
      });
  }

  async #sourcesAndUnit(): Promise<void> {
    for (const [name, program, ...args] of sourceChecks)
      await this.#command(name, {
        command: process.execPath,
        args: [`node_modules/${program}`, ...args],
        cwd: projectRoot,
      });
    await this.#vitest({ project: 'unit' });
  }

  /** Returns undefined and prints a line if tools are missing: a failure, or with `without` the reason for a skip. */
  async #had<T>(get: () => Promise<T>, without?: string): Promise<T | undefined> {
    try {
      return await get();
    } catch (error) {
      this.#signal.throwIfAborted();
      if (!(error instanceof UserError)) throw error;
      if (without === undefined) this.#total.failed++;
      const skipped = without === undefined ? '' : `SKIPPED, ${without}: `;
      this.#machine.progress.print(skipped + error.message);
      return undefined;
    }
  }

  /** Returns whether all passed. */
  async #check(name: string, check: () => Promise<Outcome>): Promise<boolean> {
    this.#signal.throwIfAborted();
    const { passed, failed, output } = await this.#machine.progress.step(
      name,
      'running',
      async (step) => {
        const outcome = await check();
        step.result(`${outcome.passed} passed, ${outcome.failed} failed`);
        return outcome;
      },
    );
    this.#total.passed += passed;
    this.#total.failed += failed;
    for (const line of new Set(output.match(/SKIPPED[,:].*$/gm)))
      this.#machine.progress.print(line);
    if (failed > 0) this.#failures.push(`--- ${name}\n${output.trimEnd()}\n---`);
    return failed === 0;
  }

  /** Runs a command as a check: exit code 0, and on request no output on stdout. */
  #command(name: string, options: RunOptions, silent = false): Promise<boolean> {
    return this.#check(name, async () => {
      const { code, stdout, stderr } = await this.#run(options);
      return { ...oneCheck(code === 0 && !(silent && stdout !== '')), output: stdout + stderr };
    });
  }

  /** Counts top-level tests; subtests appear only if they do not pass. */
  #goTest(name: string, options: RunOptions): Promise<boolean> {
    return this.#check(name, async () => {
      const { code, stdout, stderr } = await this.#run(options);
      const count = (result: string) => stdout.split(`\n--- ${result}: `).length - 1;
      const output =
        stdout.replace(/^(=== (RUN|PAUSE|CONT|NAME)| *--- PASS:|ok ).*\n/gm, '') + stderr;
      return withExitCode({ passed: count('PASS'), failed: count('FAIL'), output }, code);
    });
  }

  #vitest({ project, part }: Shard): Promise<boolean> {
    const shard = part === undefined ? [] : [`--shard=${part}`];
    return this.#check([titles[project], part].join(' ').trimEnd(), async () => {
      const { code, stdout, stderr } = await this.#run({
        command: process.execPath,
        args: ['node_modules/vitest/vitest.mjs', 'run', '--project', project, ...shard],
        cwd: projectRoot,
      });
      const output = stripVTControlCharacters(stdout) + stderr;
      const count = (result: string) =>
        Number(new RegExp(`^ +Tests .*?(\\d+) ${result}`, 'm').exec(output)?.[1] ?? 0);
      return withExitCode({ passed: count('passed'), failed: count('failed'), output }, code);
    });
  }

  #run(options: RunOptions): ReturnType<typeof run> {
    return run({ ...options, signal: this.#signal });
  }
}

const shards = (project: Shard['project'], count: number): Shard[] =>
  Array.from({ length: count }, (_, index) => ({ project, part: `${index + 1}/${count}` }));

const oneCheck = (passed: boolean) => ({ passed: Number(passed), failed: Number(!passed) });

/** A runner that fails without a failed test (a crash, or no tests) counts as one failure. */
const withExitCode = (outcome: Outcome, code: number | null) =>
  code !== 0 && outcome.failed === 0 ? { ...outcome, failed: 1 } : outcome;
