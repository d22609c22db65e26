// How runs end, by verdict and by time limit, and the report of other processes on the machine.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { cpusOf, readProcessors } from '../../lib/machine/processors.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { newOut, wholeResult, startScenario, useHome, type ScenarioRun } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);

/**
 * Starts a scenario with short rounds: one variant keeps connections alive, the other is much slower because of a TLS handshake
 * per request. @param args more arguments, separated by spaces
 */
function shortRounds(out: string, args: string): ScenarioRun {
  const file = join(out, '..', 'short-rounds.mts');
  const index = JSON.stringify(join(projectRoot, 'lib/scenario/index.ts'));
  writeFileSync(
    file,
    `
    import { defineScenario, nginx, wrk } from ${index};
    const load = { ...wrk('-c 10 -t 4 -d 1'), durationSeconds: 0.4, warmupSeconds: 0.1 };
    const server = nginx(['base'], { workers: 1 });
    export default defineScenario({
      name: 'short-rounds', title: 'short rounds', knob: 'keep-alive', load, page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
      variants: [{ name: 'kept', server }, { name: 'closed', server: nginx(['base', 'tls'], { workers: 1 }), load: { ...load, keepAlive: false } }],
    });`,
  );
  return startScenario(`${file} ${args} --no-look --store none --out ${out}`, home.env);
}

test('--precision ends at the deciding look', async () => {
  const out = newOut();
  const run = shortRounds(out, '--precision 25%');
  const { state, looks, precision, variants, comparisons } = await wholeResult(run, out);
  expect({ state, looks, precision }).toEqual({
    state: 'complete',
    looks: [5, 10, 20, 40, 80],
    precision: 0.25,
  });
  expect(looks).toContain(variants[0]?.rounds.length);
  const [{ variant, verdict } = expect.fail()] = comparisons;
  // On a busy machine one side may have waited more for its core: then there is no verdict to wait for.
  expect([variant, ['slower', 'none'].includes(verdict)]).toEqual(['closed', true]);
  expect(run.stdout()).toMatch(/· 5 to 80 rounds, about \d+ s to \d.* s$/m);
  expect(run.stderr()).toMatch(/^round 5 of 5 to 80 · kept · /m);
});

test('--max-time starts no round that would end late; usage by another program is reported', async () => {
  const [serverCpu, generatorCpu] = cpusOf(readProcessors().cores) as [number, number];
  const busy = ['60', 'taskset', '-c', `${generatorCpu}`, process.execPath, '-e', 'for (;;);'];
  const other = spawn('timeout', busy, { stdio: 'ignore' });
  onTestFinished(() => void other.kill());
  const out = newOut();
  const run = shortRounds(
    out,
    `--precision 5% --max-time 4s --server-cpus ${serverCpu} --generator-cpus ${generatorCpu}`,
  );
  const { state, variants, findings, warnings } = await wholeResult(run, out);
  const [{ rounds } = expect.fail()] = variants;
  expect(state).toBe('complete');
  expect(rounds.length).toBeGreaterThan(0);
  expect(rounds.length).toBeLessThan(5);
  expect(variants[1]?.rounds).toHaveLength(rounds.length);
  const timeOver = { code: 'time-over', rounds: rounds.length, mostRounds: 80 };
  expect(findings).toContainEqual(timeOver);
  expect(warnings).toContain(
    `--max-time ended the run after ${rounds.length} of at most 80 rounds`,
  );
  expect(run.stderr()).toMatch(
    /^after \d rounds? there is no time for another one \(--max-time\)$/m,
  );
  expect(rounds[0]?.phases[0]?.noise?.generatorOthersShare).toBeGreaterThan(0.2);
  expect(warnings).toContainEqual(
    // If another program also keeps the server's core busy, it is the limit.
    expect.stringMatching(/^others used up to \d+ % of the (generator|server)'s core in /),
  );
});
