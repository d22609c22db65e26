// Which variants of a round are alive together and take turns.
import { networkOf } from '../scenario/catalogue.ts';
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

/** With more each would wait too long for its next turn. */
const mostTogether = 100;

/** Descriptors of k6 beside the connections, as the engine counts them. */
export const otherFiles = 64;

/** k6 and the servers themselves leave at least this part of the free memory to the rest of the machine. */
const usablePart = 0.5;
/** Of a server and its part of k6, without connections. */
const baseBytes = 64 * 1024 ** 2;
/** Of a connection on both sides: buffers, TLS. */
const connectionBytes = 64 * 1024;

/** Whether the variant takes turns: not with a network of the run's own, whose packets are due in real time, or with several phases. */
export function isInTurns(scenario: Scenario, variant: Variant): boolean {
  return scenario.phases === undefined && networkOf(scenario, variant) === undefined;
}

/** The groups of every round: those at a rate and the others apart, each divided where files or memory do not allow all at once. */
export function groupsOf(
  scenario: Scenario,
  variants: readonly PlannedVariant[],
  limits: GroupLimits,
): Group[] {
  const together = variants.filter(({ variant }) => isInTurns(scenario, variant));
  return [
    ...variants
      .filter((planned) => !together.includes(planned))
      .map((planned) => ({ sides: [planned] })),
    ...fitting(
      together.filter(({ load }) => !isAtRate(load)),
      limits,
    ),
    ...fitting(
      together.filter(({ load }) => isAtRate(load)),
      limits,
    ),
  ];
}

/** The groups with these variants on their own. @param names of variants */
export function apart(groups: readonly Group[], names: ReadonlySet<string>): Group[] {
  return groups.flatMap(({ sides, ...group }) => {
    const alone = sides.filter(({ variant }) => names.has(variant.name));
    const rest = sides.filter((side) => !alone.includes(side));
    return [...(rest.length === 0 ? [] : [rest]), ...alone.map((side) => [side])].map((some) => ({
      ...group,
      sides: some,
    }));
  });
}

function fitting(
  variants: readonly PlannedVariant[],
  { files, memoryBytes }: GroupLimits,
): Group[] {
  const groups: PlannedVariant[][] = [];
  let [filesLeft, bytesLeft] = [0, 0];
  for (const planned of variants) {
    const { connections } = planned.load;
    const bytes = baseBytes + connections * connectionBytes;
    if (
      groups.length === 0 ||
      groups.at(-1)?.length === mostTogether ||
      connections > filesLeft ||
      bytes > bytesLeft
    ) {
      groups.push([]);
      [filesLeft, bytesLeft] = [files - otherFiles, memoryBytes * usablePart];
    }
    groups.at(-1)?.push(planned);
    filesLeft -= connections;
    bytesLeft -= bytes;
  }
  return groups.map((sides) => ({ sides }));
}

/** Commands that have fixed a port which another one of their group has too, so that they cannot be alive together, and why, as a clause. */
export function portsTaken({ sides }: Group): [variant: string, why: string][] {
  const taken = new Map<number, string>();
  return sides.flatMap(({ variant: { name, server } }): [string, string][] => {
    if (server.name !== 'command' || server.port === undefined) return [];
    const other = taken.get(server.port);
    taken.set(server.port, other ?? name);
    return other === undefined
      ? []
      : [
          [
            name,
            `it listens on port ${server.port}, as ${other} does (write {port} where it can be told one)`,
          ],
        ];
  });
}
