// Each knob of the catalogue, alone on a whole config, with the real server.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { candidatesOf, readKnobs } from '../../lib/knobs/catalogue.ts';
import { writeWith } from '../../lib/knobs/written.ts';
import { layable } from '../../lib/servers/own/own-config.ts';
import type { ServerName } from '../../lib/scenario/model.ts';
import { readOwnConfig } from '../../lib/servers/index.ts';
import { machineCertificate } from '../../lib/servers/certificate.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { run } from '../../lib/setup/run.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { useServers } from '../fixtures/servers.ts';

const test = useServers();
const page = { path: '/index.html' };

/** A config over TLS and HTTP/2 for each server, in a folder with its page. */
async function ownConfig(server: ServerName): Promise<string> {
  const pem = await machineCertificate(new AbortController().signal);
  const www = await ownFiles({ 'index.html': 'hello\n' });
  const text: Record<ServerName, string> = {
    nginx: `worker_processes auto;\nevents { }\nhttp {\n  log_format short "$uri";\n  access_log /tmp/a.log short;\n  server {\n    listen 8443 ssl http2;\n    ssl_certificate ${pem};\n    ssl_certificate_key ${pem};\n    root ${www};\n  }\n}\n`,
    h2o: `listen:\n  port: 8443\n  ssl:\n    certificate-file: ${pem}\n    key-file: ${pem}\naccess-log: /tmp/a.log\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: ${www}\n`,
    nghttpd: `--htdocs=${www}\n8443\n`,
  };
  return path.join(await ownFiles({ 'own.conf': text[server] }), 'own.conf');
}

describe.each<ServerName>(['nginx', 'h2o', 'nghttpd'])('%s', (server) => {
  it.for(readKnobs(server).flatMap((knob) => candidatesOf(knob, 1)))('accepts $name alone, and serves its page with it', async ({ laid, knob }, { skip }) => {
    const binaries = await ensureTools([server]);
    const { stdout, stderr } = await run({ command: binaries[server], args: server === 'nginx' ? ['-V'] : ['--help'] });
    const needed = server === 'nghttpd' ? /^--[\w-]+/.exec(laid.lines)?.[0] : knob.where?.build;
    skip(needed !== undefined && !`${stdout}${stderr}`.includes(needed), `this build is without ${needed}`);
    const own = await readOwnConfig(await ownConfig(server));
    const { answer } = await test.start({ name: server, config: [own.file], workers: own.workers, asIs: { laid: [laid] } }, { folder: path.join(test.folder, 'run'), workers: 1, page });
    expect(answer.bytes).toBe(6);
  });
});

it('writes a config that nginx takes', async () => {
  const file = await ownConfig('nginx');
  const config = await layable({ server: 'nginx', file }, { port: 8443, paths: ['/index.html'], cores: 1 });
  const laid = readKnobs('nginx').filter(({ name }) => ['open-file-cache', 'multi-accept', 'backlog', 'pcre-jit'].includes(name)).flatMap((knob) => candidatesOf(knob, 1)).slice(-4);
  const best = path.join(path.dirname(file), 'best.conf');
  const after = config.lay(laid.map((one) => one.laid));
  const said = await writeWith(after, file, best);
  expect(said).toEqual(expect.arrayContaining(['+pcre_jit on;', '+    multi_accept on;', '-    listen 8443 ssl http2;', '+    listen 8443 ssl http2 backlog=16384;']));
  expect(existsSync(best)).toBe(true);
  const again = await layable({ server: 'nginx', file: best }, { port: 8443, paths: ['/index.html'], cores: 1 });
  expect(again.lay(laid.map((one) => one.laid)).edits).toEqual([]);
  const { answer } = await test.start({ name: 'nginx', config: [best], workers: 1, asIs: {} }, { folder: path.join(test.folder, 'best'), workers: 1, page });
  expect(answer.bytes).toBe(6);
  const before = readFileSync(best, 'utf8');
  await expect(writeWith(after, file, best)).rejects.toThrow(/--write .*best\.conf: EEXIST/);
  expect(readFileSync(best, 'utf8')).toBe(before);
});

it('writes a config as it was measured, also where it has changed since, and none that says something else', async () => {
  const file = path.join(await ownFiles({ 'own.yaml': 'listen: 80\nhosts: {}\n', 'own.end.yaml': 'listen: 80\nhosts: {}\n...\n' }), 'own.yaml');
  const laid = { context: 'top', lines: 'num-threads: 2' };
  const at = { port: 80, paths: ['/'], cores: 1 };
  const config = await layable({ server: 'h2o', file }, at);
  appendFileSync(file, '# more\n');
  const best = `${file}.best`;
  expect((await writeWith(config.lay([laid]), file, best))[0]).toBe(`${file} has changed since it was measured: ${best} is made of what it was.`);
  expect(readFileSync(best, 'utf8')).toBe('listen: 80\nhosts: {}\nnum-threads: 2\n');
  const ended = file.replace('.yaml', '.end.yaml');
  expect(await writeWith((await layable({ server: 'h2o', file: ended }, at)).lay([laid]), ended, `${ended}.best`)).toEqual([expect.stringMatching(/^\/.*best is not written: as own\.end\.yaml is written, more than these lines would have to change\./)]);
  expect(existsSync(`${ended}.best`)).toBe(false);
});
