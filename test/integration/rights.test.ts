// The user of the real servers if root starts them, and the rights of an untrusted config.
import { execFileSync, spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { machineCertificate } from '../../lib/servers/certificate.ts';
import { userOf } from '../../lib/proc-files.ts';
import { nginx } from '../../lib/scenario/index.ts';
import type { ConfiguredServer } from '../../lib/scenario/model.ts';
import type { StartedServer } from '../../lib/servers/index.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { processesOf, servers, startedBy, useServers } from '../fixtures/servers.ts';

const test = useServers();
const { startOwn, refusal } = test;

/** For each process of a server: users, groups, capabilities, and whether it can gain more. */
async function rightsOf(server: StartedServer) {
  const user = userOf(String(server.pid)) as number;
  expect(user).toBeGreaterThan(60_000);
  const wanted = /^(?:Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs):/;
  return Promise.all(
    processesOf(server).map(async (pid) =>
      (await readFile(`/proc/${pid}/status`, 'utf8'))
        .split('\n')
        .filter((line) => wanted.test(line))
        .map((line) => line.replace(/\s+/g, ' ').replaceAll(` ${user}`, ' N').trim())
        .join('; '),
    ),
  );
}

const none = '0000000000000000';
const lowPorts = '0000000000000400';
/** The server's user and group have the same id. */
const noRights = `Uid: N N N N; Gid: N N N N; Groups:; CapInh: ${none}; CapPrm: ${none}; CapEff: ${none}; CapBnd: ${lowPorts}; CapAmb: ${none}; NoNewPrivs: 1`;

const configs: Record<string, (www: string) => string> = {
  nginx: (www) =>
    `events {}\nhttp {\nserver { listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.pem; root ${www}; } }`,
  h2o: () =>
    'listen: {port: 443, ssl: {certificate-file: a.pem, key-file: a.pem}}\nhosts:\n  a:\n    paths:\n      /: {file.dir: www}\n',
  nghttpd: () => '--htdocs=www\n8443 a.pem a.pem\n',
};

async function ownFolder(server: string) {
  const pem = await readFile(await machineCertificate(new AbortController().signal));
  const folder = await ownFiles({ 'www/index.html': 'hello', 'a.pem': pem });
  const file = path.join(folder, 'own.conf');
  await writeFile(file, configs[server]?.(path.join(folder, 'www')) ?? '');
  return { folder, file };
}

async function ownNginx(
  mode: number,
  text?: string,
): Promise<{ folder: string; spec: ConfiguredServer }> {
  const folder = await ownFiles({});
  await chmod(folder, mode);
  const binary = path.join(folder, 'nginx');
  const script = `#!/bin/sh\n${text} exec ${test.binaries.nginx} "$@"\n`;
  await writeFile(binary, text === undefined ? await readFile(test.binaries.nginx) : script);
  await chmod(binary, 0o755);
  return { folder, spec: nginx(['base'], { workers: 1, binary }) };
}

const isRoot = process.getuid?.() === 0;
const asRoot = it.runIf(isRoot);

asRoot.each(servers)('%s runs as a separate user and cannot gain privileges', async (_, spec) => {
  const [server, other] = [await test.start(spec, { workers: 2 }), await test.start(spec)];
  expect(userOf(String(server.pid))).not.toBe(userOf(String(other.pid)));
  expect([...new Set(await rightsOf(server))]).toEqual([noRights]);
});

asRoot.each(Object.keys(configs))('%s with a user config does the same', async (name) => {
  const { file } = await ownFolder(name);
  const server = await startOwn(file);
  expect(server.answer.bytes).toBe('hello'.length);
  expect([...new Set(await rightsOf(server))]).toEqual([noRights]);
  const [scratch] = await test.scratchFolders();
  // The config is outside of the folder that the server serves.
  const args = [path.join(test.folder, scratch as string), '-name', '*.conf'];
  expect(execFileSync('find', args, { encoding: 'utf8' })).toBe('');
  await server.stop();
});

/** An h2o config in an open folder inside a closed folder, next to another open folder. */
async function closedFolder(served: string) {
  const folder = await ownFiles({
    'closed/conf/own.conf': `listen: 8080\nhosts:\n  a:\n    paths:\n      /: {file.dir: ${served}}\n`,
    'closed/private/index.html': 'secret',
    'closed/conf/www/index.html': 'hello',
  });
  await chmod(path.join(folder, 'closed'), 0o700);
  return path.join(folder, 'closed/conf');
}

asRoot.each(['../private', 'www'])(
  'is not handed the folder of its config past closed folders: %s',
  async (served) => {
    const folder = await closedFolder(served);
    expect(await refusal(startOwn(path.join(folder, 'own.conf')))).toBe(
      `${folder}/own.conf:5: file.dir ${served} begins at ${folder}, where not every user may go, and the server runs as an unprivileged user: open the folder and those above it to all (chmod a+x), put a copy elsewhere, or start bakeoff as another user`,
    );
  },
);

asRoot('begins in the folder of its config where every user may go, else in its own', async () => {
  const site = await ownFiles({ 'index.html': 'hello' });
  const cwdOf = ({ pid }: StartedServer) => readlinkSync(`/proc/${pid}/cwd`);
  const closed = await startOwn(path.join(await closedFolder(site), 'own.conf'));
  expect(closed.answer.bytes).toBe('hello'.length);
  expect(cwdOf(closed)).toMatch(/\/bakeoff-server-[^/]+\/temp$/);
  const { folder, file } = await ownFolder('h2o');
  expect(cwdOf(await startOwn(file))).toBe(folder);
  for (const [, spec] of servers)
    expect(cwdOf(await test.start(spec))).toMatch(/\/bakeoff-server-[^/]+\/temp$/);
});

asRoot('says in one line that its user may not read a key', async () => {
  const { folder, file } = await ownFolder('nginx');
  await chmod(path.join(folder, 'a.pem'), 0o600);
  expect(await refusal(startOwn(file))).toMatch(
    /^\S+own\.conf:3: nginx \S+ does not accept it: .*a\.pem.*Permission denied.*unprivileged.*copy/,
  );
});

it.runIf(isRoot && spawnSync('setcap', ['-h']).error === undefined)(
  'runs one whose file may listen on low ports, which the server may not',
  async () => {
    const { folder, spec } = await ownNginx(0o755);
    execFileSync('setcap', ['cap_net_bind_service+ep', path.join(folder, 'nginx')]);
    const rights = new Set(await rightsOf(await test.start(spec)));
    expect([...rights]).toEqual([noRights]);
  },
);

asRoot("gets no environment of root's, but for what it may need", async () => {
  vi.stubEnv('INFLUX_TOKEN', 'hunter2');
  vi.stubEnv('MALLOC_ARENA_MAX', '3');
  const [, spec] = servers[3] as (typeof servers)[number];
  const names = (await readFile(`/proc/${(await test.start(spec)).pid}/environ`, 'latin1'))
    .split('\0')
    .map((line) => line.split('=')[0]);
  expect(names).toEqual(expect.arrayContaining(['PATH', 'MALLOC_ARENA_MAX']));
  expect(names).not.toContain('INFLUX_TOKEN');
  expect(names).not.toContain('HOME');
});

/** Numbers of add_key(2) and keyctl(2). */
const [addKey, keyctl] = process.arch === 'x64' ? [248, 250] : [217, 219];
/** Adds a key to a new session keyring, and starts a command. */
const withKey = [
  'perl',
  '-e',
  `syscall(${keyctl}, 1, 0); my @key = ("user\\0", "bakeoff\\0", "hunter2"); syscall(${addKey}, @key, 7, -3) > 0 or die; exec @ARGV`,
];
/** Prints that key, or -1. */
const readKey = [
  'perl',
  '-e',
  `my @key = ("user\\0", "bakeoff\\0"); my $text = "-" x 7; my $id = syscall(${keyctl}, 10, -3, @key, 0); print syscall(${keyctl}, 11, $id, $text, 7) < 0 ? -1 : $text, "\\n"`,
];
const hasKeys =
  isRoot &&
  /x64|arm64/.test(process.arch) &&
  spawnSync('perl', [...withKey.slice(1), 'true']).status === 0;

it.runIf(hasKeys)('cannot read keys of root', async () => {
  const became = ['setpriv', '--reuid=1879048199', '--clear-groups', '--no-new-privs', ...readKey];
  expect(execFileSync('perl', [...withKey.slice(1), ...became], { encoding: 'utf8' })).toBe(
    'hunter2\n',
  );
  const reader = await ownFiles({ 'read.sh': `perl -e '${readKey[2]}'` });
  const { folder, spec } = await ownNginx(
    0o777,
    `case "$*" in -V) ;; *) sh ${reader}/read.sh >>$(dirname "$0")/keys;; esac;`,
  );
  const options = { binaries: test.binaries, folder: path.join(newFolder(), 'run') };
  const { printed } = await startedBy(spec, options, { before: withKey });
  expect(printed).toMatch(/^\d+\n$/);
  expect(await readFile(path.join(folder, 'keys'), 'utf8')).toBe('-1\n-1\n');
});

asRoot.each([
  [
    ['unshare', '-r'],
    /^\/usr\/bin\/true runs as an unprivileged user, and root cannot become one here \(setpriv: .*\): give the container the capabilities/,
  ],
  [['setpriv', '--bounding-set=-setpcap'], /^an unprivileged user$/],
])(
  'reports in one line why a server cannot run as another user: %j',
  ([command = '', flag = ''], line) => {
    const script = `
      import { requireRunnable, unprivilegedUser } from './lib/servers/rights.ts';
      const user = unprivilegedUser();
      requireRunnable('/usr/bin/true', user).then(() => console.log(user.name), ({ message }) => console.log(message));`;
    const args = [flag, process.execPath, '--import', 'tsx/esm', '--input-type=module'];
    const output = execFileSync(command, [...args, '-e', script], { encoding: 'utf8' });
    expect(output.trim()).toMatch(line);
  },
);

asRoot('is told that its binary is closed to other users', async () => {
  const { folder, spec } = await ownNginx(0o700, '');
  expect(await refusal(test.start(spec))).toContain(
    `${folder}/nginx is closed to other users, and servers run as an unprivileged user if root starts them: open it `,
  );
});

asRoot('has the check of the config done with the same rights', async () => {
  const { folder, spec } = await ownNginx(
    0o777,
    'users=$(dirname "$0")/users; case "$*" in -V) ;; *) id -u >>$users; grep -c "NoNewPrivs:.1" /proc/self/status >>$users;; esac;',
  );
  await (await test.start(spec)).stop();
  expect(await readFile(path.join(folder, 'users'), 'utf8')).toMatch(/^(\d{5,}\n1\n)\1$/);
});
