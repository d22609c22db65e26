// What a run notices about itself: `findings` in result.json. lib/report/finding-words.ts has a sentence for each code.
import * as v from 'valibot';
import { text, type Form } from '../form.ts';
import type { ErrorCause } from './load-result.ts';

/** A finding of the core, of a feature, or of another bakeoff. Programs act on its code. */
export interface AnyFinding {
  code: string;
}

export const findingForm: Form<AnyFinding> = v.looseObject({ code: text }, 'has to be an object');

/** Numbers of rounds, and how many rounds there are. */
interface InRounds {
  rounds: number[];
  allRounds: number;
}

/** The most of a side's cores in a round, of so many cores. */
export interface CoreUse extends InRounds {
  share: number;
  cores: number;
}

/** A ratio and its interval. */
export interface Ratio {
  ratio: number;
  interval: [low: number, high: number];
}

/** `name` was stopped, or waited for cores that others used, and `other` less or not at all. */
export interface Disturbance {
  kind: 'stopped' | 'starved';
  name: string;
  other: string;
  /** The shares of their time, 0 to 1. */
  share: number;
  otherShare: number;
  /**
   * Why waits cost this side more. depth: the other side has several times as many requests under way. cost: the other side's requests cost
   * less CPU time. jobs: this side has jobs of its own, whose CPU time then falls on fewer requests.
   */
  unlike: 'depth' | 'cost' | 'jobs' | null;
}

/** Requests that failed; `answers`: the most frequent of the wrong statuses, in the order of their numbers. */
export interface Failures {
  errors: number;
  errorCauses: Record<ErrorCause, number>;
  errorExample?: string;
  answers: { status: string; count: number }[];
  otherAnswers: number;
}

/**
 * Why most failed requests failed. limit: a limit of the server, by these lines of its config; `requestsPerSecond` are 80 % of what
 * succeeded.
 */
export type FailureCause =
  | { kind: 'limit'; lines: string[]; isOfRequests: boolean; requestsPerSecond?: number }
  | { kind: 'apacheThreads' };

/** Why requests left late, or not at all: which side was at its limit, or what else. */
export type RateCause =
  | { kind: 'queueGrows'; growthPerSecond: number }
  | { kind: 'fewConnections' | 'unknown' | 'server' | 'generator' | 'both' | 'neither' };

/** An accept queue that overflowed so often. Without a backlog it may be another server's. */
export interface Overflows {
  variant: string;
  count: number;
  backlog?: number;
}

/**
 * Times are of all rounds, shares are 0 to 1. `variant` is the one that the finding is about; if several have the same, each has a finding.
 */
export type Finding =
  | { code: 'quick-run' }
  | { code: 'few-rounds'; rounds: number; neededRounds: number }
  /** It alone decides, or prevents a verdict. */
  | { code: 'outlier'; variant: string; baseline: string; round: number; hasVerdict: boolean }
  | { code: 'drift'; variant: string; baseline: string; ratio: number }
  | { code: 'echo'; variant: string; baseline: string; correlation: number }
  | ({ code: 'one-sided'; variant: string; baseline: string; hasVerdict: boolean } & Disturbance)
  | {
      code: 'pauses';
      variants: string[];
      usualMs: number;
      loadSeconds: number;
      neededSeconds: number;
    }
  | ({ code: 'steal'; of: 'server' | 'generator' } & CoreUse)
  /** `variants` had CPU time left, so they may have waited. `isAtRate`: all loads set requests/s. */
  | ({ code: 'others-beside-generator'; variants: string[]; isAtRate: boolean } & CoreUse)
  | ({ code: 'busy-backend' } & CoreUse)
  /** unknown: a backend's use is in it. `host`: of the servers, if not this machine. */
  | ({
      code: 'others-beside-server';
      backend: 'none' | 'apart' | 'unknown';
      host?: string;
    } & CoreUse)
  /** The longest, and the greatest gain in requests/s, as a factor; absent if it is small. */
  | { code: 'long-warm-up'; variants: string[]; warmupSeconds: number; gain?: number }
  /** cpu: requests per CPU time. */
  | ({ code: 'still-faster'; variant: string; against?: string; metric: 'rps' | 'cpu' } & Ratio)
  | { code: 'generator-limit'; variant: string; generatorShare: number }
  /** `by` is another side, or '' for another program. */
  | ({ code: 'also-loaded'; variant: string; by: string } & InRounds)
  | { code: 'other-cpus'; variant: string; cpus: number[] }
  | ({ code: 'failed'; variant: string; requests: number; cause?: FailureCause } & Failures)
  | { code: 'hung'; variant: string; requests: number; isOverflowed: boolean }
  | { code: 'unsent'; variant: string; unsent: number; due: number; cause: RateCause }
  | ({ code: 'stalled'; variant: string; longestMs: number } & InRounds)
  | { code: 'generator-stalled'; variant: string; share: number }
  /** p99 of both. */
  | { code: 'late-sends'; variant: string; lateMs: number; latencyMs: number; cause: RateCause }
  | { code: 'late-reads'; variant: string; lateMs: number; latencyMs: number }
  | { code: 'few-streams'; variant: string; streams: number; allowedStreams: number }
  | { code: 'not-resumed'; variant: string; cause: 'http' | 'kept' | 'noTickets' }
  | { code: 'overflows'; queues: Overflows[] }
  | { code: 'one-turn'; variants: string[] }
  | { code: 'late-link'; variants: string[] }
  | {
      code: 'tls-differs';
      part: 'version' | 'cipher' | 'keyExchange';
      values: { value: string; variants: string[] }[];
    }
  | { code: 'no-baseline'; variant: string; baseline: string }
  /** The cores of which each side has a thread. */
  | { code: 'shared-cores'; cpus: (readonly number[])[]; isOnly: boolean }
  /** In cores: a quota's CPU time, those that are here, and those that the run uses. */
  | { code: 'cpu-quota'; quotaCores: number; allowedCores: number; usedCores: number }
  /** `other` listens on the same port. */
  | { code: 'same-port'; variant: string; other: string; port: number }
  | { code: 'no-warm-up'; variants: string[] }
  /** Without ss it is not known whether others kept these waiting. */
  | { code: 'no-ss'; variants: string[] }
  | { code: 'time-over'; rounds: number; mostRounds: number }
  /** Requests/s in turns as a multiple of those of continuous load. The sides then left turns, and so many rounds were dropped. */
  | ({ code: 'not-in-turns'; variant: string; droppedRounds: number } & Ratio)
  /** The same, but there was no time to leave turns. */
  | ({ code: 'turns-differ'; variant: string } & Ratio)
  | { code: 'quota-in-turns'; variant: string; heldMs: number; quotas: string }
  /** `share` of a core. */
  | { code: 'out-of-turn'; variant: string; share: number }
  | { code: 'side-as-backend'; variant: string; backend: string; port: number }
  /** A line of the server's log: on trouble, or the last one after failures. */
  | { code: 'log-alarm' | 'log-of-failures'; variant: string; line: string }
  | { code: 'other-bodies'; variant: string }
  /** `repeatedAs`: a round. `why` is a clause, of the finding `cause` if it is one. `farthest`: the requests/s that differed most from those of the rounds that count. */
  | {
      code: 'dropped';
      round: number;
      repeatedAs?: number;
      why: string;
      cause?: Finding;
      farthest?: { variant: string; rps: number; othersRps: number };
    };
