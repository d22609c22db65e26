// Code that leaves its server ends with it, by each kind of cgroup and without, and if bakeoff is killed.
import { existsSync } from 'node:fs';
import { it } from 'vitest';
import { expectHarmless, type Case } from '../fixtures/attack.ts';
import { useServers } from '../fixtures/servers.ts';

const test = useServers();

const cgroup1 = '/sys/fs/cgroup/freezer';
const cgroup2 = existsSync('/sys/fs/cgroup/unified') ? '/sys/fs/cgroup/unified' : '/sys/fs/cgroup';

/** Words that start a program where these are not mounted. */
const without = (...mounts: string[]) => [
  'unshare',
  '--mount',
  'sh',
  '-c',
  `for mount in ${mounts.join(' ')}; do umount -l $mount; done 2>/dev/null; exec "$@"`,
  'sh',
];
const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'];
const hasPerl = existsSync('/usr/lib/nginx/modules/ngx_http_perl_module.so');

const ways: Record<string, Case> = {
  'a command': { server: 'command' },
  'h2o, killed': { server: 'h2o', end: 'SIGKILL' },
  'a command, killed': { server: 'command', end: 'SIGKILL' },
};
const waysOfRoot: Record<string, Case> = {
  'h2o with cgroups of version 1': { server: 'h2o', before: without(cgroup2) },
  'h2o without cgroups': { server: 'h2o', before: without(cgroup1, cgroup2) },
  'h2o without cgroups, killed': {
    server: 'h2o',
    before: without(cgroup1, cgroup2),
    end: 'SIGKILL',
  },
  'h2o of another user': { server: 'h2o', before: nobody, clearsEnvironment: false },
  'a command without cgroups': {
    server: 'command',
    before: without(cgroup1, cgroup2),
    clearsEnvironment: false,
  },
  'a command of another user, killed': {
    server: 'command',
    before: nobody,
    clearsEnvironment: false,
    end: 'SIGKILL',
  },
};

it.each(Object.entries(ways))('of %s', (_, way) => expectHarmless(test, way));

it.runIf(process.getuid?.() === 0).each(Object.entries(waysOfRoot))('of %s', (_, way) =>
  expectHarmless(test, way),
);

it.runIf(hasPerl)("of nginx's perl", () => expectHarmless(test, { server: 'nginx' }));
