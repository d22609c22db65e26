import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { requireLoopback } from '../../lib/servers/ports.ts';
import { fileLimitFor } from '../../lib/servers/rights.ts';
import { serverBuild } from '../../lib/servers/build.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

const answering = (text: string, script = '') => {
  const binary = join(newFolder(), 'server');
  writeFileSync(binary, `#!/bin/sh\n${script}\necho '${text}'\n`, { mode: 0o755 });
  return binary;
};

const versionOf = async (...asked: Parameters<typeof serverBuild>) =>
  (await serverBuild(...asked)).version;

describe('a version', () => {
  it.each([
    ['nginx', 'nginx version: openresty/1.25.3', '1.25.3'],
    ['h2o', 'h2o version 2.3.0-DEV', '2.3.0-DEV'],
    ['nghttpd', 'nghttpd nghttp2/1.52.0', '1.52.0'],
  ] as const)('is read from %s', async (name, text, version) => {
    expect(await versionOf(name, answering(text))).toBe(version);
  });

  it('of a binary that --bin names wrongly is a matter of --bin', async () => {
    const refusal = await refusalOf(
      serverBuild('nginx', answering('something else'), undefined, true),
    );
    expect(refusal).toContain('(something else): name in its place the one to measure');
  });

  it('runs a binary once for its version, and again after a failure', async () => {
    const binary = answering('something else', 'echo "$@" >>"$0.calls"');
    await expect(versionOf('nginx', binary)).rejects.toThrow(
      `${binary} is not an nginx that runs here (something else): set NGINX_BIN to the one to measure`,
    );
    writeFileSync(
      binary,
      readFileSync(binary, 'utf8').replace('something else', 'nginx version: nginx/1.22.1'),
    );
    for (let time = 0; time < 2; time++) expect(await versionOf('nginx', binary)).toBe('1.22.1');
    expect(readFileSync(`${binary}.calls`, 'utf8')).toBe('-V\n-V\n');
  });

  it.each([
    ['nginx', 'nginx version: nginx/1.16.1', '1.16.1, and bakeoff needs 1.18.0 ', 'NGINX_BIN'],
    ['h2o', 'h2o version 2.1.0', '2.1.0, and bakeoff needs 2.2.0 ', 'H2O_BIN'],
    ['nghttpd', 'nghttpd nghttp2/0.7.15', '0.7.15, and bakeoff needs 1.0.0 ', 'NGHTTPD_BIN'],
  ] as const)('of an old %s is refused', async (name, text, message, variable) => {
    const refusal = await refusalOf(versionOf(name, answering(text)));
    expect(refusal).toContain(` is ${name} ${message}`);
    expect(refusal).toContain(`set ${variable} to a newer one`);
  });
});

describe('the limit of open files', () => {
  it.each([
    ['h2o', undefined, 3840, 4096],
    ['nghttpd', 1024, 5000, 1024],
  ])(
    'is the hard limit or that of the variant: %s with %s for %i',
    (name, fileLimit, load, limit) => {
      expect(fileLimitFor(name, fileLimit, load, 4096)).toBe(limit);
    },
  );

  it('is refused if too low for a variant', () => {
    expect(() => fileLimitFor('h2o', 8192, 10, 4096)).toThrow(
      'h2o needs 8192 open files for its variant, but the hard limit here is 4096: raise it as ',
    );
  });
});

it.each([
  [
    'h2o: h2o (pid 5)',
    /or Listen .* in Apache's config; a config of nginx, h2o or nghttpd is a side/,
  ],
  ['web: node (pid 5)', /or Listen .* in Apache's config$/],
])('a server that others can reach is told how to listen on loopback alone: %s', (who, text) => {
  const open = { address: '0.0.0.0', port: 80, inode: '1', uid: 0 };
  const check = () => requireLoopback([open], { address: '127.0.0.1', port: 80 }, who);
  expect(check).toThrow(text);
});
