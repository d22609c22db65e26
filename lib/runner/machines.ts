// The machines of a run, which start its servers and make its load: this one, unless a feature plans others by the flags.
import type { k6Files, LoadPlan, PhaseOutcome } from '../k6/load-plan.ts';
import { divideCores, type AskedCores, type Cores } from '../machine/cores.ts';
import { readProcessors } from '../machine/processors.ts';
import { byName } from '../present.ts';
import type { Environment } from '../result/environment.ts';
import type { Scenario, ServerName, ServerSpec } from '../scenario/model.ts';
import { versionsOf } from '../servers/build.ts';
import { startServer, type RunningServer, type StartOptions } from '../servers/index.ts';
import type { ToolName } from '../setup/tools.ts';

/** Machines that the flags ask for. */
export interface PlannedMachines {
  /** The flags, for messages. */
  flags: string;
  /** Servers start on another machine, which may have programs that this one lacks. */
  areServersAway: boolean;
  /** Connects to them. Throws UserError if they cannot be used. */
  open(run: MachinesFor): Promise<Machines>;
}

/** Facts of a run that are known before its machines are. */
export interface MachinesFor {
  /** Kinds of the servers, or of the sides: "address". */
  kinds: readonly string[];
  asked: AskedCores;
  scenario: Pick<Scenario, 'sharedCores'>;
}

export interface Machines extends MachinesInUse {
  cores: Cores;
  /** Returns those of the servers' programs that this machine must have. */
  neededLocally(servers: readonly ServerName[]): readonly ServerName[];
  /**
   * Gets the programs of the servers, and k6 to where the load is made.
   * @param localBinaries programs of this machine: k6, and what neededLocally returned
   * @throws UserError, or the signal's reason
   */
  tools(
    servers: readonly ServerName[],
    localBinaries: Readonly<Record<ToolName, string>>,
    signal: AbortSignal,
  ): Promise<ServerTools>;
  /** Returns the facts of other machines for the result. Throws UserError if the load does not reach the servers. */
  facts(): Promise<Pick<Environment, 'serverHost' | 'generatorHosts'>>;
  /** Never throws. */
  close(): Promise<void>;
}

/** The part of a run's machines that its rounds use. */
export interface MachinesInUse {
  /** See startServer. */
  start(spec: ServerSpec, options: StartOptions): Promise<RunningServer>;
  /** Starts a k6 elsewhere, whose samples come with its record after the load. Absent: this machine makes the load. */
  startLoad?(load: K6Load): Promise<RunningK6>;
  /** Says why a machine cannot be used any more; undefined while all can. */
  lost(): string | undefined;
}

/** A load that k6 makes. */
export interface K6Load {
  script: string;
  /** An existing folder for all that k6 writes. */
  folder: string;
  loadPlan: LoadPlan;
}

export interface RunningK6 {
  /** Undefined on other hosts. */
  pid: number | undefined;
  /** Settles when k6 has ended, or a part that the others need. */
  exited: Promise<unknown>;
  /** See Child.stop. */
  stop(graceMs?: number): Promise<void>;
  files: ReturnType<typeof k6Files>;
  /** Outcomes of the phases, once k6 has ended: as outcomesOf. */
  results(): Promise<PhaseOutcome[]>;
}

export interface ServerTools {
  /** Paths of the programs where the servers start. */
  binaries: Partial<Record<ServerName, string>>;
  versions: Readonly<Record<string, string>>;
}

/** This machine, for servers and load. */
export const localMachines: MachinesInUse = {
  start: startServer,
  lost: () => undefined,
};

/** Plans servers and load on this machine. */
export const onlyThisMachine: Pick<PlannedMachines, 'open'> = {
  async open({ asked, scenario }) {
    return {
      ...localMachines,
      cores: divideCores(readProcessors(), asked, scenario),
      neededLocally: (servers) => servers,
      async tools(servers, localBinaries, signal) {
        const binaries = byName(servers, (name) => localBinaries[name]);
        return { binaries, versions: await versionsOf(binaries, signal) };
      },
      facts: () => Promise.resolve({}),
      close: () => Promise.resolve(),
    };
  },
};
