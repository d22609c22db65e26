import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nginx } from '../../lib/scenario/index.ts';
import { fileLimitFor, hardFilesLimit } from '../../lib/servers/rights.ts';
import { workersFor } from '../../lib/servers/index.ts';
import { serverBuild } from '../../lib/servers/build.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const answering = (text: string, script = ''): string => {
  const binary = join(newFolder(), 'server');
  writeFileSync(binary, `#!/bin/sh\n${script}\necho '${text}'\n`, { mode: 0o755 });
  return binary;
};

const versionOf = async (...asked: Parameters<typeof serverBuild>): Promise<string> =>
  (await serverBuild(...asked)).version;

describe('a version', () => {
  it.each([
    ['nginx', 'nginx version: openresty/1.25.3', '1.25.3'],
    ['h2o', 'h2o version 2.3.0-DEV', '2.3.0-DEV'],
    ['nghttpd', 'nghttpd nghttp2/1.52.0', '1.52.0'],
  ] as const)('%s says it', async (name, text, version) => {
    expect(await versionOf(name, answering(text))).toBe(version);
  });

  it('asks a binary once, and one that failed again', async () => {
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
    [
      'nginx',
      'nginx version: nginx/1.16.1',
      'is nginx 1.16.1, and only 1.18.0 and newer know what the shipped configs say: set NGINX_BIN to a newer one',
    ],
    [
      'h2o',
      'h2o version 2.1.0',
      "is h2o 2.1.0, and only 2.2.0 and newer know article 001's config: set H2O_BIN to a newer one",
    ],
    [
      'nghttpd',
      'nghttpd nghttp2/0.7.15',
      'is nghttpd 0.7.15, and only 1.0.0 and newer speak HTTP/2 as it was finished (RFC 7540): set NGHTTPD_BIN to a newer one',
    ],
  ] as const)('%s that is too old is refused', async (name, text, message) => {
    const binary = answering(text);
    await expect(versionOf(name, binary)).rejects.toThrow(`${binary} ${message}`);
  });
});

describe('workersFor', () => {
  const spec = nginx(['base'], { workers: 'server-cores', articleWorkers: 16 });

  it.each([
    [spec, 1, false, 1],
    [spec, 8, false, 8],
    [spec, 1, true, 16],
    [{ ...spec, minWorkers: 2 }, 1, false, 2],
    [{ ...spec, minWorkers: 2 }, 8, false, 8],
    [{ ...spec, workers: 1, articleWorkers: 1 }, 8, false, 1],
    [{ name: 'h2o' as const, config: ['h2'], workers: 'server-cores' as const }, 8, true, 8],
  ])('%j on %i cores, exact %j: %i', (server, cores, exact, workers) => {
    expect(workersFor(server, cores, exact)).toBe(workers);
  });
});

describe('the limit of open files', () => {
  it('is the hard limit, as long as that does for the load', () => {
    expect(fileLimitFor('h2o', undefined, 100, 4096)).toBe(4096);
    expect(fileLimitFor('h2o', undefined, 3840, 4096)).toBe(4096);
  });

  it("is the variant's own, too low for the load or not", () => {
    expect(fileLimitFor('nghttpd', 1024, 5000, 4096)).toBe(1024);
  });

  it('that is too low is refused in one line', () => {
    expect(() => fileLimitFor('h2o', undefined, 5000, 4096)).toThrow(
      /^h2o needs 5256 open files for 5000 connections, but the hard limit here is 4096: .*$/,
    );
    expect(() => fileLimitFor('nghttpd', 8192, 10, 4096)).toThrow(
      /^nghttpd needs 8192 open files for its variant, but the hard limit here is 4096: raise it as root .*$/,
    );
  });

  it('is read from the kernel', () => {
    expect(hardFilesLimit()).toBe(
      Number(execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' })),
    );
  });
});
