// With the real nginx and k6: how runs end, by their verdicts, by the time, and with which code; and what is told of others on the machine.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { cpusOf, readProcessors } from '../../lib/machine/processors.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import {
  makeHome,
  newOut,
  readResult,
  wholeResult,
  startScenario,
  type Home,
  type ScenarioRun,
} from '../scenario-run.ts';

let home: Home;
beforeAll(async () => {
  home = await makeHome(['k6', 'nginx']);
}, 300_000);
afterAll(() => home.remove());

/** @param words arguments, parted by spaces */
const start = (out: string, words: string): ScenarioRun =>
  startScenario([...words.split(' '), '--store', 'none', '--out', out], home.env);

/**
 * Writes a scenario of short rounds beside the results: one variant keeps its connections, the other one is far slower, with a
 * TLS handshake for each request, which is the server's work. `more` are properties in TypeScript.
 */
function shortRounds(out: string, more = '') {
  const file = join(out, '..', 'short-rounds.mts');
  writeFileSync(
    file,
    `
    import { defineScenario, nginx, wrk } from ${JSON.stringify(join(projectRoot, 'lib/scenario/index.ts'))};
    const load = { ...wrk('-c 10 -t 4 -d 1'), durationSeconds: 0.4, warmupSeconds: 0.1 };
    const server = nginx(['base'], { workers: 1 });
    export default defineScenario({
      name: 'short-rounds', title: 'short rounds', knob: 'keep-alive', load, page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
      variants: [{ name: 'kept', server }, { name: 'closed', server: nginx(['base', ${JSON.stringify(join(projectRoot, 'bench/nginx-tls.conf'))}], { workers: 1 }), load: { ...load, keepAlive: false } }], ${more}
    });`,
  );
  return file;
}

test('--precision ends at the look that decides, and --fail-if tells by the exit code', async () => {
  const out = newOut();
  const run = start(out, `${shortRounds(out)} --precision 1% --fail-if slower`);
  expect(await run.ended, run.stderr()).toBe(3);
  const { state, looks, precision, variants, comparisons } = readResult(out);
  expect({ state, looks, precision }).toEqual({
    state: 'complete',
    looks: [5, 10, 20, 40, 80],
    precision: 0.01,
  });
  expect(looks).toContain(variants[0]?.rounds.length);
  expect(comparisons).toMatchObject([{ variant: 'closed', verdict: 'slower' }]);
  expect(run.stdout()).toMatch(/· 5 to 80 rounds, about \d+ s to \d.* s$/m);
  expect(run.stderr()).toMatch(/^round 5 of 5 to 80 · kept · /m);
  expect(run.stderr().trimEnd().split('\n').at(-1)).toBe(
    '--fail-if slower: closed is slower than kept',
  );
});

test('--max-time begins no round that would not end in time, and the run is complete', async () => {
  const out = newOut();
  const run = start(out, `${shortRounds(out)} --precision 1% --max-time 4s`);
  const { state, variants, warnings } = await wholeResult(run, out);
  const rounds = variants[0]?.rounds.length as number;
  expect(state).toBe('complete');
  expect(rounds).toBeGreaterThan(0);
  expect(rounds).toBeLessThan(5);
  expect(variants[1]?.rounds).toHaveLength(rounds);
  expect(warnings).toContain(`--max-time ended the run after ${rounds} of at most 80 rounds`);
  expect(run.stderr()).toMatch(
    /^after \d rounds? there is no time for another one \(--max-time\)$/m,
  );
});

test('a scenario that shares the cores gives them all to both sides; --fail-if that does not hold is 0', async () => {
  const out = newOut();
  const run = start(out, `${shortRounds(out, 'sharedCores: true,')} --rounds 4 --fail-if faster`);
  const { environment, variants, comparisons } = await wholeResult(run, out);
  expect(environment).toMatchObject({
    serverCpus: cpusOf(readProcessors().cores),
    generatorCpus: cpusOf(readProcessors().cores),
  });
  expect(variants[0]?.load.threads).toBe(Math.min(4, cpusOf(readProcessors().cores).length));
  expect(comparisons[0]?.verdict).not.toBe('faster');
  for (const { noise } of variants.flatMap(({ rounds }) => rounds.flatMap(({ phases }) => phases)))
    expect(noise).not.toBeNull();
});

test("another program on the generator's core is told", async () => {
  const [serverCpu, generatorCpu] = cpusOf(readProcessors().cores) as [number, number];
  const other = spawn(
    'timeout',
    ['60', 'taskset', '-c', String(generatorCpu), process.execPath, '-e', 'for (;;);'],
    { stdio: 'ignore' },
  );
  onTestFinished(() => {
    other.kill();
  });
  const out = newOut();
  const run = start(
    out,
    `${shortRounds(out)} --rounds 1 --server-cpus ${String(serverCpu)} --generator-cpus ${String(generatorCpu)}`,
  );
  const { variants, warnings } = await wholeResult(run, out);
  expect(variants[0]?.rounds[0]?.phases[0]?.noise?.generatorOthersShare).toBeGreaterThan(0.2);
  expect(warnings).toContainEqual(
    expect.stringMatching(
      /^others used up to \d+ % of the generator's core in the only round, and the server had time left: /,
    ),
  );
});
