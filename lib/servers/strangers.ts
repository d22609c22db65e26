// Finds connections on loopback to a server under load that the load did not make. They come from code in another side's config, or from
// another program.
import { textOf } from '../files.ts';
import { lookAtRandom } from '../random.ts';
import { socketsOf, userOf } from '../proc-files.ts';
import { isLoopback } from './ports.ts';
import { isStarted, isWatched, type RunningServer } from './server.ts';

/** A side whose server is on the machine's loopback. */
export interface SharedSide {
  name: string;
  server: RunningServer;
  /** The most that the load opens at once. */
  connections: number;
}

/** A client's socket on loopback. `port`: the server's port. */
interface Client {
  port: number;
  user: number;
  inode: string;
}

const samples = { everyMs: 250, mostUsed: 0.02 };

/**
 * Watches for strangers until the returned function is called. That function returns for each side the name of the side that had
 * connections to its server, '' for another program, or undefined if there were none.
 * @param generator process id of the load generator
 */
export function watchStrangers(
  sides: readonly SharedSide[],
  generator: number,
): () => Promise<(string | undefined)[]> {
  const found = new Map<SharedSide, string>();
  const end = lookAtRandom(() => {
    const asked = sides.filter((side) => !found.has(side));
    lookFor(asked, sides, generator).forEach((by, side) => found.set(side, by));
  }, samples);
  return async () => {
    await end();
    return sides.map((side) => found.get(side));
  };
}

/** Returns the strangers of the sides `asked` for that have connections now. */
function lookFor(
  asked: readonly SharedSide[],
  sides: readonly SharedSide[],
  generator: number,
): Map<SharedSide, string> {
  const found = new Map<SharedSide, string>();
  const own = process.geteuid?.() ?? 0;
  const clients = clientsOf(asked.map(({ server }) => portOf(server)));
  for (const side of asked) {
    const ofSide = clients.filter(({ port }) => port === portOf(side.server));
    const ofOthers = ofSide.filter(({ user }) => user !== own);
    if (ofOthers.length === 0 && ofSide.length <= side.connections) continue;
    const by = strangerAmong(ofSide, side, sides, generator);
    if (by !== undefined) found.set(side, by);
  }
  return found;
}

/**
 * Returns the name of another side that has one of these sockets, or '' for another program; undefined if only the side itself and the load
 * have them.
 */
function strangerAmong(
  clients: readonly Client[],
  side: SharedSide,
  sides: readonly SharedSide[],
  generator: number,
): string | undefined {
  const port = portOf(side.server);
  const owners = ownersOf(sides);
  const ofLoad = new Set([generator, process.pid].flatMap((pid) => socketsOf(pid)));
  const unknown: Client[] = [];
  for (const client of clients) {
    if (ofLoad.has(client.inode)) continue;
    const owner = owners.bySocket.get(client.inode) ?? owners.byUser.get(client.user);
    if (owner === undefined) unknown.push(client);
    else if (owner !== side) return owner.name;
  }
  // A server at an address may have other clients.
  if (unknown.length === 0 || !isStarted(side.server)) return undefined;
  // A socket that the load has closed meanwhile does not count.
  const still = new Set(clientsOf([port]).map(({ inode }) => inode));
  return unknown.some(({ inode }) => still.has(inode)) ? '' : undefined;
}

function ownersOf(sides: readonly SharedSide[]) {
  const bySocket = new Map<string, SharedSide>();
  const byUser = new Map<number, SharedSide>();
  for (const side of sides) {
    if (!isWatched(side.server)) continue;
    for (const pid of side.server.processes()) {
      for (const inode of socketsOf(pid)) bySocket.set(inode, side);
      const user = userOf(pid);
      // If root runs bakeoff, servers with a config have users of their own; other sides have the load's user.
      if (user !== undefined && user !== process.geteuid?.()) byUser.set(user, side);
    }
  }
  return { bySocket, byUser };
}

/** The port that a server is loaded at. */
export function portOf({ origin }: Pick<RunningServer, 'origin'>): number {
  const { protocol, port } = new URL(origin);
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

/** Returns whether strangers of this server can be seen here. */
export function isOnLoopback({ origin }: RunningServer): boolean {
  return isLoopback(new URL(origin).hostname);
}

/** Returns the open sockets that are connected to these ports of loopback. A closed socket has no inode. */
function clientsOf(ports: readonly number[]): Client[] {
  if (ports.length === 0) return [];
  const hex = ports.map((port) => port.toString(16).toUpperCase().padStart(4, '0'));
  // The fields are the remote address (127.0.0.0/8, also mapped into IPv6, or ::1, in 32-bit words of the kernel's byte order) and port,
  // the state, three fields of timers, the user, a timer, the inode. With thousands of sockets, one pattern is much faster than splitting
  // each line.
  const client = new RegExp(
    ` (?:(?:0{16}FFFF0000)?[0-9A-F]{6}7F|0{24}01000000):(${hex.join('|')}) [0-9A-F]{2} \\S+ \\S+ \\S+ +(\\d+) +\\d+ ([1-9]\\d*) `,
    'g',
  );
  return ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((kind) =>
    [...textOf(`/proc/net/${kind}`).matchAll(client)].map(([, port = '', user, inode = '']) => ({
      port: parseInt(port, 16),
      user: Number(user),
      inode,
    })),
  );
}
