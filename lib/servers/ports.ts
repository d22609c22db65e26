// Ports and addresses of this machine: free ones and the processes that listen.
import { randomInt } from 'node:crypto';
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, systemError } from '../errors.ts';
import { ifThere, linkOf, textOf } from '../files.ts';
import { run, type Before } from '../process.ts';
import { livingFolder, socketsOf } from '../proc-files.ts';
import { anyServer, serverNames } from '../setup/servers.ts';

/** `address` is IPv4, such as 127.0.0.1. */
export interface Address {
  address: string;
  port: number;
}

export type UpstreamAddress = { port: number } | { socket: string };

export const loopbackAddress = '127.0.0.1';

const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const v6 = '::1|(?:0{1,4}:){7}0{0,3}1';
const loopback = new RegExp(`^(?:localhost|127(?:\\.${octet}){3}|${v6}|\\[(?:${v6})\\])$`, 'i');

/** Returns whether a host of a URL or a config is this machine. It accepts the usual notations only, and asks no resolver. */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/** Higher ports are those that the kernel gives to outgoing connections. */
const ownPorts = { first: 20_000, count: 10_000 };
export const ownPortsText = `${ownPorts.first} to ${ownPorts.first + ownPorts.count - 1}`;
const portsTried = 100;
/** The next port to try, so that servers which start at once get different ports. */
let nextPort = randomInt(ownPorts.count);

/** Returns a port on which nothing listens now. Throws UserError if all tried ports are in use, or the error of listening. */
export async function freePort(address = loopbackAddress): Promise<number> {
  for (let tried = 0; tried < portsTried; tried++) {
    const port = ownPorts.first + (nextPort++ % ownPorts.count);
    const problem = await portProblem({ address, port });
    if (problem === undefined) return port;
    if (problem.code !== 'EADDRINUSE') throw problem;
  }
  throw new UserError(
    `none of ${portsTried} ports of ${address} from ${ownPortsText} is free: end what has them (ss -tlnp)`,
  );
}

/** Returns the error of listening there (EADDRINUSE, EACCES, …); undefined if a server can listen. */
export function portProblem(at: Address): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer().once('error', resolve);
    server.listen(at.port, at.address, () => server.close(resolve));
  });
}

const pollMs = 50;
/** A command may listen elsewhere first, such as for an administrator. */
const elsewhereLimitMs = 5000;

/**
 * Waits until a server listens at its address itself, since another process may have answered.
 * @throws UserError if others on the network can reach it, it listens elsewhere, or another process has its port; the signal's reason
 */
export async function untilItListens(
  listening: () => Listening[],
  at: Address,
  pid: number,
  who: string,
  limitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const deadlineMs = performance.now() + limitMs + elsewhereLimitMs;
  let elsewhereSinceMs: number | undefined;
  for (;;) {
    const sockets = listening();
    requireLoopback(sockets, at, who);
    if (sockets.some((socket) => isAt(socket, at))) return;
    const nowMs = performance.now();
    if (sockets.length > 0) elsewhereSinceMs ??= nowMs;
    if (nowMs - (elsewhereSinceMs ?? nowMs) >= elsewhereLimitMs)
      throw new UserError(elsewhere(sockets, at, who));
    if (nowMs >= deadlineMs) throw new UserError(noPort(pid, at, who, limitMs));
    await delay(pollMs);
    signal.throwIfAborted();
  }
}

const caddyAdminPort = 2019;

function elsewhere(sockets: readonly Listening[], at: Address, who: string): string {
  const places = [...new Set(sockets.map(hostAndPort))].join(' and ');
  // Caddy may listen for its administrator before it listens for its sites.
  if (who.startsWith('caddy') && sockets.every((socket) => socket.port === caddyAdminPort))
    return `${who} listens on ${places}, its administrator's, and not on ${hostAndPort(at)}: name a config with --config that listens at {$PORT}`;
  const [first] = sockets as [Listening, ...Listening[]];
  const { port } = sockets.find((socket) => socket.port !== caddyAdminPort) ?? first;
  const remedy = sockets.some((socket) => socket.port === at.port)
    ? 'write 127.0.0.1 where its address belongs'
    : `write {port} where its port belongs (PORT in its environment says it too), or say which port it has fixed (--port ${port}; in a scenario port: ${port})`;
  return `${who} listens on ${places}, and not on ${hostAndPort(at)}: ${remedy}`;
}

function noPort(pid: number, at: Address, who: string, limitMs: number): string {
  try {
    readdirSync(`/proc/${pid}/fd`);
  } catch (error) {
    if (systemError(error).code === 'EACCES')
      return `${who} hides from this user whether ${hostAndPort(at)} is its own: its program has extra rights (setcap, setuid) or cannot be read; start a copy without them (cp), or start bakeoff as root`;
  }
  return `${who} does not listen on ${hostAndPort(at)} within ${limitMs / 1000} s, where somebody else answers: end that, or see why it waits; a container or a service is compared by its address`;
}

/** Returns whether a process listens at an address, in its own network namespace. */
export function listensOn(pid: number, at: Address): boolean {
  return listeningOf([pid]).some((socket) => isAt(socket, at));
}

function isAt(socket: Address, { address, port }: Address): boolean {
  return socket.address === address && socket.port === port;
}

interface Listening extends Address {
  inode: string;
  uid: number;
}

/** Returns the TCP sockets on which processes of one network namespace listen. @param user a user who has no other processes */
export function listeningOf(pids: readonly (number | string)[], user?: number): Listening[] {
  if (pids.length === 0) return [];
  const sockets = listeningSockets(livingFolder(String(pids[0])));
  // Root in a container may not see others' descriptors (CAP_SYS_PTRACE).
  if (user !== undefined) return sockets.filter(({ uid }) => uid === user);
  const inodes = new Set(pids.flatMap((pid) => socketsOf(pid)));
  return sockets.filter(({ inode }) => inodes.has(inode));
}

/** The advice for a command that starts one of these servers. The ports of its config are moved then. */
export const configIsSide = `a config of ${anyServer} is a side without a command`;

/** Throws UserError if others on the network can reach a socket, except at the server's own address. */
export function requireLoopback(sockets: readonly Listening[], at: Address, who: string): void {
  const open = sockets.find(
    ({ address }) => address !== at.address && !/^127\.|^::1$/.test(address),
  );
  if (open === undefined) return;
  const isConfigurable = serverNames.some((name) => who.includes(`${name} (pid`));
  const own = isConfigurable ? `; ${configIsSide}` : '';
  throw new UserError(
    `${who} listens on ${hostAndPort(open)}, where others on the network can reach it: have it listen on loopback alone, such as with --listen 127.0.0.1:{port}, --bind 127.0.0.1, server.listen(process.env.PORT, '127.0.0.1'), bind 127.0.0.1 in a Caddyfile or haproxy.cfg, or Listen 127.0.0.1:\${PORT} in Apache's config${own}`,
  );
}

function hostAndPort({ address, port }: Address): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** Returns all listening TCP sockets of a network namespace. @param folder /proc, or a process's folder in it */
export function listeningSockets(folder: string): Listening[] {
  return ['tcp', 'tcp6']
    .flatMap((list) => listeningLines(`${folder}/net/${list}`))
    .map(([, local = '', , , , , , uid, , inode = '']) => {
      const [address = '', hexPort = ''] = local.split(':');
      const port = parseInt(hexPort, 16);
      return { address: addressText(address), port, inode, uid: Number(uid) };
    });
}

/**
 * Returns the fields of the listening sockets, with which the kernel's list begins (tcp_seq_start in its net/ipv4/tcp_ipv4.c). The rest is
 * not read: after a load it has tens of thousands of closed connections, which take 50 ms and more.
 */
function listeningLines(file: string): string[][] {
  const descriptor = ifThere(() => openSync(file, 'r'));
  if (descriptor === undefined) return [];
  const buffer = Buffer.alloc(16 * 1024);
  try {
    for (let text = ''; ;) {
      const length = readSync(descriptor, buffer, 0, buffer.length, null);
      text += buffer.toString('latin1', 0, length);
      // The first line has titles, and the last one may go on.
      const lines = text.split('\n').slice(1, -1).map(fieldsOf);
      const end = lines.findIndex(([, , , state]) => state !== tcpStates.listening);
      if (end >= 0) return lines.slice(0, end);
      if (length === 0) return lines;
    }
  } finally {
    closeSync(descriptor);
  }
}

const fieldsOf = (line: string): string[] => line.trim().split(/\s+/);
/** The states as the kernel prints them (include/net/tcp_states.h, include/uapi/linux/net.h). */
const tcpStates = { established: '01', listening: '0A' };
const unixConnected = '03';

/**
 * Returns whether processes of one network namespace have connections that they opened, such as to a database; true also if that cannot be
 * seen. Connections to each other over unix sockets do not count.
 */
export async function connectsOut(pids: readonly (number | string)[]): Promise<boolean> {
  const inodes = new Set(pids.flatMap((pid) => socketsOf(pid)));
  if (inodes.size === 0) return true;
  const folder = livingFolder(String(pids[0]));
  const linesOf = (list: string) => textOf(`${folder}/net/${list}`).split('\n').map(fieldsOf);
  const listening = listeningOf(pids);
  const unix = linesOf('unix').filter(([, , , , , , inode = '']) => inodes.has(inode));
  const known = new Set([
    ...listening.map(({ inode }) => inode),
    ...unix.map(([, , , , , , inode = '']) => inode),
  ]);
  // The list of TCP is long after a load, and needed only for other sockets.
  if ([...inodes].some((inode) => !known.has(inode))) {
    const own = new Set(listening.map(({ port }) => port));
    const isOut = ['tcp', 'tcp6'].flatMap(linesOf).some((fields) => {
      const [, local = '', , state, , , , , , inode = ''] = fields;
      const port = parseInt(local.split(':')[1] ?? '', 16);
      return state === tcpStates.established && inodes.has(inode) && !own.has(port);
    });
    if (isOut) return true;
  }
  const connected = unix.flatMap(([, , , , , state, inode = '']) =>
    state === unixConnected ? [inode] : [],
  );
  if (connected.length === 0) return false;
  const peers = await unixPeers(folder);
  return connected.some((inode) => !inodes.has(peers.get(inode) ?? ''));
}

/**
 * Returns the peers of unix sockets by inode, as ss(8) prints them; none without ss.
 * @param folder a process's folder in /proc, whose network namespace is meant
 */
async function unixPeers(folder: string): Promise<ReadonlyMap<string, string>> {
  const network = `${folder}/ns/net`;
  const isHere = linkOf(network) === linkOf('/proc/self/ns/net');
  const before: Before[] = isHere ? [] : [['nsenter', `--net=${network}`, '--']];
  const limit = { seconds: 5, message: 'ss takes too long' };
  const printed = await run({ command: 'ss', args: ['-xH'], before, limit }).catch(() => undefined);
  // ss prints type, state, two queues, then path and inode of both ends.
  const lines = [...(printed?.stdout ?? '').matchAll(/ (\d+) +\S+ (\d+) *$/gm)];
  return new Map(lines.map(([, inode = '', peer = '']) => [inode, peer]));
}

/** The kernel writes an address as 32-bit words in its own byte order. */
function addressText(hex: string): string {
  const bytes = Buffer.from(hex, 'hex').swap32();
  const text = bytes.toString('hex');
  // An IPv4 address may be mapped into IPv6.
  if (/^(?:0{20}ffff)?.{8}$/.test(text)) return bytes.subarray(-4).join('.');
  return new URL(`http://[${text.match(/.{4}/g)?.join(':')}]`).hostname.slice(1, -1);
}
