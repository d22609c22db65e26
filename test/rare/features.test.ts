// Each feature can be taken out: its folder, and its lines in lib/cli/main.ts.
import { beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../lib/setup/paths.ts';
import { featureNames, node, without } from '../fixtures/without-feature.ts';
import { newOut, useHome } from '../scenario-run.ts';

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
  commits: /^ {2}(bisect|--(repo|build|serve)) /m,
  counts: /^ {2}--counts /m,
  hosts: /^ {2}--(server-host|install) /m,
  influxdb: /^ {2}(grafana|--store|--influx) /m,
  'k6-scripts': /^ {2}k6 /m,
  knobs: /^ {2}knobs /m,
  kubernetes: /^ {2}k8s /m,
  network: null,
  report: /^ {2}report /m,
  search: /^ {2}--within /m,
  traffic: /^ {2}--(log|har|targets|accept-differences) /m,
  why: /^ {2}--(no-)?why /m,
};

let whole: string;
beforeAll(async () => {
  whole = await helpOf(projectRoot);
});

const home = useHome(['k6', 'nginx']);

/** Runs a short scenario in a copy. Returns what it prints. */
async function outputOfScenario(copy: string, ...more: string[]): Promise<string> {
  const quickly = ['--quick', '--rounds', '1', '--warmup', '0.1', '--duration', '0.2', ...more];
  const scenario = ['bin/bakeoff.mjs', 'scenario', 'aa', ...quickly, '--out', newOut()];
  const { code, output } = await node(copy, scenario, home.env);
  expect(output).toContain('report.html');
  expect(code).toBe(0);
  return output;
}

/** Without these a scenario runs. The others add commands only. */
const ofRuns = ['hosts', 'influxdb', 'network', 'report', 'search', 'traffic', 'why'];

test.each(featureNames)('without %s the commands start, and a scenario runs', async (name) => {
  const ofFeature = shown[name];
  if (ofFeature === undefined) expect.fail(`what does ${name} add to the help?`);
  if (ofFeature !== null) expect(whole).toMatch(ofFeature);
  const { copy, gone } = without(name);
  // Tests of the core stay; those of the boards and of what is stored need InfluxDB.
  expect(gone.length).toBeLessThan(name === 'influxdb' ? 40 : 15);
  const left = await helpOf(copy);
  if (ofFeature === null) expect(left).toBe(whole);
  else expect(left).not.toMatch(ofFeature);
  if (!ofRuns.includes(name)) return;
  const store = name === 'influxdb' ? [] : ['--store', 'none'];
  const output = await outputOfScenario(copy, ...store);
  if (name === 'influxdb') expect(output).not.toMatch(/influx|database|stored/i);
});

test('without network a scenario that has networks is refused in one line', async () => {
  const { copy } = without('network');
  const scenario = ['bin/bakeoff.mjs', 'scenario', 'nginx-one-request', '--out', newOut()];
  expect(await node(copy, scenario, home.env)).toEqual({
    code: 2,
    output: 'nginx-one-request has networks of its own, which this bakeoff cannot make\n',
  });
});

test('without traffic a log is refused in one line, as a flag and in a scenario', async () => {
  const { copy } = without('traffic');
  const sides = ['http://localhost:1/', 'http://localhost:2/'];
  const compare = await node(copy, ['bin/bakeoff.mjs', 'compare', ...sides, '--log', 'access.log']);
  expect(compare).toMatchObject({ code: 2, output: expect.stringMatching(/^.*--log.*\n$/) });
  const file = 'examples/traffic/api.scenario.ts';
  const scenario = await node(copy, ['bin/bakeoff.mjs', 'scenario', file, '--out', newOut()]);
  expect(scenario).toMatchObject({ code: 1, output: expect.stringMatching(/^.*"fromLog".*\n$/) });
});
