// What a round gets, what it returns, and how it fails.
import { UserError } from '../errors.ts';
import type { GeneratorHost } from '../hosts/generator-host.ts';
import type { ServerHost } from '../hosts/server-host.ts';
import type { Interrupt } from '../process.ts';
import type { Network } from '../network/network.ts';
import type { Phase, SearchStep, VariantResult } from '../result/result.ts';
import type { ServerName } from '../scenario/model.ts';
import type { Answer, RunningServer } from '../servers/index.ts';
import type { RoundIntegrity } from '../store/integrity.ts';
import type { Store } from '../store/store.ts';
import type { Group, Plan, PlannedVariant } from './plan.ts';

/** What all rounds of a run share. */
export interface RunBase {
  plan: Plan;
  /** results/<run> */
  folder: string;
  /** null with `--store none`. */
  store: Store | null;
  interrupt: Interrupt;
}

/** A run in a cluster: its groups are loaded there. */
export interface RunElsewhere extends RunBase {
  /** As runGroup of round.ts. */
  runGroup(group: Group, place: number, attempt: Attempt): Promise<Map<string, VariantRound>>;
}

export interface RunContext extends RunBase {
  /** Paths of binaries; delaylink is undefined without networks. */
  tools: {
    k6: string;
    delaylink: string | undefined;
    servers: Partial<Record<ServerName, string>>;
  };
  /** The compiled k6 script. */
  script: string;
  /** Host of the servers; undefined: this machine. */
  host?: ServerHost | undefined;
  /** Hosts that make the load; empty: this machine. */
  generators?: readonly GeneratorHost[];
  /** Servers started to make the plan, by variant; the first group takes them over. */
  begun?: Map<string, BegunServer> | undefined;
}

/** A server in its folder of round 1, and its answer (all pages together). */
export interface BegunServer {
  server: RunningServer;
  answer: Answer;
}

/** A side's server and network, up until `stop`. */
export interface Stage {
  planned: PlannedVariant;
  server: RunningServer;
  /** null on loopback. */
  network: Network | null;
  /** Settles when server or network ends by itself, with a line that says how. */
  died: Promise<string>;
  /** Ends both. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** A variant's part of a round. */
export interface VariantRound {
  server: NonNullable<VariantResult['server']>;
  /** In a search, the kept step nearest to the rate found. */
  phases: Phase[];
  search?: { found: FoundInRound; steps: SearchStep[] };
  /** All requests that k6 made. */
  requests: number;
  /** First line of the server's log with level alert or worse. */
  alarm: string | undefined;
  /** Last line of the log, if requests failed. */
  lastWords?: string | undefined;
  /** Bodies of a user's own config had another length under load than before. */
  otherBodies: boolean;
  /** Packets of the load were under way when they were counted. */
  restless: boolean;
  /** k6's record with the samples of the whole group; undefined: none. */
  recordFile: string | undefined;
  /** null with `--store none`. */
  integrity: RoundIntegrity | null;
}

/** A variant's first start: the server, its answer, and the kernel settings of its network. */
export interface Tried {
  server: VariantRound['server'];
  answer: Answer;
  settings: Network['settings'];
}

/** A try at a round. */
export interface Attempt {
  /** Its number in folders and tags. */
  round: number;
  /** First starts by variant; the round adds its own. Absent: none is a first start. */
  tried?: Map<string, Tried>;
  search?: SearchRound;
  /** Called after each step of a search. */
  onStep?(steps: readonly SearchStep[]): void;
  /** Called about twice a second with the group's responses in the last second; null before the first. */
  onLoad(rps: number | null): void;
}

/** `step` is the index of the kept phase nearest to the rate found; `rate` and `atLeast` are as in FoundRate. */
export interface FoundInRound {
  step: number;
  rate: number;
  atLeast: boolean;
}

/** Rates found in earlier rounds, by variant, and the seed of random numbers. */
export interface SearchRound {
  known: ReadonlyMap<string, readonly number[]>;
  seed: string;
}

/** The round must be repeated; the message says why in a line. */
export class RoundFailure extends Error {}

/** Something outside of the server disturbed the round, and a later try may succeed: these are tried more often. */
export class Disturbance extends RoundFailure {}

/** A UserError at a later start is a failure of the round. */
export function asRoundFailure(error: unknown): never {
  throw error instanceof UserError ? new RoundFailure(error.message.replaceAll('\n', ' ')) : error;
}
