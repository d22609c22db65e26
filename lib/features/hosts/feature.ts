// --server-host: servers on another host, over ssh (docs/machines.md).
import { ofForm, type Arguments } from '../../cli/arguments.ts';
import type { Feature } from '../../cli/feature.ts';
import type { PlannedMachines } from '../../runner/machines.ts';

export const hosts: Feature = {
  run: {
    flags: {
      'server-host': {
        group: 'machine',
        value: 'USER@HOST',
        help: 'start the servers there, over ssh (this machine)',
      },
      install: {
        group: 'machine',
        rare: true,
        needs: ['server-host'],
        help: 'install missing servers on the server host',
      },
    },
    machines: plannedHost,
  },
};

/** Returns the host that the flags name; undefined without any. Throws UserError (exit code 2). */
function plannedHost({
  flags,
  read,
}: Pick<Arguments, 'flags' | 'read'>): PlannedMachines | undefined {
  const server = read('server-host', readHost);
  if (server === undefined) return undefined;
  return {
    flag: '--server-host',
    open: async ({ asked }) =>
      (await import('./server-host.ts')).openHost(server, flags.has('install'), asked),
  };
}

/** Reads [user@]host. A flag of ssh has another form. */
const readHost = ofForm(
  /^(?:[\w.+-]+@)?[A-Za-z0-9_][\w.:-]*$/,
  'write it as ssh takes it, such as web1 or root@10.0.0.2',
);
