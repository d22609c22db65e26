// npm test: everything that can be checked, on a machine that may have none of the tools yet.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UserError } from '../errors.ts';
import { inTemporaryFolder } from '../folders.ts';
import { underSignals } from '../interrupt.ts';
import { unknownWord } from '../nearest.ts';
import { findGo, goEnvironment } from '../setup/k6.ts';
import { thisMachine, type Machine } from '../setup/machine.ts';
import { projectRoot } from '../setup/paths.ts';
import { run, type RunOptions } from '../setup/run.ts';
import { ensureTools, type ToolName } from '../setup/tools.ts';
import { fuzz, fuzzSeconds, fuzzTargets, type GoPackage } from './fuzz.ts';
import { countGoTests, countVitest, skippedLines, type Counts, type Outcome, type VitestReport } from './test-counts.ts';

const parts = ['unit', 'integration', 'go'] as const;
type Part = (typeof parts)[number];

/** Of vitest.config.ts. */
type Project = 'unit' | 'integration' | 'runs' | 'alone';

const integrationTools = ['k6', 'nginx', 'h2o', 'nghttpd', 'h2load', 'openssl', 'influxd'] as const;

/** Everything else holds without them. */
const niceToHave: readonly (readonly [tools: readonly ToolName[], what: string])[] = [
  [['chromium'], 'the tests in a browser'],
  [['caddy', 'lighttpd', 'apache2', 'haproxy'], 'some of examples/any-server'],
  [['sshd'], 'the tests with other hosts'],
];

/** What runs in a browser has other types. */
const typeProjects = [['types', '.'], ['types of the plots', 'lib/report/html/plots']] as const;

/**
 * `npm test`, or some parts of it: `npm test -- unit go`. Returns 0 when everything passed, 1 otherwise. The last line on
 * stdout has the counts of all runners together. Throws UserError for a part that there is not, Interrupted on Ctrl-C.
 */
export async function testCommand(args: string[]): Promise<number> {
  if (!existsSync(join(projectRoot, 'test'))) throw new UserError('the tests are in a checkout of bakeoff, not in the package');
  const wrong = args.find((word) => !parts.includes(word as Part));
  if (wrong !== undefined) throw unknownWord('part of the tests', wrong, parts);
  const chosen = new Set(args.length === 0 ? parts : args as Part[]);

  const total = await underSignals('ending the tests; again to end them at once', ({ signal }) => new TestRun(thisMachine(), signal).run(chosen));
  console.log(`${total.passed} passed, ${total.failed} failed`);
  return total.failed === 0 ? 0 : 1;
}

class TestRun {
  readonly #machine: Machine;
  readonly #signal: AbortSignal;
  readonly #total: Counts = { passed: 0, failed: 0 };

  constructor(machine: Machine, signal: AbortSignal) {
    this.#machine = machine;
    this.#signal = signal;
  }

  /**
   * The builds of k6 and of the Go tests keep the machine busy for long; all that needs no quiet goes beside them. Whole runs
   * come after them, and last what judges how fast something is.
   */
  async run(chosen: ReadonlySet<Part>): Promise<Counts> {
    const tools = this.#tools(chosen);
    const integration = this.#shared('integration', 'integration tests', 8);
    const lanes = [tools.then(() => this.#go(chosen)), this.#typesAndUnit(chosen), tools].map(async (lane) => {
      await lane;
      if (await tools) await integration();
    });
    for (const lane of await Promise.allSettled([tools, ...lanes])) if (lane.status === 'rejected') throw lane.reason;
    if (!await tools) return this.#total;
    await this.#wholeRuns();
    await this.#check('tests that need the machine to themselves', () => this.#vitest('alone'));
    return this.#total;
  }

  /** Returns whether the integration tests are wanted and can be run. */
  async #tools(chosen: ReadonlySet<Part>): Promise<boolean> {
    if (!chosen.has('integration')) return false;
    const tools = await this.#had(() => ensureTools(integrationTools, this.#machine, this.#signal));
    for (const [names, without] of niceToHave) await this.#had(() => ensureTools(names, this.#machine, this.#signal), without);
    return tools !== undefined;
  }

  async #go(chosen: ReadonlySet<Part>): Promise<void> {
    if (!chosen.has('go')) return;
    const compilers = await this.#had(async () => ({ go: await findGo(this.#machine), ...await ensureTools(['gcc'], this.#machine, this.#signal) }));
    if (compilers === undefined) return;
    const { go, gcc } = compilers;
    // As in the build of k6, so that what is compiled for one serves the other.
    const flags = ['-trimpath', '-buildvcs=false'];
    const inModule = { command: go.binary, cwd: this.#machine.k6Sources, env: goEnvironment(this.#machine.env) };
    await this.#check('gofmt', () => this.#command({ ...inModule, command: join(dirname(go.binary), 'gofmt'), args: ['-l', '.'] }, ({ stdout }) => stdout === ''));
    await this.#check('go vet', () => this.#command({ ...inModule, args: ['vet', ...flags, './...'] }));
    // A test would be vetted again, and all of k6 with it: for each way to build it anew.
    const testFlags = [...flags, '-vet=off'];
    // The engine under the race detector, and it alone: with k6 all of k6 would have to be built a second time.
    const { stdout: listed } = await run({ ...inModule, args: ['list', './...'], signal: this.#signal });
    const others = listed.trim().split('\n').filter((name) => !name.endsWith('/engine'));
    await this.#check('go test', () => this.#goTest({ ...inModule, args: ['test', '-json', ...testFlags, ...others] }));
    const withRaces = { ...inModule, env: { ...inModule.env, CGO_ENABLED: '1', CC: gcc } };
    await this.#check('go test -race ./engine/...', () => this.#goTest({ ...withRaces, args: ['test', '-json', ...testFlags, '-race', './engine/...'] }));
    await this.#fuzz({ command: go.binary, module: inModule.cwd, folder: './engine', flags: testFlags, env: inModule.env, signal: this.#signal });
  }

  async #fuzz(engine: GoPackage): Promise<void> {
    const { targets, output } = await fuzzTargets(engine);
    // A change of names must not leave them out unnoticed.
    if (targets.length === 0) await this.#check('fuzz targets', async () => ({ passed: 0, failed: 1, output: `there are none in ${engine.folder}\n${output}` }));
    for (const target of targets) await this.#check(`fuzz ${target}`, () => fuzz(target, fuzzSeconds(targets.length), engine));
  }

  async #typesAndUnit(chosen: ReadonlySet<Part>): Promise<void> {
    if (!chosen.has('unit')) return;
    for (const [name, project] of typeProjects) {
      await this.#check(name, () => this.#command({ command: process.execPath, args: ['node_modules/typescript/bin/tsc', '--noEmit', '--project', project], cwd: projectRoot }));
    }
    await this.#check('unit tests', () => this.#vitest('unit'));
  }

  /**
   * Tools that cannot be had are said, and no reason to hold back the rest. They are one failure, or where there is `without` no
   * more than the reason for which that is left out.
   */
  async #had<T>(get: () => Promise<T>, without?: string): Promise<T | undefined> {
    try {
      return await get();
    } catch (error) {
      this.#signal.throwIfAborted();
      if (!(error instanceof UserError)) throw error;
      if (without === undefined) this.#total.failed++;
      this.#machine.progress.print(without === undefined ? error.message : `SKIPPED, ${without}: ${error.message}`);
      return undefined;
    }
  }

  async #check(name: string, check: () => Promise<Outcome>): Promise<void> {
    this.#signal.throwIfAborted();
    const { passed, failed, output, skipped = [] } = await this.#machine.progress.step(name, 'running', async (step) => {
      const outcome = await check();
      step.result(`${outcome.passed} passed, ${outcome.failed} failed`);
      return outcome;
    });
    this.#total.passed += passed;
    this.#total.failed += failed;
    for (const line of skipped) this.#machine.progress.print(line);
    if (failed > 0) this.#machine.progress.print(`--- ${name}\n${output.trimEnd()}\n---`);
  }

  /** A command that is one check: it passes with exit code 0 and, if asked, the right output. */
  async #command(options: RunOptions, good: (finished: { stdout: string }) => boolean = () => true): Promise<Outcome> {
    const finished = await run({ ...options, signal: this.#signal });
    const passed = finished.code === 0 && good(finished);
    return { passed: passed ? 1 : 0, failed: passed ? 0 : 1, output: finished.stdout + finished.stderr };
  }

  async #goTest(options: RunOptions): Promise<Outcome> {
    const finished = await run({ ...options, signal: this.#signal });
    const counts = countGoTests(finished.stdout);
    return withExitCode({ ...counts, output: counts.output + finished.stderr }, finished.code);
  }

  /**
   * They mostly wait, and none of them judges how fast anything was; but on one network bakeoff lets one run measure at a time. Three
   * lanes have a network each, where that may be made; otherwise all go one after another.
   */
  async #wholeRuns(): Promise<void> {
    const apart = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
    const { code } = await run({ before: apart, command: 'true', args: [], signal: this.#signal });
    const lane = this.#shared('runs', 'tests of whole runs', 12, code === 0 ? apart : []);
    await Promise.all(code === 0 ? [lane(), lane(), lane()] : [lane()]);
  }

  /** What works off a project's tests in so many parts. Called by each lane that is free, each part is done once. */
  #shared(project: Project, name: string, count: number, before: readonly string[] = []): () => Promise<void> {
    let part = 0;
    return async () => {
      while (part < count) {
        const shard = `${++part}/${count}`;
        await this.#check(`${name} ${shard}`, () => this.#vitest(project, [`--shard=${shard}`], before));
      }
    };
  }

  async #vitest(project: Project, flags: readonly string[] = [], before: readonly string[] = []): Promise<Outcome> {
    return inTemporaryFolder('bakeoff-test-', async (folder) => {
      const reportFile = join(folder, 'report.json');
      const finished = await run({
        before,
        command: process.execPath,
        args: ['node_modules/vitest/vitest.mjs', 'run', '--project', project, ...flags, '--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`],
        cwd: projectRoot,
        signal: this.#signal,
      });
      const report = await readFile(reportFile, 'utf8').catch(() => undefined);
      const counts = report === undefined ? { passed: 0, failed: 0 } : countVitest(JSON.parse(report) as VitestReport);
      const output = finished.stdout + finished.stderr;
      return withExitCode({ ...counts, output, skipped: skippedLines(output) }, finished.code);
    });
  }
}

/** A runner that failed without a failed test (it crashed, or found no tests) is one failure. */
function withExitCode(outcome: Outcome, code: number | null): Outcome {
  return code !== 0 && outcome.failed === 0 ? { ...outcome, failed: 1 } : outcome;
}
