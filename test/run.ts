// npm test and npm run test:all: the checks of the project, on a machine that may have none of the tools yet.
import { dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { UserError, unknownWord } from '../lib/errors.ts';
import { inTemporaryFolder } from '../lib/files.ts';
import { underSignals, run, type RunOptions } from '../lib/process.ts';
import { findGo, goEnvironment } from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { ensureTools, type ToolName } from '../lib/setup/tools.ts';

/** `npm test` leaves out `rare`: slow checks of code that seldom changes. */
const parts = ['unit', 'integration', 'go', 'rare'] as const;
type Part = (typeof parts)[number];

/** What the projects of vitest.config.ts are. */
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
  /** Such as 1/8; absent: the whole project. */
  part?: string;
}

const integrationTools = ['k6', 'nginx', 'h2o', 'nghttpd', 'h2load', 'openssl', 'influxd'] as const;

/** Tools without which some tests are skipped. */
const niceToHave: readonly (readonly [tools: readonly ToolName[], what: string])[] = [
  [['chromium'], 'the tests in a browser'],
  [['caddy', 'lighttpd', 'apache2', 'haproxy'], 'some of examples/any-server'],
  [['sshd'], 'the tests with other hosts'],
  [['perf'], 'the causes of verdicts'],
];

/** Programs of node_modules that read the sources alone. The plots run in a browser and have other types. */
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
  /** Shown if a test failed. */
  output: string;
}

/**
 * Runs the parts that are named (`all` for each), by default all but `rare`. Returns 0 if all tests passed, 1 otherwise. The
 * last line on stdout has the counts of all test runners. Throws UserError for an unknown part, Interrupted on Ctrl-C.
 */
export async function testCommand(args: readonly string[]): Promise<number> {
  const words = [...parts, 'all'] as const;
  const wrong = args.find((word) => !words.includes(word as Part));
  if (wrong !== undefined) throw unknownWord('part of the tests', wrong, words);
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
  /** Checks that wait for a free lane. */
  readonly #waiting: (() => Promise<unknown>)[] = [];

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Most tests wait for servers and for time to pass, so five lanes share two cores. */
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

  /** Last, where a reader of a long log looks for them. */
  showFailures(): void {
    for (const failure of this.#failures) this.#machine.progress.print(failure);
  }

  /** Returns whether tests with servers are wanted and can run. */
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
    // The flags of the k6 build, so that linters and tests share what it has compiled.
    const GOFLAGS = '-trimpath -buildvcs=false';
    const env = { ...goEnvironment(this.#machine.env), GOFLAGS };
    const inModule = { command: binary, cwd: this.#machine.k6Sources, env };
    // As in the k6 build; tests measure memory, and do without.
    const quickly = { ...inModule, env: { ...env, GOGC: '400' } };
    // It would vet again, and build all of k6 for that.
    const test = ['test', '-vet=off'];
    if (rare) {
      this.#waiting.unshift(() => this.#engine({ ...quickly, args: test }, gcc));
      // Tests run in networks of their own, without a way out.
      await this.#command('modules of vegeta', {
        ...inModule,
        cwd: join(projectRoot, 'test/vegeta'),
        args: ['mod', 'download'],
      });
    }
    if (chosen.has('go')) {
      const gofmt = { command: join(dirname(binary), 'gofmt'), args: ['-l', '.'] };
      await this.#command('gofmt', { ...inModule, ...gofmt }, true);
      // Where k6 is imported, linters would first read all of k6, for minutes.
      const packages = ['./engine', './link', './internal/...', './cmd/delaylink'];
      await this.#command('go vet', { ...quickly, args: ['vet', ...packages] });
      // A module of its own, so that its dependencies are not those of the k6 build.
      const linter = ['tool', '-modfile=../test/linters/go.mod'];
      const statics = [...linter, 'staticcheck', ...packages];
      await this.#command('staticcheck', { ...quickly, args: statics });
      // It would also run linters of scripts if it found them.
      const workflows = ['actionlint', '-shellcheck=', '-pyflakes='];
      await this.#command('actionlint', { ...inModule, args: [...linter, ...workflows] });
      // The race detector runs the engine's tests anyway.
      const tested = rare ? ['.', './link', './internal/...'] : ['./...'];
      await this.#goTest('go test', { ...inModule, args: [...test, '-v', ...tested] });
    }
  }

  /** The engine's tests under the race detector, then Go's own fuzzing of each target for some seconds, by one build. */
  #engine(options: RunOptions, gcc: string): Promise<void> {
    return inTemporaryFolder('bakeoff-engine-', async (folder) => {
      const built = join(folder, 'engine.test');
      const build = {
        ...options,
        env: { ...options.env, CGO_ENABLED: '1', CC: gcc },
        args: [...options.args, '-race', '-c', '-o', built, './engine'],
      };
      if (!(await this.#command('engine with the race detector', build))) return;
      const test = {
        // Go leaves 100 MB for each worker in TMPDIR if it is ended.
        env: { ...options.env, GOGC: '100', TMPDIR: folder },
        command: built,
        // Go keeps an input that fails in testdata, as a test of its target.
        cwd: join(this.#machine.k6Sources, 'engine'),
      };
      await this.#goTest('tests of the engine', {
        ...test,
        args: ['-test.v', '-test.timeout=10m'],
      });
      const { stdout } = await this.#run({ ...test, args: ['-test.list', '^Fuzz'] });
      const time = ['-test.fuzztime=5s', '-test.fuzzminimizetime=2s'];
      for (const target of stdout.match(/^Fuzz\w*$/gm) ?? ['Fuzz'])
        await this.#check(`fuzz ${target}`, async () => {
          const fuzz = [`-test.fuzz=^${target}$`, `-test.fuzzcachedir=${folder}`, ...time];
          const args = ['-test.run=^$', ...fuzz];
          const ended = await this.#run({ ...test, args });
          const output = ended.stdout + ended.stderr;
          // Before 1.27 Go takes the end of -fuzztime for a failure if a worker is late to hear of it (golang/go#75804).
          const endedLate = /^--- FAIL: \S+ \([\d.]+s\)\n +context deadline exceeded\n(FAIL|exit)/m;
          const passed =
            ended.code === 0 ? output.includes('fuzz: elapsed') : endedLate.test(output);
          return { ...oneCheck(passed), output };
        });
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

  /** Returns undefined, with a line printed, if tools are missing: a failure, or with `without` the reason for a skip. */
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

  /** Runs a command that is one check: it ends with exit code 0, and if asked without a word on stdout. */
  #command(name: string, options: RunOptions, silent = false): Promise<boolean> {
    return this.#check(name, async () => {
      const { code, stdout, stderr } = await this.#run(options);
      return { ...oneCheck(code === 0 && !(silent && stdout !== '')), output: stdout + stderr };
    });
  }

  /** Counts top-level tests, and shows of the others only those that do not pass. */
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

/** A runner that fails without a failed test (it crashed, or found no tests) counts as one failure. */
const withExitCode = (outcome: Outcome, code: number | null) =>
  code !== 0 && outcome.failed === 0 ? { ...outcome, failed: 1 } : outcome;
