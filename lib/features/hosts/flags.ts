// Which hosts a run has, by its flags.
import { ofForm, type Flag, type Arguments } from '../../cli/arguments.ts';
import { usageError } from '../../errors.ts';
import { repeated } from '../../present.ts';
import type { PlannedMachines } from '../../runner/machines.ts';

export const hostFlags = {
  'server-host': {
    group: 'machine',
    value: 'USER@HOST',
    help: 'start the servers there, over ssh (this machine)',
  },
  'generator-host': {
    group: 'machine',
    rare: true,
    value: 'USER@HOST',
    repeated: true,
    without: ['generator-cpus'],
    help: 'make the load there, over ssh; several make it together (this machine)',
  },
  install: {
    group: 'machine',
    rare: true,
    needs: ['server-host'],
    help: 'install missing servers on the server host',
  },
} as const satisfies Record<string, Flag>;

/** Returns the hosts that the flags name; undefined without any. Throws UserError (exit code 2). */
export function plannedHosts({
  flags,
  lists,
}: Pick<Arguments, 'flags' | 'lists'>): PlannedMachines | undefined {
  const given = flags.get('server-host');
  const server = given === undefined ? undefined : readHost('--server-host', given);
  const generators = readGenerators(lists.get('generator-host') ?? []);
  if (server === undefined && generators.length === 0) return undefined;
  const named = { server, generators, mayInstall: flags.has('install') };
  return {
    flags: '--server-host and --generator-host',
    areServersAway: server !== undefined,
    open: async (run) => (await import('./open.ts')).openHosts(named, run),
  };
}

/** Reads [user@]host. A flag of ssh has another form. */
const readHost = ofForm(
  /^(?:[\w.+-]+@)?[A-Za-z0-9_][\w.:-]*$/,
  'write it as ssh takes it, such as web1 or root@10.0.0.2',
);

function readGenerators(names: readonly string[]): string[] {
  const flag = '--generator-host';
  const twice = repeated(names);
  if (twice !== undefined) throw usageError(`${flag} ${twice} is named twice`);
  return names.map((name) => readHost(flag, name));
}
