// Complete runs over emulated networks.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, beforeEach, expect, test, vi, type TestContext } from 'vitest';
import { packetsByKind } from '../../lib/analysis/phases.ts';
import { ab, nginx } from '../../lib/scenario/index.ts';
import type { NetworkSpec, Scenario, Variant } from '../../lib/scenario/model.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { holdersOf, namespaceAt, ownNetwork, whyNoNetworks } from '../fixtures/networks.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { descendants, stillRunning, type Seen } from '../fixtures/processes.ts';
import {
  keptRounds,
  newOut,
  readResult,
  wholeResult,
  runFolder,
  startCommand,
  startScenario,
  useHome,
  type ScenarioRun,
} from '../scenario-run.ts';

const soon = { timeout: 30_000, interval: 20 };

const home = useHome(['k6', 'nginx', 'nghttpd', 'influxd']);
let impossible: string | undefined;
beforeAll(async () => {
  impossible = await whyNoNetworks();
});
beforeEach((context) => {
  if (impossible !== undefined) context.skip(impossible);
});

/** The listen queue of CentOS 7 would be too short for all connections at once if nginx has to wait for its core. */
const network: NetworkSpec = {
  toServer: { delayMs: 100 },
  toClient: { delayMs: 0 },
  serverSettings: ['centos-7', 'somaxconn-16384'],
  clientSettings: ['generator'],
};
const load = ab('-c 200 -n 3000');
const endless = ab('-c 200 -n 1000000');
const noPush: Variant = { name: 'no-push', server: nginx(['packaged'], { workers: 1 }) };
const push: Variant = { name: 'push', server: nginx(['packaged', 'tcp-nopush'], { workers: 1 }) };

function scenarioFile(variants: readonly Variant[], changes: Partial<Scenario> = {}) {
  const scenario: Scenario = {
    name: 'own-network',
    title: "a network of the run's own",
    knob: 'tcp_nopush',
    load,
    network,
    variants,
    rounds: 1,
    page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
    ...changes,
  };
  const folder = newFolder();
  chmodSync(folder, 0o755);
  const file = join(folder, 'own-network.mjs');
  writeFileSync(file, `export default ${JSON.stringify(scenario)};\n`);
  return file;
}

function requireRoot(context: TestContext) {
  if (process.getuid?.() !== 0) context.skip('it takes root');
}

test('an nginx request takes 11 packets, and 9 with tcp_nopush', async () => {
  const before = ownNetwork();
  const out = newOut();
  const run = startScenario(
    [scenarioFile([noPush, push]), '--rounds', '1', '--out', out, '--json'],
    home.env,
  );
  const result = await wholeResult(run, out);
  // All packets, and those that are not pure acknowledgements.
  const expected = [
    { toServer: [6, 3], toClient: [5, 3] },
    { toServer: [5, 3], toClient: [4, 2] },
  ] as const;
  for (const [index, packets] of expected.entries()) {
    const [phase] = result.variants[index]?.rounds[0]?.phases ?? [];
    const answered = { requests: 3000, responses: { '2xx': 3000 }, errors: { total: 0 } };
    expect(phase).toMatchObject(answered);
    expect(phase?.latencyMs.min).toBeGreaterThanOrEqual(200);
    const link = phase?.network ?? expect.fail();
    const none = { dropped: 0, lost: 0 };
    expect(link).toMatchObject({ listenOverflows: 0, toServer: none, toClient: none });
    // If the machine stalls, there are retransmissions and more pure acknowledgements.
    const sentAgain = link.retransmits.client + link.retransmits.server;
    for (const direction of ['toServer', 'toClient'] as const) {
      const [all, carrying] = packets[direction];
      const { packets: count, kinds } = link[direction];
      const distance = Math.abs(count - kinds.ack - 3000 * carrying);
      expect(distance, JSON.stringify(link)).toBeLessThanOrEqual(300 + sentAgain);
      expect(count).toBeGreaterThan(3000 * all - 300);
    }
    expect(link.toServer.kinds.syn).toBeGreaterThanOrEqual(3000);
  }
  expect(result.integrity).toMatchObject({ requests: 6000, stored: 6000, backfilled: 0, lost: 0 });
  // The access log was a file, which was removed with the server.
  expect(readdirSync(join(runFolder(out), `round-${keptRounds(result)[0]}/push`))).not.toContain(
    'access.log',
  );
  expect(ownNetwork()).toEqual(before);
});

test('a request takes the same packets as in the dumps of article 004, by kind', async () => {
  const out = newOut();
  const run = startScenario(
    ['nginx-one-request', '--no-look', '--store', 'none', '--out', out],
    home.env,
  );
  const { variants } = await wholeResult(run, out);
  expect(variants.map(packetsByKind)).toEqual(variants.map(({ published }) => published?.packets));
});

test('a round with packets dropped by a device does not count; packets in flight are reported', async (context) => {
  requireRoot(context);
  // A link that reports drops at its first start, and always has packets in flight.
  const folder = newFolder();
  const k6 = home.env['K6_BIN'] as string;
  const env = { ...home.env, K6_BIN: join(folder, 'k6') };
  symlinkSync(k6, env.K6_BIN);
  writeFileSync(
    join(folder, 'delaylink'),
    String.raw`#!/bin/sh
      drops=$([ -e ${folder}/started ] && echo 0 || echo 3); touch ${folder}/started
      "${join(dirname(k6), 'delaylink')}" | sed -u "s/\"deviceDrops\":0/\"deviceDrops\":$drops/; s/\"quiet\":true/\"quiet\":false/"`,
    { mode: 0o755 },
  );
  const out = newOut();
  const inWindow: Variant = {
    ...noPush,
    name: 'in-window',
    load: { ...endless, secondsHere: 1, warmupSeconds: 0.5 },
  };
  const file = scenarioFile([noPush, inWindow], { load: { ...load, requests: 200 } });
  const run = startScenario([file, '--rounds', '1', '--store', 'none', '--out', out], env);
  const result = await wholeResult(run, out);
  const { state, variants, warnings } = result;
  expect([state, variants.map(({ rounds }) => rounds.length)]).toEqual(['complete', [1, 1]]);
  expect(warnings.join('\n')).toMatch(
    /^round 1 was dropped and repeated as round 2: the network's own devices dropped packets \(3\) /m,
  );
  // Packets in flight after the window do not affect the round.
  expect(warnings.filter((line) => line.includes('on their way'))).toEqual([
    expect.stringMatching(`^no-push: .* after the load of round ${keptRounds(result)[0]}, `),
  ]);
});

/** Waits until k6 loads the server of a round; returns all processes of the run, and its namespaces. */
async function underLoad(run: ScenarioRun, out: string, round = 1) {
  return vi.waitFor(() => {
    if (run.hasEnded()) throw new Error(`the run ended: ${run.stderr()}`);
    expect(
      readFileSync(join(runFolder(out), `round-${round}/k6-1/record.ndjson`), 'utf8'),
    ).toContain('loadgen_requests');
    const processes = descendants(run.pid);
    expect(processes.map(({ command }) => command)).toEqual(
      expect.arrayContaining(['nginx', 'k6']),
    );
    // The previous round's namespaces are gone.
    expect(processes.filter(({ command }) => command === 'delaylink')).toHaveLength(1);
    const { netns } =
      (
        JSON.parse(readFileSync(join(runFolder(out), `round-${round}/k6-1/load.json`), 'utf8')) as {
          phases: { sides: { netns: string }[] }[];
        }
      ).phases[0]?.sides[0] ?? expect.fail();
    return {
      processes,
      namespaces: [namespaceAt(netns), namespaceAt(`/proc/${pidOf(processes, 'nginx')}/ns/net`)],
    };
  }, soon);
}
const pidOf = (processes: readonly Seen[], wanted: string) =>
  processes.find(({ command }) => command === wanted)?.pid ?? NaN;

async function expectNothingLeft({
  processes,
  namespaces,
}: {
  processes: readonly Seen[];
  namespaces: readonly string[];
}) {
  expect(new Set([...namespaces, namespaceAt('/proc/self/ns/net')]).size).toBe(3);
  await vi.waitFor(() => expect(stillRunning(processes)).toEqual([]), soon);
  await vi.waitFor(() => expect(holdersOf(namespaces)).toEqual([]), soon);
}

const endlessRun = (out: string, store: 'influx' | 'none') =>
  startScenario(
    [
      scenarioFile([noPush], { load: endless }),
      ...`--rounds 1 --store ${store} --out ${out}`.split(' '),
    ],
    home.env,
  );

test('nothing is left after Ctrl-C, even if the link was already killed', async () => {
  const before = ownNetwork();
  const out = newOut();
  const run = endlessRun(out, 'none');
  const first = await underLoad(run, out);
  process.kill(pidOf(first.processes, 'delaylink'), 'SIGKILL');
  const second = await underLoad(run, out, 2);
  await expectNothingLeft({
    ...first,
    processes: first.processes.filter(
      ({ pid }) => !second.processes.some((process) => process.pid === pid),
    ),
  });
  run.kill('SIGINT');
  expect(await run.ended).toBe(130);
  await expectNothingLeft(second);
  const { state, warnings } = readResult(out);
  expect(state).toBe('partial');
  expect(warnings.join('\n')).toMatch(
    /^round 1 was dropped and repeated as round 2: no-push: the link .* ended by SIGKILL$/m,
  );
  expect(ownNetwork()).toEqual(before);
});

const nobody = 65534;
const args = (out: string) => [
  'scenario',
  scenarioFile([noPush], { load: { ...load, requests: 400 } }),
  ...`--rounds 1 --store none --out ${out}`.split(' '),
];

function usersHome(): { env: Record<string, string>; out: string } {
  const folder = newFolder();
  mkdirSync(join(folder, 'tmp'));
  for (const path of [folder, join(folder, 'tmp')]) chownSync(path, nobody, nobody);
  // The user's folders may be private.
  for (const name of ['k6', 'delaylink'])
    copyFileSync(join(dirname(home.env['K6_BIN'] as string), name), join(folder, name));
  return {
    env: {
      ...home.env,
      HOME: folder,
      TMPDIR: join(folder, 'tmp'),
      BAKEOFF_HOME: join(folder, 'home'),
      K6_BIN: join(folder, 'k6'),
    },
    out: join(folder, 'results'),
  };
}

const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--'];

/** Skips if that user cannot read the project or create namespaces. */
function requireUser(context: TestContext) {
  requireRoot(context);
  const [command = '', ...args] = asNobody;
  args.push(...'unshare --user --map-root-user --net test -r'.split(' '));
  args.push(join(projectRoot, 'package.json'));
  try {
    execFileSync(command, args, { stdio: 'pipe' });
  } catch (error) {
    const reason = `another user cannot make namespaces here, or not read ${projectRoot}: ${(error as Error).message.trim()}`;
    console.warn(`SKIPPED, a network without root: ${reason}`);
    context.skip(reason);
  }
}

// A private view of the network's device for this run.
const withDevice = (mode: string) => [
  'unshare',
  '--mount',
  'sh',
  '-ec',
  `mount -t tmpfs none /dev/net; mknod -m ${mode} /dev/net/tun c 10 200; exec "$@"`,
  'sh',
  ...asNobody,
];

test('a network device without permission is a one-line error', async (context) => {
  requireUser(context);
  const { env, out } = usersHome();
  const run = startCommand(args(out), env, withDevice('600'));
  expect(await run.ended).toBe(1);
  expect(run.stderr()).toMatch(
    /^a network .* cannot be made: \/dev\/net\/tun is closed to this user: .*"chmod 666 \/dev\/net\/tun"\n$/,
  );
});

test('a user can create a network in a user namespace', async (context) => {
  requireUser(context);
  const { env, out } = usersHome();
  const run = startCommand(args(out), env, withDevice('666'));
  const { variants, kernelSettings } = await wholeResult(run, out);
  const [phase] = variants[0]?.rounds[0]?.phases ?? [];
  expect(phase).toMatchObject({ requests: 400, responses: { '2xx': 400 }, errors: { total: 0 } });
  expect(phase?.network?.toServer.packets).toBeGreaterThan(5.5 * 400);
  expect(kernelSettings.filter(({ problem }) => problem !== undefined)).toEqual([]);
});
