// Load profiles, written as the articles' own command lines.
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { UserError } from '../errors.ts';
import type { LoadProfile } from './model.ts';

/** A load fitted to this machine: what the engine is asked to do in every round. */
export type Load = {
  /** The article's command line, for the table. */
  command: string;
  protocol: LoadProfile['protocol'];
  connections: number;
  threads: number;
  keepAlive: boolean;
  /** Load before the measured window, in no figure. 0 where requests are counted: there, handshakes belong to the time. */
  warmupSeconds: number;
} & ({ durationSeconds: number; requests?: never } | { requests: number; durationSeconds?: never });

export interface FitOptions {
  /** Cores that the generator may use. */
  generatorCores: number;
  /** The article's number of threads, however many cores there are. */
  exact: boolean;
  /** Seconds of the measured window instead of the article's duration or number of requests. */
  durationSeconds?: number;
  /** Short rounds for a first look; `durationSeconds` is stronger. */
  quick?: boolean;
}

const fullWarmupSeconds = 1;
const quickSeconds = 2;
const quickWarmupSeconds = 0.5;

/** The articles' URLs: accepted and left out, since the address of the server that is started takes their place. */
const articleUrls = ['http://127.0.0.1/', 'http://127.0.0.1'];

/**
 * The load of a wrk command line without the word "wrk", e.g. `-c 100 -t 10 -d 10`: HTTP/1.1, connections kept alive.
 * Flags that are left out have wrk's defaults (10 connections, 2 threads, 10 s). Throws UserError naming what cannot be honoured.
 */
export function wrk(line: string): LoadProfile {
  const flags = parseFlags('wrk', line, {
    connections: { type: 'string', short: 'c' },
    threads: { type: 'string', short: 't' },
    duration: { type: 'string', short: 'd' },
    latency: { type: 'boolean' }, // Percentiles are always shown.
  });
  const connections = positiveCount('wrk -c', flags.get('connections') ?? '10');
  const threads = positiveCount('wrk -t', flags.get('threads') ?? '2');
  if (connections < threads) {
    throw new UserError(`wrk: -c ${connections} is less than -t ${threads}: every thread needs a connection, give at least -c ${threads}`);
  }
  const durationSeconds = parseDuration('wrk -d', flags.get('duration') ?? '10');
  return { command: commandOf('wrk', line), protocol: 'http/1.1', connections, threads, keepAlive: true, durationSeconds };
}

/**
 * The load of an ab command line without the word "ab", e.g. `-c 10 -n 1000 -k`: HTTP/1.0, a new connection for each
 * request unless -k. -r is what the engine does anyway (it goes on after errors). Throws UserError naming what cannot be honoured.
 */
export function ab(line: string): LoadProfile {
  const flags = parseFlags('ab', line, {
    c: { type: 'string', short: 'c' },
    n: { type: 'string', short: 'n' },
    k: { type: 'boolean', short: 'k' },
    r: { type: 'boolean', short: 'r' },
  });
  const connections = positiveCount('ab -c', flags.get('c') ?? '1');
  const requests = positiveCount('ab -n', flags.get('n') ?? '1');
  if (requests < connections) {
    throw new UserError(`ab: -n ${requests} is less than -c ${connections}: every connection needs a request, give at least -n ${connections}`);
  }
  return { command: commandOf('ab', line), protocol: 'http/1.0', connections, threads: 1, keepAlive: flags.has('k'), requests };
}

/**
 * Fits a profile to this machine: one thread per generator core, never more than the article's; the connections stay
 * as published. Throws UserError for numbers that are not positive.
 */
export function fitLoad(profile: LoadProfile, options: FitOptions): Load {
  if (!Number.isInteger(options.generatorCores) || options.generatorCores < 1) {
    throw new UserError(`the generator needs at least 1 core, not ${options.generatorCores}`);
  }
  const asked = options.durationSeconds;
  if (asked !== undefined && !(Number.isFinite(asked) && asked > 0)) {
    throw new UserError(`a round has to last longer than 0 s, not ${asked} s`, 2);
  }
  const quick = options.quick === true;
  const common = {
    command: profile.command,
    protocol: profile.protocol,
    connections: profile.connections,
    threads: options.exact ? profile.threads : Math.min(profile.threads, options.generatorCores),
    keepAlive: profile.keepAlive,
  };
  if (asked === undefined && profile.requests !== undefined) {
    const requests = quick ? Math.max(profile.connections, Math.ceil(profile.requests / 10)) : profile.requests;
    return { ...common, requests, warmupSeconds: 0 };
  }
  const published = profile.durationSeconds ?? asked;
  if (published === undefined) throw new UserError(`${profile.command}: has neither a duration nor a number of requests`);
  return {
    ...common,
    durationSeconds: asked ?? (quick ? Math.min(published, quickSeconds) : published),
    warmupSeconds: quick ? quickWarmupSeconds : fullWarmupSeconds,
  };
}

/** The flags of a command line by their names in `options`; switches have the value ''. */
function parseFlags(tool: string, line: string, options: NonNullable<ParseArgsConfig['options']>): Map<string, string> {
  const { tokens } = parseArgs({ args: wordsOf(line), options, strict: false, allowPositionals: true, tokens: true });
  const flags = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === 'positional') {
      if (articleUrls.includes(token.value)) continue;
      throw new UserError(`${tool}: leave "${token.value}" out: bakeoff starts the server itself and knows its address`);
    }
    if (token.kind === 'option-terminator') continue;
    const type = options[token.name]?.type;
    if (type === undefined || (type === 'boolean' && token.value !== undefined)) {
      throw new UserError(`${tool}: ${token.rawName} cannot be honoured here; these can: ${spellings(options)}`);
    }
    if (flags.has(token.name)) throw new UserError(`${tool}: ${token.rawName} is given twice`);
    if (type === 'string' && token.value === undefined) throw new UserError(`${tool}: ${token.rawName} needs a value`);
    flags.set(token.name, token.value ?? '');
  }
  return flags;
}

function spellings(options: NonNullable<ParseArgsConfig['options']>): string {
  return Object.entries(options).map(([name, { short }]) => (short === undefined ? `--${name}` : `-${short}`)).join(' ');
}

function commandOf(tool: string, line: string): string {
  return [tool, ...wordsOf(line)].join(' ');
}

function wordsOf(line: string): string[] {
  return line.split(/\s+/).filter((word) => word !== '');
}

function positiveCount(flag: string, text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count) || count < 1) {
    throw new UserError(`${flag} ${text} has to be a whole number above 0`);
  }
  return count;
}

/** Seconds of `10`, `10s`, `2m` or `1h`. */
function parseDuration(flag: string, text: string): number {
  const [, digits, unit = ''] = /^(\d+)([smh]?)$/.exec(text) ?? [];
  const seconds = Number(digits) * (unit === 'm' ? 60 : unit === 'h' ? 3600 : 1);
  if (!Number.isSafeInteger(seconds) || seconds < 1) throw new UserError(`${flag} ${text} has to be a time such as 10, 10s, 2m or 1h`);
  return seconds;
}
