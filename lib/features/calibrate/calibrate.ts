// The command calibrate: measures servers whose figures are known by arithmetic, with bakeoff and with other generators.
import { join, relative } from 'node:path';
import type { Additions } from '../../cli/feature.ts';
import { inOneLine, UserError } from '../../errors.ts';
import { duration, enumeration, whole } from '../../format.ts';
import { oneRunAtATime } from '../../machine/locks.ts';
import { underSignals } from '../../signals.ts';
import { terminal, terminalTable } from '../../report/table.ts';
import { find, thisMachine } from '../../setup/machine.ts';
import { writeWhole } from '../../writing.ts';
import { outcome, tableOfCases, voidReasons, type Calibration, type Case } from './judge.ts';
import { checkRecordFolder } from './kept.ts';
import { calibrationCores, inLab, type Lab } from './lab.ts';
import { arrangements, groupsOfSides, Measuring } from './measure.ts';
import { calibrationPage, calibrationText } from './page.ts';
import { canLoad, findPeers, requirePeerNames, type Peer } from './installed-peers.ts';
import { knownServers } from './known-servers.ts';
import type { KnownServer } from './servers.ts';
import { allNames, zip } from '../../present.ts';

export interface CalibrateOptions {
  additions: Additions;
  isQuick: boolean;
  /** The beginning of the servers' names; others are left out. */
  only: string | undefined;
  /** Names of other generators; undefined: all that are installed. */
  peers: readonly string[] | undefined;
  /** Receives calibration.md, .html and .json. */
  folder: string;
  command: string;
}

/** Exit code where bakeoff is beyond its bounds. */
const beyondBounds = 3;
/**
 * Measures, prints and writes the table.
 * @returns the exit code
 * @throws UserError, Interrupted: what was measured by then is printed and written
 */
export async function figuresTable(options: CalibrateOptions): Promise<0 | 3> {
  const servers = await startable(chosenServers(options));
  requirePeerNames(options.peers ?? []);
  await checkRecordFolder(options.folder);
  const cores = calibrationCores();
  const release = await oneRunAtATime();
  try {
    return await underSignals('ending the calibration', (signal) =>
      inLab(cores, signal, options.additions, (lab) => calibrateIn(lab, servers, options)),
    );
  } finally {
    release();
  }
}

async function calibrateIn(
  lab: Lab,
  servers: readonly KnownServer[],
  { isQuick, peers: asked, command, folder }: CalibrateOptions,
): Promise<0 | 3> {
  const usual = isQuick ? [] : undefined;
  const peers = await findPeers(lab.binaries.k6, asked ?? usual, lab.signal);
  const calibration: Calibration = {
    command,
    startedAt: new Date().toISOString(),
    endedAt: '',
    environment: lab.environment,
    peers: peers.map(({ generator: { name }, version }) => ({ name, version })),
    cases: servers.map((known): Case => ({ known, truth: known.truth(), seen: new Map() })),
    failures: [],
    isPartial: true,
  };
  try {
    await measureAll(lab, calibration, peers, isQuick);
    calibration.isPartial = false;
  } finally {
    calibration.endedAt = new Date().toISOString();
    await write(calibration, folder);
    print(calibration, folder);
  }
  return outcome(calibration.cases).beyond.length === 0 ? 0 : beyondBounds;
}

function chosenServers({ isQuick, only }: CalibrateOptions): KnownServer[] {
  const servers = knownServers.filter((known) => only !== undefined || !isQuick || known.isQuick);
  const chosen = servers.filter(({ name }) => name.startsWith(only ?? ''));
  if (chosen.length === 0)
    throw new UserError(
      `--only ${only}: no server's name begins so. They are ${enumeration(servers.map(({ name }) => `"${name}"`))}`,
      2,
    );
  return chosen;
}

/** Returns the servers that can be started here. @throws UserError (exit code 2) if none can */
async function startable(servers: readonly KnownServer[]): Promise<readonly KnownServer[]> {
  const isForCaddy = ({ front }: KnownServer): boolean => front === 'caddy';
  const left = servers.filter(isForCaddy);
  if (left.length === 0 || (await find('caddy', thisMachine())) !== undefined) return servers;
  const missing = 'caddy, which has HTTP/3, is not in PATH';
  if (left.length === servers.length) throw new UserError(`${missing}: install it`, 2);
  console.error(`${missing}: "${allNames(left).join('", "')}" is left out`);
  return servers.filter((known) => !isForCaddy(known));
}

async function measureAll(
  lab: Lab,
  { cases, failures }: Calibration,
  peers: readonly Peer[],
  isQuick: boolean,
): Promise<void> {
  const measuring = new Measuring(lab);
  const servers = cases.map(({ known }) => known);
  try {
    for (const arrangement of arrangements) {
      if (isQuick && arrangement === '8 sides') continue;
      for (const sides of groupsOfSides(servers, arrangement)) {
        lab.say(`${arrangement} · ${namesOf(sides)}`);
        const all = await measuring.turns(sides);
        for (const [known, seen] of zip(sides, all))
          cases.find((testCase) => testCase.known === known)?.seen.set(arrangement, seen);
      }
    }
    for (const peer of peers)
      for (const testCase of cases.filter(({ known }) => known.forPeers && canLoad(peer, known)))
        await addPeer(lab, measuring, peer, testCase, failures);
  } finally {
    await measuring.close();
  }
}

/** A generator that fails has no figures in that place. */
async function addPeer(
  lab: Lab,
  measuring: Measuring,
  peer: Peer,
  testCase: Case,
  failures: string[],
): Promise<void> {
  const place = `${peer.generator.name} · ${testCase.known.name}`;
  lab.say(place);
  try {
    testCase.seen.set(peer.generator.name, await measuring.byPeer(peer, testCase.known));
  } catch (error) {
    lab.signal.throwIfAborted();
    if (!(error instanceof UserError)) throw error;
    failures.push(`${place}: ${error.message}`);
  }
}

const namesOf = (servers: readonly KnownServer[]): string => allNames(servers).join(', ');

async function write(calibration: Calibration, folder: string): Promise<void> {
  const cases = calibration.cases.map(({ known, truth, seen }) => ({
    name: known.name,
    truth,
    seen: Object.fromEntries(seen),
  }));
  await writeWhole(
    join(folder, 'calibration.json'),
    `${JSON.stringify({ ...calibration, cases }, null, 1)}\n`,
  );
  await writeWhole(join(folder, 'calibration.html'), await calibrationPage(calibration));
  await writeWhole(join(folder, 'calibration.md'), calibrationText(calibration));
}

function print({ cases, peers, failures, ...calibration }: Calibration, folder: string): void {
  const names = allNames(peers);
  const table = tableOfCases(cases, names);
  for (const line of terminalTable(table, terminal())) console.log(line);
  console.log('');
  if (calibration.isPartial) console.log('Ended early: not all was measured.');
  for (const line of [...failures, ...voidReasons(cases)]) console.log(line);
  const { known, beyond } = outcome(cases);
  const seconds = (Date.parse(calibration.endedAt) - Date.parse(calibration.startedAt)) / 1000;
  if (beyond.length === 0)
    console.log(
      `All ${whole(known)} figures of bakeoff are within their bounds (${duration(seconds)}).`,
    );
  else {
    console.log(`Beyond their bounds are ${beyond.length} of bakeoff's ${whole(known)} figures:`);
    for (const line of beyond) console.log(`  ${line}`);
  }
  console.log(inOneLine(`page: ${relative('.', join(folder, 'calibration.html'))}`));
}
