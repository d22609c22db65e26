// The machine that starts a run's servers: this one, unless a flag has a feature plan another. The load is made here.
import { divideCores, type AskedCores, type Cores } from '../machine/cores.ts';
import { readProcessors } from '../machine/processors.ts';
import { byName } from '../present.ts';
import type { Environment } from '../result/environment.ts';
import type { Scenario, ServerName, ServerSpec } from '../scenario/model.ts';
import { versionsOf } from '../servers/build.ts';
import { startServer, type RunningServer, type StartOptions } from '../servers/index.ts';
import type { ToolName } from '../setup/tools.ts';

export interface PlannedMachines {
  /** Messages name it. */
  flag: string;
  /** @throws UserError if it cannot be used */
  open(run: MachinesFor): Promise<Machines>;
}

interface MachinesFor {
  /** Or of the sides: "address". */
  kinds: readonly string[];
  asked: AskedCores;
  scenario: Pick<Scenario, 'sharedCores'>;
}

export interface Machines extends MachinesInUse {
  cores: Cores;
  /** Those that this machine must have. */
  neededLocally(servers: readonly ServerName[]): readonly ServerName[];
  /** @param localBinaries of neededLocally @throws UserError, or the signal's reason */
  tools(
    servers: readonly ServerName[],
    localBinaries: Readonly<Record<ToolName, string>>,
    signal: AbortSignal,
  ): Promise<ServerTools>;
  /** @throws UserError if the load does not reach the servers */
  facts(): Promise<Pick<Environment, 'serverHost'>>;
  /** Never throws. */
  close(): Promise<void>;
}

/** The rounds' part. */
export interface MachinesInUse {
  start(spec: ServerSpec, options: StartOptions): Promise<RunningServer>;
  /** Why it cannot be used any more. */
  lost(): string | undefined;
}

interface ServerTools {
  /** Where the servers start. */
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
