// The machine that starts a run's servers: this one, unless a flag has a feature plan another. The load is made here.
import { divideCores, type AskedCores, type Cores } from '../machine/cores.ts';
import { readProcessors } from '../machine/processors.ts';
import { byName } from '../present.ts';
import type { Environment } from '../result/environment.ts';
import type { Scenario, ServerSpec } from '../scenario/model.ts';
import { versionsOf } from '../servers/build.ts';
import { startServer, type RunningServer, type StartOptions } from '../servers/index.ts';
import type { ServerName } from '../setup/servers.ts';
import type { ToolName } from '../setup/tools.ts';

/** Another machine for the servers, which may have programs that this one lacks. */
export interface PlannedMachines {
  /** The flag that asks for it, for messages. */
  flag: string;
  /**
   * Connects to it.
   * @throws UserError if it cannot be used
   */
  open(run: MachinesFor): Promise<Machines>;
}

/** Facts of a run that are known before its machines are. */
interface MachinesFor {
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
   * Gets the programs of the servers.
   * @param localBinaries programs of this machine: what neededLocally returned
   * @throws UserError, or the signal's reason
   */
  tools(
    servers: readonly ServerName[],
    localBinaries: Readonly<Record<ToolName, string>>,
    signal: AbortSignal,
  ): Promise<ServerTools>;
  /**
   * The facts of another machine for the result.
   * @throws UserError if the load does not reach the servers
   */
  facts(): Promise<Pick<Environment, 'serverHost'>>;
  /** Never throws. */
  close(): Promise<void>;
}

/** The part of a run's machines that its rounds use. */
export interface MachinesInUse {
  /** See startServer. */
  start(spec: ServerSpec, options: StartOptions): Promise<RunningServer>;
  /** Says why the machine cannot be used any more; undefined while it can. */
  lost(): string | undefined;
}

interface ServerTools {
  /** Paths of the programs where the servers start. */
  binaries: Partial<Record<ServerName, string>>;
  versions: Readonly<Record<string, string>>;
}

export const localMachines: MachinesInUse = {
  start: startServer,
  lost: () => undefined,
};

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
