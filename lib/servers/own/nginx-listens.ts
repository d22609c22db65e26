// What a person's nginx config listens on.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { bareWord, type Directive } from '../nginx-config.ts';
import { listensByPort, type Listen } from './listens.ts';
import type { Address } from './moved.ts';

/** Ports in one range; each becomes a port of its own here. */
const mostPorts = 100;

/** Throws UserError for what is no address. */
export function parseAddress(listen: Directive): Address {
  const word = bareWord(listen.args[0] ?? '');
  const socket = /^unix:(.+)$/.exec(word)?.[1];
  if (socket !== undefined) return { socket: path.posix.normalize(socket) };
  const { host, ports } = (/^(?<ports>\d+(?:-\d+)?)$/.exec(word) ?? /^(?<host>\[[^\]]+\]|[^:]+)(?::(?<ports>\d+(?:-\d+)?))?$/.exec(word))?.groups ?? { ports: 'none' };
  const [first = NaN, last = first] = (ports ?? '80').split('-').map(Number);
  const count = last - first + 1;
  if (!(first >= 1 && last <= 65_535 && count >= 1)) throw new UserError(`${placeOf(listen)}: listen ${word} is no address`);
  if (count > mostPorts) throw new UserError(`${placeOf(listen)}: listen ${word} has ${count} ports, more than the ${mostPorts} that can be given others here`);
  return { ports: Array.from({ length: count }, (_, index) => first + index), host };
}

/** FILE:LINE. */
export function placeOf({ origin }: Directive): string {
  return origin.replace(/^from /, '');
}

export function blocksIn(block: readonly Directive[], wanted: string): Directive[] {
  return block.filter(({ name, block: inner }) => name === wanted && inner !== undefined);
}

/** What is in all blocks of that name. */
export function insideOf(block: readonly Directive[], wanted: string): Directive[] {
  return blocksIn(block, wanted).flatMap(({ block: inner = [] }) => inner);
}

/** The blocks that serve HTTP. Throws UserError when there are none. */
export function httpServers(config: readonly Directive[], file: string): Directive[] {
  const servers = blocksIn(insideOf(config, 'http'), 'server');
  if (servers.length === 0) throw new UserError(`${file} has no server { } in http { }: there is nothing to load`);
  return servers;
}

/** Of a server that has no listen line: nginx's own choice. */
export function defaultListen(server: Directive): Directive {
  return { name: 'listen', args: [process.getuid?.() === 0 ? '80' : '8000'], comments: [], origin: server.origin, line: server.line };
}

export function isQuic(listen: Directive): boolean {
  return listen.args.slice(1).some((word) => bareWord(word) === 'quic');
}

/** The listen lines of one server, or the one that nginx would take. */
export function listensOf(server: Directive): Directive[] {
  const written = (server.block ?? []).filter(({ name }) => name === 'listen');
  return written.length === 0 ? [defaultListen(server)] : written.filter((listen) => !isQuic(listen));
}

/** One per port. */
export function nginxListens(config: readonly Directive[], file: string): Listen[] {
  const shared = insideOf(config, 'http');
  return listensByPort(httpServers(config, file).flatMap((server) => {
    const hosts = (server.block ?? []).filter(({ name }) => name === 'server_name').flatMap(({ args }) => args.map(bareWord));
    const isOn = (name: string): boolean => (findLast(server.block ?? [], name) ?? findLast(shared, name)) === 'on';
    return listensOf(server).flatMap((listen) => {
      const address = parseAddress(listen);
      const tls = listen.args.includes('ssl') || isOn('ssl');
      const word = listen.args.includes('http2');
      // Without TLS, the directive `http2 on` leaves HTTP/1.1 beside it; the word in a listen line does not.
      const of: Omit<Listen, 'port'> = { tls, http2: word || isOn('http2'), ...(word && !tls ? { http2Only: true } : {}), hosts };
      return ('ports' in address ? address.ports : []).map((port) => ({ port, ...of }));
    });
  }));
}

function findLast(block: readonly Directive[], wanted: string): string | undefined {
  return block.findLast(({ name }) => name === wanted)?.args[0];
}

/** worker_processes, 1 where the config does not say. Throws UserError when it is neither a number nor auto. */
export function nginxWorkers(config: readonly Directive[]): number | 'server-cores' {
  const [single, workers] = ['master_process', 'worker_processes'].map((wanted) => config.find(({ name }) => name === wanted));
  if (single?.args[0] === 'off' || workers === undefined) return 1;
  const [word = ''] = workers.args;
  if (word === 'auto') return 'server-cores';
  if (!/^[1-9]\d{0,3}$/.test(word)) throw new UserError(`${placeOf(workers)}: worker_processes ${word} is not a number of processes`);
  return Number(word);
}
