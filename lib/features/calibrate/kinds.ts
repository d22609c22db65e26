// Kinds of servers from which a blind test draws pairs. Arithmetic says which flags give a server of any kind the wanted speed.
import type { uniform } from '../../random.ts';

type Random = ReturnType<typeof uniform>;

/** A server, its load and what is true of it. */
export interface KnownSide {
  kind: string;
  /** Flags, see server/main.go. */
  options: string;
  bodyBytes: number;
  connections: number;
  /** Time per response under continuous load, or p99 at a rate, in nanoseconds; Infinity for a queue that grows. */
  ns: number;
  /** CPU time of the servers' core per response, in nanoseconds. */
  cpuNs: number;
}

interface Kind {
  /**
   * @param ns a multiple of `unitNs`, so that its parts are whole numbers
   * @param workers 2 to 8
   */
  flags(ns: number, connections: number, workers: number): string;
  /** The server waits more than it works: it uses `lightNs` of CPU time per response. */
  isLight?: true;
  bodyBytes?: number;
}

const unitNs = 60;
const usualBody = 612;
const largeBody = 20_000;
/** More than the system calls of a server that sleeps before each request. */
const lightNs = 100_000;
const light = `-cpu ${lightNs}ns`;
/** With `-modes`, half of all starts of the server are slower by this share. Half of it counts, because rounds average logarithms. */
const modes = 0.03;

const part = (share: number, ns: number): string => `${Math.round(share * ns)}ns`;

const closedKinds: Readonly<Record<string, Kind>> = {
  computes: { flags: (ns) => `-cpu ${ns}ns` },
  'sends 20,000 bytes': {
    flags: (ns) => `-cpu ${ns}ns -body ${largeBody}`,
    bodyBytes: largeBody,
  },
  'warms up': { flags: (ns) => `-cpu ${ns}ns -slow-for 1s` },
  'differs from start to start': {
    flags: (ns) => `-cpu ${part(1 / Math.sqrt(1 + modes), ns)} -modes ${modes}`,
  },
  forks: { flags: (ns) => `-fork ${ns}ns` },
  'has 2 to 8 processes': { flags: (ns, _, workers) => `-cpu ${ns}ns -processes ${workers}` },
  polls: { flags: (ns) => `-cpu ${ns}ns -poll` },
  'spins a quarter of the time': { flags: (ns) => `-cpu ${part(0.75, ns)} -job 1ms -job-each 4ms` },
  'has a job each second': { flags: (ns) => `-cpu ${part(0.9, ns)} -job 100ms -job-each 1s` },
  'works after its answer': {
    flags: (ns) => `-cpu ${part(0.4, ns)} -after ${part(0.6, ns)} -backlog 300ms`,
  },
  waits: { flags: (ns, connections) => `-then ${connections * ns}ns ${light}`, isLight: true },
  'has 2 to 8 workers': {
    flags: (ns, _, workers) => `-workers ${workers} -service ${workers * ns}ns ${light}`,
    isLight: true,
  },
  'is a bucket': { flags: (ns) => `-tokens ${1e9 / ns} -burst 300 ${light}`, isLight: true },
  'stalls 1.5 of 5 s': {
    flags: (ns) => `-service ${part(0.7, ns)} -stall 1500ms -stall-each 5s ${light}`,
    isLight: true,
  },
  'stalls 2 of 10 s': {
    flags: (ns) => `-service ${part(0.8, ns)} -stall 2s -stall-each 10s ${light}`,
    isLight: true,
  },
};

/** Requests/s of pairs at a rate. */
const pairRate = 800;
const rateConnections = 300;

interface RateKind {
  /** @param ns p99, without what makes it longer */
  flags(ns: number): string;
  /** By how much p99 is longer: Infinity for a queue that grows. */
  laterNs?: number;
}

const rateKinds: Readonly<Record<string, RateKind>> = {
  'waits, at a rate': { flags: (ns) => `-then ${ns}ns ${light}` },
  'has a pool, at a rate': {
    // A quarter more workers than are busy.
    flags: (ns) => `-workers ${Math.ceil((1.25 * pairRate * ns) / 1e9)} -service ${ns}ns ${light}`,
  },
  'answers 2 % later, at a rate': {
    flags: (ns) => `-then ${part(0.5, ns)} -tail ${part(0.5, ns)} -tail-each 50 ${light}`,
  },
  'is a bucket, at a lower rate': {
    flags: (ns) => `-tokens ${2 * pairRate} -burst 300 -then ${ns}ns ${light}`,
  },
  'is a bucket, at a higher rate': {
    flags: (ns) => `-tokens ${0.625 * pairRate} -burst 300 -then ${ns}ns ${light}`,
    laterNs: Infinity,
  },
  // The requests of 0.1 s in each 10 s wait for more than 1.9 s.
  'stalls 2 of 10 s, at a rate': {
    flags: (ns) => `-service 10us -then ${ns}ns -stall 2s -stall-each 10s ${light}`,
    laterNs: 1.9e9,
  },
};

/** One pair in this many is at a rate. */
const ratesOneIn = 5;

export function drawnFrom<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/**
 * Draws two sides of different kinds.
 * @param scale factor of the times, 1 to 1.5
 * @param gain speed of the second side as a multiple of the first's
 */
export function drawSides(
  random: Random,
  scale: number,
  gain: number,
): { sides: readonly [KnownSide, KnownSide]; rate?: number } {
  const isAtRate = random() < 1 / ratesOneIn;
  const names = Object.keys(isAtRate ? rateKinds : closedKinds);
  const first = drawnFrom(random, names);
  const second = drawnFrom(
    random,
    names.filter((name) => name !== first),
  );
  const inUnits = (ns: number): number => unitNs * Math.round(ns / unitNs);
  if (isAtRate) {
    const [a, b] = [inUnits(100e6 * scale), inUnits((100e6 * scale) / gain)];
    return { sides: [sideAtRate(first, a), sideAtRate(second, b)], rate: pairRate };
  }
  const [a, b] = [inUnits(1e6 * scale), inUnits((1e6 * scale) / gain)];
  return { sides: [closedSide(random, first, a), closedSide(random, second, b)] };
}

/** Loads of ten and of a hundred requests at a time: their requests wait differently if other programs use the core. */
const depths = [10, 100] as const;

function closedSide(random: Random, name: string, ns: number): KnownSide {
  const { flags, isLight, bodyBytes = usualBody } = closedKinds[name] as Kind;
  const workers = 2 + Math.floor(7 * random());
  // A server that only waits answers 0.1 ms late. With few connections, that would be a considerable share of its response time.
  const connections = isLight ? 100 : drawnFrom(random, depths);
  return {
    kind: name,
    options: flags(ns, connections, workers),
    bodyBytes,
    connections,
    ns,
    cpuNs: isLight ? lightNs : ns,
  };
}

function sideAtRate(name: string, ns: number): KnownSide {
  const { flags, laterNs = 0 } = rateKinds[name] as RateKind;
  return {
    kind: name,
    options: flags(ns),
    bodyBytes: usualBody,
    connections: rateConnections,
    ns: ns + laterNs,
    cpuNs: lightNs,
  };
}
