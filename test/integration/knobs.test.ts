// Each knob of the catalogue, applied to a complete config, with the real server.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { candidatesOf, readKnobs } from '../../lib/features/knobs/catalogue.ts';
import { readOwnConfig } from '../../lib/servers/index.ts';
import { machineCertificate } from '../../lib/servers/certificate.ts';
import type { ServerName } from '../../lib/setup/servers.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { run } from '../../lib/process.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { useServers } from '../fixtures/servers.ts';

const test = useServers();
const page = { path: '/index.html' };

async function ownConfig(server: ServerName) {
  // As root, the server runs as `nobody`, which may not read the machine's file.
  const key = await readFile(await machineCertificate(new AbortController().signal), 'utf8');
  const www = await ownFiles({ 'index.html': 'hello\n', 'key.pem': key });
  const pem = path.join(www, 'key.pem');
  const text: Record<ServerName, string> = {
    nginx: `worker_processes auto;\nevents { }\nhttp {\n  log_format short "$uri";\n  access_log /tmp/a.log short;\n  server {\n    listen 8443 ssl http2;\n    ssl_certificate ${pem};\n    ssl_certificate_key ${pem};\n    root ${www};\n  }\n}\n`,
    h2o: `listen:\n  port: 8443\n  ssl:\n    certificate-file: ${pem}\n    key-file: ${pem}\naccess-log: /tmp/a.log\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: ${www}\n`,
    nghttpd: `--htdocs=${www}\n8443\n`,
  };
  return path.join(await ownFiles({ 'own.conf': text[server] }), 'own.conf');
}

describe.each<ServerName>(['nginx', 'h2o', 'nghttpd'])('%s', (server) => {
  it.for(readKnobs(server).flatMap((knob) => candidatesOf(knob, 1)))(
    'accepts $name alone, and serves its page with it',
    async ({ overlay, knob }, { skip }) => {
      const binaries = await ensureTools([server]);
      const { stdout, stderr } = await run({
        command: binaries[server],
        args: server === 'nginx' ? ['-V'] : ['--help'],
      });
      const needed =
        server === 'nghttpd' ? /^--[\w-]+/.exec(overlay.lines)?.[0] : knob.where?.build;
      skip(
        needed !== undefined && !`${stdout}${stderr}`.includes(needed),
        `this build is without ${needed}`,
      );
      const config = await readOwnConfig(await ownConfig(server));
      const { answer } = await test.start(
        {
          name: server,
          config: [config.file],
          workers: config.workers,
          asIs: { overlays: [overlay] },
        },
        { folder: path.join(test.folder, 'run'), workers: 1, page },
      );
      expect(answer.bytes).toBe(6);
    },
  );
});
