// Each feature can be taken out: its folder, and its line in lib/features.ts.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { run } from '../../lib/process.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { newOut, useHome } from '../scenario-run.ts';

const named = readdirSync(join(projectRoot, 'lib/features'));

const leftOut = ['.git', '.bakeoff', 'dist', 'node_modules', 'results'];

function copyOfProject(): string {
  const copy = newFolder();
  for (const name of readdirSync(projectRoot))
    if (!leftOut.includes(name))
      cpSync(join(projectRoot, name), join(copy, name), { recursive: true });
  symlinkSync(join(projectRoot, 'node_modules'), join(copy, 'node_modules'));
  // Tests ask git which files it would add.
  spawnSync('git', ['init', '--quiet', copy]);
  return copy;
}

/** Takes the feature out, with the boards, tests and benchmarks that use it. Returns their paths. */
function takeOut(copy: string, name: string): string[] {
  rmSync(join(copy, 'lib/features', name), { recursive: true });
  change(copy, 'lib/features.ts', (text) => {
    const line = new RegExp(`^import \\{ (\\w+) \\} from './features/${name}/feature.ts';\n`, 'm');
    const [, constant = expect.fail()] = line.exec(text) ?? [];
    return text.replace(line, '').replace(new RegExp(`(?<=\\[[^]*)\\b${constant},?`), '');
  });
  const exported = new RegExp(`^export .* from './features/${name}/.*\n`, 'gm');
  const index = join(copy, 'lib/index.ts');
  writeFileSync(index, readFileSync(index, 'utf8').replace(exported, ''));
  const gone: string[] = [];
  for (let users = usersOfNothing(copy); users.length > 0; users = usersOfNothing(copy)) {
    gone.push(...users);
    for (const file of users) rmSync(join(copy, file));
  }
  if (!existsSync(join(copy, 'bench/bench.ts')))
    change(copy, 'test/commands.ts', (text) => text.replace(/^ {2}bench: \{[^}]*\},\n/m, ''));
  return gone;
}

/** The files of dashboards, test and bench that import a file that is not there. */
function usersOfNothing(copy: string): string[] {
  const files = ['dashboards', 'test', 'bench'].flatMap((folder) =>
    readdirSync(join(copy, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.m?ts$/.test(file))
      .map((file) => join(folder, file)),
  );
  return files.filter((file) => {
    const text = readFileSync(join(copy, file), 'utf8');
    return [...text.matchAll(/^(?:import|export|\}) .*?from '(\.[^']+\.m?ts)';$/gm)].some(
      ([, path = '']) => !existsSync(join(copy, dirname(file), path)),
    );
  });
}

function change(copy: string, file: string, changed: (text: string) => string): void {
  const path = join(copy, file);
  const text = readFileSync(path, 'utf8');
  const now = changed(text);
  expect(now).not.toBe(text);
  writeFileSync(path, now);
}

async function node(copy: string, args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const { VITEST: _, ...own } = process.env;
  const env = { ...own, BAKEOFF_INSTALL: 'no', NO_COLOR: '1', ...more };
  const { code, stdout, stderr } = await run({ command: process.execPath, args, cwd: copy, env });
  return { code, output: stdout + stderr };
}

/** The commands in the help, and the flags of a run and of a comparison. */
async function helpOf(copy: string): Promise<string> {
  const commands = await node(copy, ['bin/bakeoff.mjs', '--help']);
  const flags = await node(copy, ['bin/bakeoff.mjs', 'scenario', '--help', 'all']);
  const compare = await node(copy, ['bin/bakeoff.mjs', 'compare', '--help', 'all']);
  const all = [commands, flags, compare];
  expect(all.map(({ code }) => code)).toEqual([0, 0, 0]);
  return all.map(({ output }) => output).join('');
}

/** What a feature has in the help; null: nothing. */
const shown: Readonly<Record<string, RegExp | null>> = {
  calibrate: /^ {2}calibrate /m,
  hosts: /^ {2}--(server-host|generator-host|install) /m,
  influxdb: /^ {2}(grafana|--store|--influx) /m,
  'k6-scripts': /^ {2}k6 /m,
  knobs: /^ {2}knobs /m,
  kubernetes: /^ {2}k8s /m,
  network: null,
  report: /^ {2}report /m,
  search: /^ {2}--within /m,
  traffic: /^ {2}--(log|har|targets|pace|accept-differences) /m,
  why: /^ {2}--(no-)?why /m,
};

let whole: string;
beforeAll(async () => {
  whole = await helpOf(projectRoot);
});

test.each(named)('without %s the types are right, and the commands start', async (name) => {
  const ofFeature = shown[name];
  if (ofFeature === undefined) expect.fail(`what does ${name} add to the help?`);
  if (ofFeature !== null) expect(whole).toMatch(ofFeature);
  const copy = copyOfProject();
  const gone = takeOut(copy, name);
  // Tests of the core stay; those of the boards and of what is stored need InfluxDB.
  expect(gone.length).toBeLessThan(name === 'influxdb' ? 40 : 15);
  expect(gone.filter((file) => file.startsWith('test/unit/')).length).toBeLessThan(3);
  const types = await node(copy, ['node_modules/typescript/bin/tsc', '--noEmit']);
  expect(types).toEqual({ code: 0, output: '' });
  const left = await helpOf(copy);
  if (ofFeature === null) expect(left).toBe(whole);
  else expect(left).not.toMatch(ofFeature);
});

const home = useHome(['k6', 'nginx']);

/** Runs a short scenario in a copy. Returns what it prints. */
async function outputOfScenario(copy: string, ...more: string[]): Promise<string> {
  const quickly = ['--quick', '--rounds', '2', '--duration', '0.2', ...more];
  const scenario = ['bin/bakeoff.mjs', 'scenario', 'aa', ...quickly, '--out', newOut()];
  const { code, output } = await node(copy, scenario, home.env);
  expect(output).toContain('report.html');
  expect(code).toBe(0);
  return output;
}

test.each(['hosts', 'network', 'why', 'report', 'search', 'traffic'])(
  'without %s a scenario runs',
  async (name) => {
    const copy = copyOfProject();
    takeOut(copy, name);
    await outputOfScenario(copy, '--store', 'none');
  },
);

test('without influxdb a scenario runs, and says nothing of a database', async () => {
  const copy = copyOfProject();
  takeOut(copy, 'influxdb');
  expect(await outputOfScenario(copy)).not.toMatch(/influx|database|stored/i);
});

test('without network a scenario that has networks is refused in one line', async () => {
  const copy = copyOfProject();
  takeOut(copy, 'network');
  const scenario = ['bin/bakeoff.mjs', 'scenario', 'nginx-one-request', '--out', newOut()];
  expect(await node(copy, scenario, home.env)).toEqual({
    code: 2,
    output: 'nginx-one-request has networks of its own, which this bakeoff cannot make\n',
  });
});

test('without traffic a log is refused in one line, as a flag and in a scenario', async () => {
  const copy = copyOfProject();
  takeOut(copy, 'traffic');
  const sides = ['http://localhost:1/', 'http://localhost:2/'];
  const compare = await node(copy, ['bin/bakeoff.mjs', 'compare', ...sides, '--log', 'access.log']);
  expect(compare).toMatchObject({ code: 2, output: expect.stringMatching(/^.*--log.*\n$/) });
  const file = 'examples/traffic/api.scenario.ts';
  const scenario = await node(copy, ['bin/bakeoff.mjs', 'scenario', file, '--out', newOut()]);
  expect(scenario).toMatchObject({ code: 1, output: expect.stringMatching(/^.*"fromLog".*\n$/) });
});

test.each(['hosts', 'network', 'why', 'search', 'traffic'])(
  "without %s the core's unit tests pass",
  async (name) => {
    const copy = copyOfProject();
    takeOut(copy, name);
    // These hold the documents and the map to the list of features.
    const ofList = ['docs', 'arrows'].flatMap((file) => ['--exclude', `test/unit/${file}.test.ts`]);
    const unit = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'unit', ...ofList];
    // On a busy machine a test may time out, which says nothing on the feature.
    const { code, output } = await node(copy, [...unit, '--reporter=dot', '--retry=2']);
    expect(output.match(/^.*\bFAIL\b.*$/gm) ?? []).toEqual([]);
    expect(output).toMatch(/Tests +\d{4} passed/);
    expect(code).toBe(0);
  },
  900_000,
);
