// Checks that other generators see the same effects as bakeoff. Absolute requests/s differ between generators: a faster generator
// waits more often, and the wake-ups cost the server CPU time. So the part compares effects, the ratio between two servers.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mean } from '../../lib/analysis/statistics.ts';
import { effect, percent } from '../../lib/format.ts';
import { defineScenario, h2load, nghttpd, nginx } from '../../lib/scenario/index.ts';
import type { LoadProfile, Page, Scenario, ServerSpec } from '../../lib/scenario/model.ts';
import { load as wrkLoad } from '../../scenarios/h2o-vs-nginx.ts';
import { h2load as h2loadPeer, stockK6, wrk, type Contender } from '../contenders.ts';
import { largePage, smallPage, tlsLayer } from '../experiments.ts';
import { inContext, noted, oneRound, ratioIn, type Lab, type Load } from './lab.ts';
import { peerTurns } from './peer-turns.ts';
import { costLayer } from './power.ts';
import type { EffectSeen, ProofData } from './results.ts';
import { ratioOf } from './statistics.ts';

/** A peer's turns per server and round. */
const turnsPerRound = 6;

const [without, withIt] = ['without', 'with'] as const;

interface Agreement {
  scenario: Scenario;
  peers: readonly Contender[];
}

function agreement(
  title: string,
  load: LoadProfile,
  page: Page,
  servers: readonly [ServerSpec, ServerSpec],
  peers: readonly Contender[],
): Agreement {
  const variants = [
    { name: without, server: servers[0] },
    { name: withIt, server: servers[1] },
  ];
  return {
    scenario: defineScenario({
      name: 'agreement',
      title,
      knob: 'the server',
      load,
      page,
      variants,
    }),
    peers,
  };
}

/** This many lines make an nginx request two to three times as expensive, so that the server is the bottleneck. */
export const costlyLines = 200;

const layerOf = (name: string): string => join(import.meta.dirname, '..', name);
const oneStream = h2load('-D 10 -c 100 -m 1');

/** @param folder receives the config layers */
async function agreementsIn(folder: string): Promise<Agreement[]> {
  await mkdir(folder, { recursive: true });
  const costly = join(folder, 'costly.conf');
  await writeFile(costly, costLayer(costlyLines));
  const nginxOf = (...layers: string[]): ServerSpec =>
    nginx(['base', 'workers', ...layers], { workers: 1 });
  const openFileCache = (...layers: string[]): [ServerSpec, ServerSpec] => [
    nginxOf(costly, ...layers),
    nginxOf(costly, 'open-file-cache', ...layers),
  ];
  return [
    agreement('open_file_cache, HTTP/1.1', wrkLoad, smallPage, openFileCache(), [wrk, stockK6]),
    agreement(
      'open_file_cache, HTTP/2 over TLS',
      oneStream,
      smallPage,
      openFileCache('keepalive-unlimited', tlsLayer),
      [h2loadPeer],
    ),
    agreement(
      'open_file_cache, HTTP/2 without TLS',
      h2load('-D 10 -c 100 -m 1 -p h2c'),
      smallPage,
      openFileCache('keepalive-unlimited', layerOf('nginx-h2c.conf')),
      [h2loadPeer],
    ),
    agreement(
      'nghttpd against nginx, HTTP/2 over TLS, 525,304 bytes',
      oneStream,
      largePage,
      [nginxOf('keepalive-unlimited', tlsLayer), nghttpd(['h2'], { workers: 1 })],
      [h2loadPeer],
    ),
  ];
}

/** Each round loads every pair of servers in bakeoff's turns, as in a run, and right afterwards in turns of each peer. */
export async function measureAgreement(
  lab: Lab,
  data: ProofData['agreement'],
  save: () => Promise<void>,
): Promise<void> {
  const agreements = await agreementsIn(join(lab.scratch, 'agreement'));
  for (const {
    scenario: { title },
    peers,
  } of agreements)
    data.cases.push({
      title,
      ours: nothingYet(),
      peers: peers.map(({ name }) => ({ name, ...nothingYet() })),
    });
  for (let round = 1; round <= lab.repeats; round++) {
    for (const [index, { scenario, peers }] of agreements.entries()) {
      const seen = data.cases[index] as ProofData['agreement']['cases'][number];
      await noted(lab, async () => {
        const ours = await inContext(lab, scenario, {}, (context) => oneRound(context, round));
        const theirs: (readonly Load[])[] = [];
        for (const peer of peers)
          theirs.push(await peerTurns(lab, scenario, peer, turnsPerRound, `${peer.name} ${round}`));
        // If one peer's turns fail, the whole round is dropped.
        add(seen.ours, [ours]);
        for (const [place, turns] of theirs.entries()) add(seen.peers[place] as EffectSeen, turns);
        lab.say(
          `round ${round} of ${lab.repeats}, ${scenario.title}: ${[{ name: 'bakeoff', ...seen.ours }, ...seen.peers].map(lastOf).join(', ')}`,
        );
      });
      await save();
    }
  }
}

function nothingYet(): EffectSeen {
  return { ratios: [], generatorShares: [] };
}

/** A round's ratio and share are means over the turns. */
function add({ ratios, generatorShares }: EffectSeen, turns: readonly Load[]): void {
  ratios.push(ratioOf(turns.map(({ rps }) => ratioIn(rps, withIt, without))).ratio);
  generatorShares.push(mean(turns.map((turn) => Math.max(...turn.generatorShares.values()))));
}

function lastOf({ name, ratios, generatorShares }: EffectSeen & { name: string }): string {
  return `${name} ${effect(ratios.at(-1) as number)} (${percent(generatorShares.at(-1) as number)} of its core)`;
}
