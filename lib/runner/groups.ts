// Which variants of a round are alive together and take turns.
import { networkOf, pageOf } from '../scenario/catalogue.ts';
import { isAtRate } from '../scenario/load/fit.ts';
import type { Scenario, Variant } from '../scenario/model.ts';
import type { Group, PlannedVariant } from './planned.ts';

/** What bounds a group. */
export interface GroupLimits {
  /** That one process may open. */
  files: number;
  /** That is free on this machine. */
  memoryBytes: number;
}

/** The noise of a machine is slow: sides that alternate faster than it see the same of it. `npm run bench -- proof-slices` tries other lengths. */
const sliceSeconds = 0.01;

/** All the others' turns together stay below it, half of TCP's shortest retransmission (200 ms). */
const longestAwaySeconds = 0.1;
/** With turns of a millisecond each, the shortest that the engine takes. */
const mostTogether = 100;

/** At a rate no side is saturated, and latency is the answer: what begins and ends a turn shall be a small part of it, as `npm run bench -- proof-latency` tries. */
const rateSliceSeconds = 0.25;

/**
 * Where sides drain, a turn is so many answer times of the slowest of them, and this long at least. The engine's longest is the last.
 * While a server works off what is under way no time is lost. It is from where the server has less to do than it could, which is about as
 * long as one request takes by itself, however many connections there are. So requests/s are low by about 1 % at most: less where all
 * answers take about the same time, more where some take many times as long as most.
 */
const drain = { answers: 100, leastSliceSeconds: 0.1, longestSliceSeconds: 10 };

/** Descriptors of k6 beside the connections, as the engine counts them. */
export const otherFiles = 64;

/** At most, of a side at a rate: those of the requests with which the engine begins its turns. */
const settlingConnections = 16;

/** k6 and the servers themselves leave at least this part of the free memory to the rest of the machine. */
const usablePart = 0.5;
/** Of a server and its part of k6, without connections. */
const baseBytes = 64 * 1024 ** 2;
/** Of a connection on both sides: buffers, TLS. */
const connectionBytes = 64 * 1024;
/** What the kernel holds of answers that nobody reads while the side is stopped: its default limit of a socket (tcp_wmem). */
const heldBytes = 4 * 1024 ** 2;

/**
 * Whether the variant takes turns with others. Alone are those with a network of the run's own, whose packets are due in real
 * time, and all of a scenario with several phases on one live server.
 */
export function isInTurns(scenario: Scenario, variant: Variant): boolean {
  return scenario.phases === undefined && networkOf(scenario, variant) === undefined;
}

/**
 * The groups of every round. Together are all that take turns: those with a rate, and those without one. Where files or memory do not allow all at once there are more groups, in the variants' order.
 */
export function groupsOf(scenario: Scenario, variants: readonly PlannedVariant[], limits: GroupLimits): Group[] {
  const together = variants.filter(({ variant }) => isInTurns(scenario, variant));
  return [
    ...variants.filter((planned) => !together.includes(planned)).map((planned) => groupOf([planned])),
    ...fitting(scenario, together.filter(({ load }) => !isAtRate(load)), limits),
    ...fitting(scenario, together.filter(({ load }) => isAtRate(load)), limits),
  ];
}

/** The groups with these variants on their own. @param names of variants */
export function apart(groups: readonly Group[], names: ReadonlySet<string>): Group[] {
  return groups.flatMap(({ sides }) => {
    const alone = sides.filter(({ variant }) => names.has(variant.name));
    const rest = sides.filter((side) => !alone.includes(side));
    return [...(rest.length === 0 ? [] : [groupOf(rest)]), ...alone.map((side) => groupOf([side]))];
  });
}

function fitting(scenario: Scenario, variants: readonly PlannedVariant[], { files, memoryBytes }: GroupLimits): Group[] {
  const groups: PlannedVariant[][] = [];
  let [filesLeft, bytesLeft] = [0, 0];
  for (const planned of variants) {
    const { load, variant } = planned;
    const connections = load.connections + (isAtRate(load) ? settlingConnections : 0);
    const bytes = baseBytes + load.connections * (connectionBytes + Math.min(heldBytes, load.streams * pageOf(scenario, variant).bodyBytes));
    if (groups.length === 0 || groups.at(-1)?.length === mostTogether || connections > filesLeft || bytes > bytesLeft) {
      groups.push([]);
      [filesLeft, bytesLeft] = [files - otherFiles, memoryBytes * usablePart];
    }
    groups.at(-1)?.push(planned);
    filesLeft -= connections;
    bytesLeft -= bytes;
  }
  return groups.map(groupOf);
}

/** These together, however many there are. */
export function groupOf(sides: readonly PlannedVariant[]): Group {
  const hasRate = sides.some(({ load }) => isAtRate(load));
  const shortest = hasRate ? rateSliceSeconds : Math.min(sliceSeconds, longestAwaySeconds / sides.length);
  if (!sides.some(({ drains }) => drains)) return { sides, sliceSeconds: shortest };
  return { sides, sliceSeconds: Math.max(shortest, drain.leastSliceSeconds), drains: true };
}

/**
 * The group with turns that are long enough for its drains.
 * @param answerSeconds that a variant took to answer when it was tried
 */
export function withDrains(group: Group, answerSeconds: (variant: string) => number): Group {
  if (group.drains !== true) return group;
  const longest = Math.max(...group.sides.map(({ variant }) => answerSeconds(variant.name)));
  return { ...group, sliceSeconds: Math.min(drain.longestSliceSeconds, Math.max(group.sliceSeconds, longest * drain.answers)) };
}

/** Servers of a group that cannot be stopped and are loaded at a rate, and why they have to be alone, as a clause. */
export function ratesThatDrain({ sides }: Group): [variant: string, why: string][] {
  if (sides.length === 1) return [];
  return sides.filter((side) => side.drains === true && isAtRate(side.load)).map(({ variant: { name } }) => (
    [name, 'it cannot be stopped, and what is due at its rate while the end of a turn is awaited would be late']
  ));
}

/** Commands that have fixed a port which another one of their group has too, so that they cannot be alive together, and why, as a clause. */
export function portsTaken({ sides }: Group): [variant: string, why: string][] {
  const taken = new Map<number, string>();
  return sides.flatMap(({ variant: { name, server } }): [string, string][] => {
    if (server.name !== 'command' || server.port === undefined) return [];
    const other = taken.get(server.port);
    taken.set(server.port, other ?? name);
    return other === undefined ? [] : [[name, `it listens on port ${server.port}, as ${other} does (write {port} where it can be told one)`]];
  });
}
