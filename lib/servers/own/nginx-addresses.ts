// The listen lines of a person's nginx config, moved to free ports of 127.0.0.1.
import type { Directive } from '../nginx-config.ts';
import { temporarySocket, type Moved } from './moved.ts';
import { defaultListen, isQuic, parseAddress, placeOf } from './nginx-listens.ts';

/** Words of a listen line that each server may say for the same address; others are the socket's, and may be said once. */
const perServer = new Set(['ssl', 'http2', 'spdy']);
/** Words that go: what was moved has one address, of IPv4, and load generators do not speak the PROXY protocol. */
const leftOut = /^(?:ipv6only=.*|proxy_protocol)$/;
const defaultWords = new Set(['default_server', 'default']);

/** Rewrites the listen lines of one server after another. Addresses that were different may have become one. */
export class ListenLines {
  /** What is different, one line each. */
  readonly said: string[] = [];
  readonly #moved: Moved;
  /** By new address: what it was, and who said what may be said once. */
  readonly #addresses = new Map<string, { was: Set<string>; socketWords?: string; defaultAt?: string }>();

  constructor(moved: Moved) {
    this.#moved = moved;
  }

  /** The server with its lines as they are here; undefined when none is left. */
  rewrite(server: Directive): Directive | undefined {
    const all = (server.block ?? []).filter(({ name }) => name === 'listen');
    for (const quic of all.filter(isQuic)) this.said.push(`listen ${quic.args.join(' ')}: left out, HTTP/3 is not compared`);
    const written = all.filter((listen) => !isQuic(listen));
    if (all.length > 0 && written.length === 0) return undefined;
    const lines = new Map<string, { listen: Directive; words: string[] }>();
    if (written.some(({ args }) => args.includes('proxy_protocol'))) this.said.push(`proxy_protocol at ${placeOf(server)}: left out, load generators do not speak it`);
    for (const listen of written.length === 0 ? [defaultListen(server)] : written) {
      for (const [address, was] of this.#targets(listen)) {
        this.#entry(address).was.add(written.length === 0 ? `${was} (nginx's own, no listen line at ${placeOf(server)})` : was);
        const words = lines.get(address)?.words ?? [];
        const fresh = listen.args.slice(1).filter((word) => !leftOut.test(word) && !words.includes(word));
        lines.set(address, { listen: lines.get(address)?.listen ?? listen, words: [...words, ...fresh] });
      }
    }
    const listens = [...lines].map(([address, { listen, words }]): Directive => ({ ...listen, args: [address, ...this.#allowed(address, words, placeOf(listen))] }));
    const rest = (server.block ?? []).filter(({ name }) => name !== 'listen');
    return { ...server, block: [...listens, ...rest] };
  }

  /** One line per new address. */
  get moves(): string[] {
    return [...this.#addresses].map(([address, { was }]) => `listen ${[...was].join(', ')} → ${address.startsWith('unix:') ? temporarySocket : address}`);
  }

  #targets(listen: Directive): [address: string, was: string][] {
    const address = parseAddress(listen);
    if ('socket' in address) return [[`unix:${this.#moved.sockets.get(address.socket)}`, listen.args[0] as string]];
    return address.ports.map((port) => [`${this.#moved.hostOf(this.#moved.ports.get(port))}:${this.#moved.ports.get(port)}`, address.ports.length > 1 ? String(port) : listen.args[0] as string]);
  }

  #entry(address: string): { was: Set<string>; socketWords?: string; defaultAt?: string } {
    const entry = this.#addresses.get(address) ?? { was: new Set<string>() };
    this.#addresses.set(address, entry);
    return entry;
  }

  /** What may be said once for an address stays with whom said it first. */
  #allowed(address: string, words: readonly string[], from: string): string[] {
    const entry = this.#entry(address);
    const isSocketWord = (word: string): boolean => !perServer.has(word) && !defaultWords.has(word);
    const socketWords = words.filter(isSocketWord).join(' ');
    const [defaultWord] = words.filter((word) => defaultWords.has(word));
    const repeatsDefault = defaultWord !== undefined && entry.defaultAt !== undefined;
    const repeatsSocket = socketWords !== '' && entry.socketWords !== undefined;
    if (repeatsDefault) this.said.push(`${defaultWord} at ${from}: left out, ${address} has the one at ${entry.defaultAt}`);
    if (repeatsSocket && entry.socketWords !== socketWords) this.said.push(`${socketWords} at ${from}: left out, ${address} has ${entry.socketWords}`);
    if (defaultWord !== undefined) entry.defaultAt ??= from;
    if (socketWords !== '') entry.socketWords ??= socketWords;
    return words.filter((word) => isSocketWord(word) ? !repeatsSocket : !(repeatsDefault && defaultWords.has(word)));
  }
}
