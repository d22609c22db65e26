// From a plan and its rounds to the result: what makes two variants the same on this machine.
import { expect, test } from 'vitest';
import { buildResult, type KeptRound } from '../../lib/runner/build-result.ts';
import { makePlan } from '../../lib/runner/make-plan.ts';
import type { RunContext, VariantRound } from '../../lib/runner/round-types.ts';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import { markdownReport } from '../../lib/report/markdown.ts';
import { footnoteLines } from '../../lib/report/sentences.ts';
import { terminalReport } from '../../lib/report/terminal.ts';
import { configOf } from '../../lib/scenario/variants.ts';
import { address, command, defineScenario, nginx, wrk } from '../../lib/scenario/index.ts';
import type { ServerSpec } from '../../lib/scenario/model.ts';
import { workersFor } from '../../lib/servers/index.ts';
import { phase } from '../fixtures/phase.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

/** Why the second variant of a run on so many cores has its verdict, or none. */
function verdictReason(
  serverCores: number,
  first: ServerSpec,
  second: ServerSpec,
): string | undefined {
  const scenario = defineScenario({
    name: 'same',
    title: 'Two of a kind',
    knob: 'nothing',
    load: wrk('-c 100 -t 1 -d 10'),
    page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
    variants: [
      { name: 'a', server: first },
      { name: 'b', server: second },
    ],
  });
  const serverCpus = Array.from({ length: serverCores }, (_, cpu) => cpu + 1);
  const plan = {
    ...makePlan(
      scenario,
      scenario.variants,
      { serverCpus, generatorCpus: [0] },
      { quick: false, exact: false },
    ),
    run: 'run',
  };
  const outcome = (server: ServerSpec): VariantRound => ({
    phases: [phase({ requests: 1000 })],
    requests: 1000,
    integrity: null,
    restless: false,
    alarm: undefined,
    otherBodies: false,
    recordFile: '',
    server: {
      name: server.name,
      version: '1.22.1',
      workers: workersFor(server, serverCores, false),
      config: configOf(server),
      redirections: [],
    },
  });
  const kept = [1, 2, 3, 4].map((round): KeptRound => ({
    round,
    outcomes: new Map([
      ['a', outcome(first)],
      ['b', outcome(second)],
    ]),
  }));
  return buildResult(
    { plan, store: null } as unknown as RunContext,
    result([workers, openFileCache]).environment,
    { kept, notes: [], tried: new Map(), unfinished: [] },
    new Date(0),
    'complete',
  ).comparisons[0]?.why;
}

test('variants that are written alike are the same on any number of cores', () => {
  for (const cores of [1, 4])
    expect(
      verdictReason(
        cores,
        nginx(['base'], { workers: 'server-cores' }),
        nginx(['base'], { workers: 'server-cores' }),
      ),
    ).toBe('the same config and load here');
  expect(verdictReason(1, nginx(['base'], { workers: 2 }), nginx(['base'], { workers: 2 }))).toBe(
    'the same config and load here',
  );
});

test('variants whose workers come to the same on these cores need one more', () => {
  expect(
    verdictReason(1, nginx(['base'], { workers: 1 }), nginx(['base'], { workers: 'server-cores' })),
  ).toBe('needs 2 server cores');
  expect(
    verdictReason(4, nginx(['base'], { workers: 4 }), nginx(['base'], { workers: 'server-cores' })),
  ).toBe('needs 5 server cores');
  expect(
    verdictReason(2, nginx(['base'], { workers: 1 }), nginx(['base'], { workers: 'server-cores' })),
  ).toMatch(/^the whole interval/);
});

test('a footnote says that an address has cores of its own', async () => {
  const there = async (variants: readonly string[]): Promise<string[]> => {
    const scenario = defineScenario({
      name: 'there',
      title: 'There',
      knob: 'all',
      load: wrk('-c 100 -t 1 -d 10'),
      page: { path: '/', bodyBytes: 612 },
      variants: [
        { name: 'here', server: command('node a.js') },
        { name: 'there', server: address('http://127.0.0.1:8080') },
      ],
    });
    const asked = scenario.variants.filter(({ name }) => variants.includes(name));
    const plan = {
      ...makePlan(
        scenario,
        asked,
        { serverCpus: [1], generatorCpus: [0] },
        { quick: false, exact: false },
      ),
      run: 'run',
    };
    const found = buildResult(
      { plan, store: null } as unknown as RunContext,
      result([workers, openFileCache]).environment,
      { kept: [], notes: [], tried: new Map(), unfinished: [] },
      new Date(0),
      'partial',
    );
    const lines = footnoteLines(found);
    // Addresses are parted in it.
    const markdown = markdownReport(found).replaceAll('\u200b', '');
    const terminal = terminalReport(found, [], {
      width: Infinity,
      colour: false,
      verbose: true,
    }).join('\n');
    const page = await htmlReport(found, []);
    for (const line of lines)
      expect([markdown.includes(line), terminal.includes(line), page.includes(line)]).toEqual([
        true,
        true,
        true,
      ]);
    return lines;
  };
  const own =
    'there: what runs at http://127.0.0.1:8080 is on cores of its own choosing, so that its ratio is of where it runs as much as of what it is, and how much of them it uses is not known.';
  expect(await there(['here', 'there'])).toEqual([own]);
  expect(await there(['here'])).toEqual([]);
});
