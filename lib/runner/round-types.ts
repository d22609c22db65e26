// What a round is given, what it comes to, and how it fails.
import type { RoundIntegrity } from '../store/integrity.ts';
import type { Store } from '../store/store.ts';
import type { GeneratorHost } from '../hosts/generator-host.ts';
import type { ServerHost } from '../hosts/server-host.ts';
import type { Interrupt } from '../process.ts';
import type { Network } from '../network/network.ts';
import type { Phase, SearchStep, VariantResult } from '../result/result.ts';
import type { ServerName } from '../scenario/model.ts';
import type { Answer, RunningServer } from '../servers/index.ts';
import type { Group, Plan, PlannedVariant } from './plan.ts';
import { UserError } from '../errors.ts';

/** What every round of a run has in common, wherever it is run. */
export interface RunBase {
  plan: Plan;
  /** results/<run> */
  folder: string;
  /** null with `--store none`. */
  store: Store | null;
  interrupt: Interrupt;
}

/** A run whose servers and load are not started here, or on hosts. `runGroup`: as the one of round.ts. */
export interface RunElsewhere extends RunBase {
  runGroup(group: Group, place: number, attempt: Attempt): Promise<Map<string, VariantRound>>;
}

export interface RunContext extends RunBase {
  /** Paths of the binaries: k6, delaylink beside it (undefined: not there), and the plan's servers. */
  tools: {
    k6: string;
    delaylink: string | undefined;
    servers: Partial<Record<ServerName, string>>;
  };
  script: string;
  /** Where the servers are started; undefined: here. */
  host?: ServerHost | undefined;
  /** Where the load is made; empty: here. */
  generators?: readonly GeneratorHost[];
  /** By variant. Whoever opens the first group takes them out. */
  begun?: Map<string, BegunServer> | undefined;
}

/** A server that was started to make the plan, in its folder of round 1, which goes on with it; and what it answered, all its pages together. */
export interface BegunServer {
  server: RunningServer;
  answer: Answer;
}

export interface VariantRound {
  server: NonNullable<VariantResult['server']>;
  /** Of a search, the step that kept the limit at the rate nearest to what was found. */
  phases: Phase[];
  /** What was found, and all steps; absent without a search. */
  search?: { found: FoundInRound; steps: SearchStep[] };
  /** That k6 made, over all that it did. */
  requests: number;
  /** The first line of the server's log that says alert or worse. */
  alarm: string | undefined;
  /** The last one, where requests have failed. */
  lastWords?: string | undefined;
  /** A config of a person's own answered under load with bodies of another length than when it was started. */
  otherBodies: boolean;
  /** Packets that belong to the load were still on their way when they were counted. */
  restless: boolean;
  /** k6's own, which has the samples of the whole group; undefined: there is none. */
  recordFile: string | undefined;
  /** Of several that made them together, the requests of each. */
  instances?: readonly number[];
  /** null with `--store none`. */
  integrity: RoundIntegrity | null;
}

/** What a server said of itself at its first start, and which kernel settings its network has; none on loopback. */
export interface Tried {
  server: VariantRound['server'];
  answer: Answer;
  settings: Network['settings'];
}

/** One try at a round. */
export interface Attempt {
  /** Names it, in folders and tags. */
  round: number;
  /** By variant, what earlier rounds found; what this one finds at a first start is added. Absent: no start is the first one. */
  tried?: Map<string, Tried>;
  /** Absent where nothing is searched for. */
  search?: SearchRound;
  /** Called when a step of a search is over. */
  onStep?(steps: readonly SearchStep[]): void;
  /** Called about twice a second with responses/s of the last second, null before the first; of any side of the group. */
  onLoad(rps: number | null): void;
}

/** A side's answer. `step`: the index of the phase that kept the limit at the rate nearest to it; `rate`, `atLeast` as in FoundRate, of this round. */
export interface FoundInRound {
  step: number;
  rate: number;
  atLeast: boolean;
}

/** Of a round: what the rounds before found, by variant of the run, in requests/s, and the seed of what is drawn. */
export interface SearchRound {
  known: ReadonlyMap<string, readonly number[]>;
  seed: string;
}

/** What a variant's load is laid on. */
export interface Stage {
  planned: PlannedVariant;
  server: RunningServer;
  /** null on loopback. */
  network: Network | null;
  /** Settles when one of the two ends by itself, with one line that says how. */
  died: Promise<string>;
  /** Ends both. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** The round has to be repeated; the message says why in one line. */
export class RoundFailure extends Error {}

/** The machine or a person disturbed it, and the next try may go well: a round is tried more often than where a server fails. */
export class Disturbance extends RoundFailure {}

export function asRoundFailure(error: unknown): never {
  throw error instanceof UserError ? new RoundFailure(error.message.replaceAll('\n', ' ')) : error;
}
