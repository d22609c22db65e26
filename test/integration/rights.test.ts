// Whom the real servers run as where root starts them, and what a stranger's config gets from that.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { machineCertificate } from '../../lib/servers/certificate.ts';
import type { StartedServer } from '../../lib/servers/index.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { processesOf, servers, useServers } from '../fixtures/servers.ts';

const test = useServers();
const { startOwn, refusal } = test;
const nobody = 65_534;

/** Of each process of a server: its users and groups, what it may do, and whether it can come to more. */
async function rightsOf(server: StartedServer): Promise<string[]> {
  const wanted = /^(?:Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs):/;
  return Promise.all(
    processesOf(server).map(async (pid) =>
      (await readFile(`/proc/${pid}/status`, 'utf8'))
        .split('\n')
        .filter((line) => wanted.test(line))
        .map((line) => line.replace(/\s+/g, ' ').trim())
        .join('; '),
    ),
  );
}

const none = '0000000000000000';
const lowPorts = '0000000000000400';
const noRights = (uid: number, ofFile = none): string =>
  `Uid:${` ${uid}`.repeat(4)}; Gid:${` ${uid}`.repeat(4)}; Groups:; CapInh: ${none}; CapPrm: ${ofFile}; CapEff: ${ofFile}; CapBnd: ${lowPorts}; CapAmb: ${none}; NoNewPrivs: 1`;

async function pem(): Promise<Buffer> {
  return readFile(await machineCertificate(new AbortController().signal));
}

const configs = {
  nginx: (lines = '', main = ''): string =>
    `${main}\nevents {}\nhttp { server { listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.pem; root www; ${lines} } }`,
  h2o: (): string =>
    'listen: {port: 443, ssl: {certificate-file: a.pem, key-file: a.pem}}\nhosts:\n  a:\n    paths:\n      /: {file.dir: www}\n',
  nghttpd: (): string => '--htdocs=www\n8443 a.pem a.pem\n',
};

/** A config beside its page and its key. */
async function ownFolder(config: string, www = 'www'): Promise<{ folder: string; file: string }> {
  const folder = await ownFiles({
    'own.conf': config.replace('root www', 'root WWW'),
    [`${www}/index.html`]: 'hello',
    'a.pem': await pem(),
  });
  await writeFile(
    path.join(folder, 'own.conf'),
    (await readFile(path.join(folder, 'own.conf'), 'utf8')).replace('WWW', path.join(folder, www)),
  );
  return { folder, file: path.join(folder, 'own.conf') };
}

describe.runIf(process.getuid?.() === 0)('started by root', () => {
  it.each(servers)(
    '%s runs as nobody, with all its processes, and cannot get more',
    async (_, spec) => {
      const server = await test.start(spec, { workers: 2 });
      expect([...new Set(await rightsOf(server))]).toEqual([noRights(nobody)]);
    },
  );

  it.each([
    ['nginx', configs.nginx()],
    ['h2o', configs.h2o()],
    ['nghttpd', configs.nghttpd()],
  ])("%s with a user's own config does so too, and nothing of it stays", async (_, config) => {
    const { file } = await ownFolder(config);
    const server = await startOwn(file);
    expect(server.answer.bytes).toBe('hello'.length);
    expect([...new Set(await rightsOf(server))]).toEqual([noRights(nobody)]);
    const [scratch] = await test.scratchFolders();
    // The config is not below what the server could be made to serve.
    expect(
      execFileSync('find', [path.join(test.folder, scratch as string), '-name', '*.conf'], {
        encoding: 'utf8',
      }),
    ).toBe('');
    await server.stop();
  });

  it('says in one line that its user may not read a key', async () => {
    const { folder, file } = await ownFolder(configs.nginx());
    await chmod(path.join(folder, 'a.pem'), 0o600);
    expect(await refusal(startOwn(file))).toMatch(
      /^\S+own\.conf:3: nginx \S+ does not accept it: .*a\.pem.*Permission denied.*nobody.*copy/,
    );
  });

  it.skipIf(spawnSync('setcap', ['-h']).error !== undefined)(
    'runs one whose file may listen on low ports',
    async () => {
      const [, spec] = servers[0] as (typeof servers)[number];
      const binary = path.join(
        await ownFiles({ nginx: await readFile(test.binaries.nginx) }),
        'nginx',
      );
      await chmod(binary, 0o755);
      execFileSync('setcap', ['cap_net_bind_service+ep', binary]);
      expect([...new Set(await rightsOf(await test.start({ ...spec, binary })))]).toEqual([
        noRights(nobody, lowPorts),
      ]);
    },
  );

  it("keeps root's environment from the server, but for what it may need", async () => {
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

  it.each([
    [
      ['unshare', '-r'],
      /^\/usr\/bin\/true runs as the user nobody, and root cannot become that user here \(setpriv: .*\): give the container the capabilities/,
    ],
    [
      ['setpriv', '--bounding-set=-setuid'],
      /^\/usr\/bin\/true runs as the user nobody, and root cannot become/,
    ],
    [['setpriv', '--bounding-set=-setpcap'], /^nobody$/],
  ])('says in one line why it cannot run as nobody: %j', ([command = '', flag = ''], line) => {
    const script = `
      import { requireRunnable, unprivilegedUser } from './lib/servers/rights.ts';
      const user = await unprivilegedUser('nginx');
      requireRunnable('/usr/bin/true', user).then(() => console.log(user.name), ({ message }) => console.log(message));`;
    const words = [flag, process.execPath, '--import', 'tsx/esm', '--input-type=module'];
    expect(execFileSync(command, [...words, '-e', script], { encoding: 'utf8' }).trim()).toMatch(
      line,
    );
  });

  it('is told where its binary is closed to nobody', async () => {
    const [, spec] = servers[0] as (typeof servers)[number];
    const folder = await ownFiles({});
    await chmod(folder, 0o700);
    const binary = path.join(folder, 'nginx');
    await writeFile(binary, `#!/bin/sh\nexec ${test.binaries.nginx} "$@"\n`, { mode: 0o755 });
    expect(await refusal(test.start({ ...spec, binary }))).toContain(
      `${binary} is closed to nobody, as which servers run if root starts them: open it `,
    );
  });

  it('has the check of the config done with the same rights', async () => {
    const [, spec] = servers[0] as (typeof servers)[number];
    const folder = await ownFiles({});
    await chmod(folder, 0o777);
    const binary = path.join(folder, 'nginx');
    await writeFile(
      binary,
      `#!/bin/sh\ncase "$*" in -V) ;; *) id -u >>${folder}/users; cat /proc/self/status | grep -c "NoNewPrivs:.1" >>${folder}/users;; esac\nexec ${test.binaries.nginx} "$@"\n`,
    );
    await chmod(binary, 0o755);
    await (await test.start({ ...spec, binary })).stop();
    expect((await readFile(path.join(folder, 'users'), 'utf8')).trim().split('\n')).toEqual([
      '65534',
      '1',
      '65534',
      '1',
    ]);
  });

  it.each([
    ['nginx', configs.nginx()],
    ['h2o', configs.h2o()],
  ])('%s says in one line whose rights a page is closed to', async (_, config) => {
    const { folder, file } = await ownFolder(config);
    await chmod(path.join(folder, 'www'), 0o700);
    expect(await refusal(startOwn(file))).toMatch(
      /^https:\S+ answers with status 403: it runs as the user nobody here, for whom all folders above the page have to be open \(chmod o\+x\) and the page readable \(chmod o\+r\); or give a page /,
    );
  });
});
