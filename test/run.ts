// npm test: all checks of the project, on a machine that may have none of the tools yet.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UserError } from '../lib/errors.ts';
import { inTemporaryFolder } from '../lib/folders.ts';
import { underSignals } from '../lib/interrupt.ts';
import { unknownWord } from '../lib/nearest.ts';
import { findGo, goEnvironment } from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { run, type RunOptions } from '../lib/setup/run.ts';
import { ensureTools, type ToolName } from '../lib/setup/tools.ts';
import {
  countGoTests,
  countVitest,
  skippedLines,
  type Counts,
  type Outcome,
  type VitestReport,
} from './counts.ts';
import { fuzz, fuzzTargets, type GoPackage } from './fuzz.ts';

const parts = ['unit', 'integration', 'go'] as const;
type Part = (typeof parts)[number];

/** The projects of vitest.config.ts. */
type Project = 'unit' | 'integration' | 'runs' | 'alone';

const integrationTools = ['k6', 'nginx', 'h2o', 'nghttpd', 'h2load', 'openssl', 'influxd'] as const;

/** Tools without which some tests are skipped. */
const niceToHave: readonly (readonly [tools: readonly ToolName[], what: string])[] = [
  [['chromium'], 'the tests in a browser'],
  [['caddy', 'lighttpd', 'apache2', 'haproxy'], 'some of examples/any-server'],
  [['sshd'], 'the tests with other hosts'],
];

/** The plots run in a browser and have other types. */
const typeProjects = [
  ['types', '.'],
  ['types of the plots', 'lib/report/html/plots'],
] as const;

/**
 * `npm test`, or some parts of it: `npm test -- unit go`. Returns 0 if all tests passed, 1 otherwise. The last line on
 * stdout has the counts of all test runners. Throws UserError for an unknown part, Interrupted on Ctrl-C.
 */
export async function testCommand(args: readonly string[]): Promise<number> {
  const wrong = args.find((word) => !parts.includes(word as Part));
  if (wrong !== undefined) throw unknownWord('part of the tests', wrong, parts);
  const chosen = new Set(args.length === 0 ? parts : (args as Part[]));
  const { passed, failed } = await underSignals(
    'ending the tests; again to end them at once',
    ({ signal }) => new TestRun(signal).run(chosen),
  );
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

class TestRun {
  readonly #machine = thisMachine();
  readonly #signal: AbortSignal;
  readonly #total: Counts = { passed: 0, failed: 0 };

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /**
   * The builds of k6 and of the Go tests keep the machine busy for long, so the tests that need no quiet run beside them in
   * three lanes. Whole runs come after them. Tests that judge speed come last.
   */
  async run(chosen: ReadonlySet<Part>): Promise<Counts> {
    const tools = this.#tools(chosen);
    const integration = this.#shared('integration', 'integration tests', 8);
    const lanes = [tools.then(() => this.#go(chosen)), this.#typesAndUnit(chosen), tools].map(
      async (lane) => {
        await lane;
        if (await tools) await integration();
      },
    );
    for (const lane of await Promise.allSettled([tools, ...lanes]))
      if (lane.status === 'rejected') throw lane.reason;
    if (!(await tools)) return this.#total;
    await this.#wholeRuns();
    await this.#check('tests that need the machine to themselves', () => this.#vitest('alone'));
    return this.#total;
  }

  /** Returns whether the integration tests are wanted and can run. */
  async #tools(chosen: ReadonlySet<Part>): Promise<boolean> {
    if (!chosen.has('integration')) return false;
    const tools = await this.#had(() => ensureTools(integrationTools, this.#machine, this.#signal));
    for (const [names, without] of niceToHave)
      await this.#had(() => ensureTools(names, this.#machine, this.#signal), without);
    return tools !== undefined;
  }

  async #go(chosen: ReadonlySet<Part>): Promise<void> {
    if (!chosen.has('go')) return;
    const compilers = await this.#had(async () => ({
      go: await findGo(this.#machine),
      ...(await ensureTools(['gcc'], this.#machine, this.#signal)),
    }));
    if (compilers === undefined) return;
    const {
      go: { binary },
      gcc,
    } = compilers;
    // The flags of the k6 build, so that both share Go's cache.
    const flags = ['-trimpath', '-buildvcs=false'];
    const inModule = {
      command: binary,
      cwd: this.#machine.k6Sources,
      env: goEnvironment(this.#machine.env),
    };
    await this.#check('gofmt', () =>
      this.#command(
        { ...inModule, command: join(dirname(binary), 'gofmt'), args: ['-l', '.'] },
        ({ stdout }) => stdout === '',
      ),
    );
    await this.#check('go vet', () =>
      this.#command({ ...inModule, args: ['vet', ...flags, './...'] }),
    );
    // go test would vet again, and build all of k6 anew for that.
    const testFlags = [...flags, '-vet=off'];
    // Only the engine runs under the race detector: with k6, all of k6 would be built a second time.
    const { stdout: listed } = await run({
      ...inModule,
      args: ['list', './...'],
      signal: this.#signal,
    });
    const others = listed
      .trim()
      .split('\n')
      .filter((name) => !name.endsWith('/engine'));
    await this.#check('go test', () =>
      this.#goTest({ ...inModule, args: ['test', '-json', ...testFlags, ...others] }),
    );
    const withRaces = { ...inModule, env: { ...inModule.env, CGO_ENABLED: '1', CC: gcc } };
    await this.#check('go test -race ./engine/...', () =>
      this.#goTest({
        ...withRaces,
        args: ['test', '-json', ...testFlags, '-race', './engine/...'],
      }),
    );
    await this.#fuzz({
      command: binary,
      module: inModule.cwd,
      folder: './engine',
      flags: testFlags,
      env: inModule.env,
      signal: this.#signal,
    });
  }

  async #fuzz(engine: GoPackage): Promise<void> {
    const { targets, output } = await fuzzTargets(engine);
    // A change of names must not leave them out unnoticed.
    if (targets.length === 0)
      await this.#check('fuzz targets', async () => ({
        passed: 0,
        failed: 1,
        output: `there are none in ${engine.folder}\n${output}`,
      }));
    for (const target of targets)
      await this.#check(`fuzz ${target}`, () => fuzz(target, 5, engine));
  }

  async #typesAndUnit(chosen: ReadonlySet<Part>): Promise<void> {
    if (!chosen.has('unit')) return;
    await this.#check('format', () =>
      this.#node(['node_modules/prettier/bin/prettier.cjs', '--check', '**/*.{ts,mjs,js}']),
    );
    for (const [name, project] of typeProjects) {
      await this.#check(name, () =>
        this.#node(['node_modules/typescript/bin/tsc', '--noEmit', '--project', project]),
      );
    }
    await this.#check('unit tests', () => this.#vitest('unit'));
  }

  /**
   * Whole runs mostly wait, and none of them judges speed. But bakeoff lets one run measure at a time on a network, so each
   * of three lanes gets a network of its own. Where that is not allowed, there is one lane.
   */
  async #wholeRuns(): Promise<void> {
    const apart = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
    const { code } = await run({ before: apart, command: 'true', args: [], signal: this.#signal });
    const lane = this.#shared('runs', 'tests of whole runs', 12, code === 0 ? apart : []);
    await Promise.all(code === 0 ? [lane(), lane(), lane()] : [lane()]);
  }

  /** Returns a lane: it runs shards of a project's tests until none is left. Lanes that run at once share the shards. */
  #shared(
    project: Project,
    name: string,
    count: number,
    before: readonly string[] = [],
  ): () => Promise<void> {
    let part = 0;
    return async () => {
      while (part < count) {
        const shard = `${++part}/${count}`;
        await this.#check(`${name} ${shard}`, () =>
          this.#vitest(project, [`--shard=${shard}`], before),
        );
      }
    };
  }

  /** Returns undefined, with a line printed, if tools are missing. That is one failure, or with `without` the reason for a skip. */
  async #had<T>(get: () => Promise<T>, without?: string): Promise<T | undefined> {
    try {
      return await get();
    } catch (error) {
      this.#signal.throwIfAborted();
      if (!(error instanceof UserError)) throw error;
      if (without === undefined) this.#total.failed++;
      this.#machine.progress.print(
        without === undefined ? error.message : `SKIPPED, ${without}: ${error.message}`,
      );
      return undefined;
    }
  }

  async #check(name: string, check: () => Promise<Outcome>): Promise<void> {
    this.#signal.throwIfAborted();
    const {
      passed,
      failed,
      output,
      skipped = [],
    } = await this.#machine.progress.step(name, 'running', async (step) => {
      const outcome = await check();
      step.result(`${outcome.passed} passed, ${outcome.failed} failed`);
      return outcome;
    });
    this.#total.passed += passed;
    this.#total.failed += failed;
    for (const line of skipped) this.#machine.progress.print(line);
    if (failed > 0) this.#machine.progress.print(`--- ${name}\n${output.trimEnd()}\n---`);
  }

  /** Runs a command that is one check. It passes with exit code 0 and, if asked, the right output. */
  async #command(
    options: RunOptions,
    good: (finished: { stdout: string }) => boolean = () => true,
  ): Promise<Outcome> {
    const finished = await run({ ...options, signal: this.#signal });
    const passed = finished.code === 0 && good(finished);
    return {
      passed: passed ? 1 : 0,
      failed: passed ? 0 : 1,
      output: finished.stdout + finished.stderr,
    };
  }

  #node(args: string[]): Promise<Outcome> {
    return this.#command({ command: process.execPath, args, cwd: projectRoot });
  }

  async #goTest(options: RunOptions): Promise<Outcome> {
    const { code, stdout, stderr } = await run({ ...options, signal: this.#signal });
    const counts = countGoTests(stdout);
    return withExitCode({ ...counts, output: counts.output + stderr }, code);
  }

  async #vitest(
    project: Project,
    flags: readonly string[] = [],
    before: readonly string[] = [],
  ): Promise<Outcome> {
    return inTemporaryFolder('bakeoff-test-', async (folder) => {
      const reportFile = join(folder, 'report.json');
      const { code, stdout, stderr } = await run({
        before,
        command: process.execPath,
        args: [
          'node_modules/vitest/vitest.mjs',
          'run',
          '--project',
          project,
          ...flags,
          '--reporter=default',
          '--reporter=json',
          `--outputFile.json=${reportFile}`,
        ],
        cwd: projectRoot,
        signal: this.#signal,
      });
      const report = await readFile(reportFile, 'utf8').catch(() => undefined);
      const counts =
        report === undefined
          ? { passed: 0, failed: 0 }
          : countVitest(JSON.parse(report) as VitestReport);
      const output = stdout + stderr;
      return withExitCode({ ...counts, output, skipped: skippedLines(output) }, code);
    });
  }
}

/** A runner that failed without a failed test (it crashed, or found no tests) counts as one failure. */
function withExitCode(outcome: Outcome, code: number | null): Outcome {
  return code !== 0 && outcome.failed === 0 ? { ...outcome, failed: 1 } : outcome;
}
