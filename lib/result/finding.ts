// What a run finds beside its verdicts: `findings` in result.json. lib/report/finding-words.ts has a sentence for each code.
import * as v from 'valibot';
import { text, type Form } from '../form.ts';
import type { ErrorCause } from './load-result.ts';

/** A finding of the core, of a feature (its folder has the type), or of another bakeoff. Programs act on its code. */
export interface AnyFinding {
  code: string;
}

export const findingForm: Form<AnyFinding> = v.looseObject({ code: text }, 'has to be an object');

/** The variant that it is about. If others have the same, each has a finding. */
interface Of {
  variant: string;
}

interface OfPair extends Of {
  baseline: string;
}

/** All that it is about: they share one finding. */
interface OfSeveral {
  variants: string[];
}

/** Numbers of rounds, and how many there are. */
export interface InRounds {
  rounds: number[];
  allRounds: number;
}

/** The most of a side's cores in a round, of so many. */
export interface CoreUse extends InRounds {
  share: number;
  cores: number;
}

interface RatioOf extends Of {
  ratio: number;
  interval: [low: number, high: number];
}

/** `name` was stopped, or waited for cores that others used, and `other` less or not at all. */
export interface OneSidedDisturbance {
  kind: 'stopped' | 'starved';
  name: string;
  other: string;
  /** The shares of their time. */
  share: number;
  otherShare: number;
  /**
   * Why waits cost this side more. depth: the other side has several times as many requests under way. cost: the other side's requests cost
   * less CPU time. jobs: this side has jobs of its own, whose CPU time then falls on fewer requests.
   */
  unlike: 'depth' | 'cost' | 'jobs' | null;
}

/** `answers`: the most frequent of the wrong statuses, in the order of their numbers. */
export interface Failures {
  errors: number;
  errorCauses: Record<ErrorCause, number>;
  errorExample?: string;
  answers: { status: string; count: number }[];
  otherAnswers: number;
}

/** Why most requests failed. `lines` of the config limit them; `rps`: 80 % of what succeeded. */
export type FailureCause =
  | { kind: 'limit'; lines: string[]; isOfRequests: boolean; rps?: number }
  | { kind: 'apacheThreads' };

/** Why requests left late, or not at all: which side was at its limit, or what else. */
export type RateCause =
  | { kind: 'queueGrows'; growthPerSecond: number }
  | { kind: 'fewConnections' | 'unknown' | 'server' | 'generator' | 'both' | 'neither' };

/** Why a server stood still: it was stopped, or others had this share of its cores. */
export type HoldUp = { kind: 'stopped' } | { kind: 'others'; share: number };

/** A side that still got faster: its warm-up, CPU time per request in its halves, and the next warm-up. */
export interface ColdSide extends Of {
  hadSeconds: number;
  beforeUs: number;
  afterUs: number;
  nextSeconds: number;
}

/** Without a backlog they may be another server's. */
export interface Overflows extends Of {
  count: number;
  backlog?: number;
}

/** Figures are of all rounds, shares 0 to 1. */
interface Findings {
  'quick-run': object;
  'time-over': { rounds: number; mostRounds: number };
  /** `farthest`: whose requests/s differ most from those of the rounds that count. `with`: earlier rounds that it took along. */
  dropped: {
    round: number;
    with?: readonly number[];
    repeatedAs?: number;
    cause: Finding;
    farthest?: Of & { rps: number; othersRps: number };
  };
  /** Causes of a dropped round, up to `round-failed`. Causes that only loading the sides one after the other helps against are further below. */
  crashed: Of & { server: string; line: string };
  /** A number below 0 set the clock back. */
  'clock-set': Of & { byMs: number };
  'quota-held': Of & { heldMs: number; quotas: string };
  'generator-stopped': Of;
  /** The longest time without a sample; absent: there was none at the begin or the end. */
  unsampled: Of & { gapMs?: number };
  /** The server stalled. `windowSeconds`: no response came in the whole window, which took this long. */
  'held-up': Of & { server: string; pauseMs: number; windowSeconds?: number; cause: HoldUp };
  'still-cold': { sides: ColdSide[] };
  'page-changed': Of & { page?: string; meanBytes: number; pageBytes: number };
  /** Words of others, such as a server's last line. */
  'round-failed': { reason: string };
  /** A round that alone decides or prevents a verdict. */
  outlier: OfPair & { round: number; hasVerdict: boolean };
  drift: OfPair & { ratio: number };
  echo: OfPair & { correlation: number };
  'one-sided': OfPair & OneSidedDisturbance & { hasVerdict: boolean };
  pauses: OfSeveral & { usualMs: number; loadSeconds: number; neededSeconds: number };
  steal: CoreUse & { of: 'server' | 'generator' };
  /** The variants had CPU time left, so they may have waited. `isAtRate`: all loads set requests/s. */
  'others-beside-generator': CoreUse & OfSeveral & { isAtRate: boolean; hasBackend?: boolean };
  'busy-backend': CoreUse;
  /** unknown: a backend's use is in it. `host`: of the servers, if not this machine. */
  'others-beside-server': CoreUse & { backend: 'none' | 'apart' | 'unknown'; host?: string };
  /** The longest, and the greatest factor of requests/s; absent if it is small. */
  'long-warm-up': OfSeveral & { warmupSeconds: number; gain?: number };
  /** cpu: requests per CPU time. */
  'still-faster': RatioOf & { against?: string; metric: 'rps' | 'cpu' };
  'generator-limit': Of & { share: number };
  /** `by`: another side, or '' for another program. */
  'also-loaded': Of & InRounds & { by: string };
  'other-cpus': Of & { cpus: number[] };
  failed: Of & Failures & { requests: number; cause?: FailureCause };
  hung: Of & { requests: number; isOverflowed: boolean };
  unsent: Of & { unsent: number; due: number; cause: RateCause };
  stalled: Of & InRounds & { longestMs: number };
  'generator-stalled': Of & { share: number };
  /** p99 of both. */
  'late-sends': Of & { lateMs: number; latencyMs: number; cause: RateCause };
  /** `waitedShare`: of its time in which the generator waited for its cores; absent if unknown. */
  'late-reads': Of & { lateMs: number; latencyMs: number; waitedShare?: number };
  'few-streams': Of & { streams: number; allowedStreams: number };
  'not-resumed': Of & { cause: 'http' | 'kept' | 'noTickets' };
  overflows: { queues: Overflows[] };
  'one-turn': OfSeveral;
  'late-link': OfSeveral;
  'tls-differs': {
    part: 'version' | 'cipher' | 'keyExchange';
    values: (OfSeveral & { value: string })[];
  };
  'no-baseline': OfPair;
  /** The cores of which each side has a thread. */
  'shared-cores': { cpus: (readonly number[])[]; isOnly: boolean };
  /** Numbers of cores: whose time the quota allows, that are allowed here, that the run uses. */
  'cpu-quota': { quotaCores: number; allowedCores: number; usedCores: number };
  'same-port': Of & { other: string; port: number };
  'no-warm-up': OfSeveral;
  /** It is unknown whether other programs kept these variants waiting. */
  'no-ss': OfSeveral;
  /**
   * A figure in turns as a multiple of continuous load: of requests/s unless `of` is given. Without `droppedRounds` there was no time to
   * repeat the rounds.
   */
  'not-in-turns': RatioOf & { of?: 'cpuShare' | 'rps'; droppedRounds?: number };
  'quota-in-turns': Of & { heldMs: number; quotas: string };
  /** `share` is that of a core. */
  'out-of-turn': Of & { share: number };
  'side-as-backend': Of & { backend: string; port: number };
  /** Lines of the server's log: on trouble, and the last one after failures. */
  'log-alarm': Of & { line: string };
  'log-of-failures': Of & { line: string };
  'other-bodies': Of;
}

export type Finding = { [Code in keyof Findings]: { code: Code } & Findings[Code] }[keyof Findings];
