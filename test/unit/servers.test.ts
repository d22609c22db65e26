import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { nginx } from '../../lib/scenario/index.ts';
import { hardFilesLimit, workerFilesLimit } from '../../lib/servers/files-limit.ts';
import { nginxBuild, workersFor } from '../../lib/servers/index.ts';

describe('nginxBuild', () => {
  it('asks a binary once, and one that failed again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bakeoff-build-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [binary, calls] = [join(folder, 'nginx'), join(folder, 'calls')];
    const says = (text: string): void => writeFileSync(binary, `#!/bin/sh\necho "$@" >>${calls}\necho '${text}' >&2\n`, { mode: 0o755 });
    says('something else');
    await expect(nginxBuild(binary)).rejects.toThrow(`${binary} is not an nginx that runs here (something else): set NGINX_BIN to the one to measure`);
    says('nginx version: openresty/1.2.3\nconfigure arguments: --without-http_uwsgi_module');
    for (let time = 0; time < 2; time++) expect(await nginxBuild(binary)).toEqual({ version: '1.2.3', tempModules: ['proxy', 'fastcgi', 'scgi'] });
    expect(readFileSync(calls, 'utf8')).toBe('-V\n-V\n');
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
  ])('%j on %i cores, exact %j: %i', (server, cores, exact, workers) => {
    expect(workersFor(server, cores, exact)).toBe(workers);
  });
});

describe('the limit of open files', () => {
  it('is enough for the connections that the config allows', () => {
    expect(workerFilesLimit('nginx', 10240, 100, 1048576)).toBe(10496);
  });

  it('is the hard limit where that is lower but does for the load', () => {
    expect(workerFilesLimit('nginx', 10240, 100, 4096)).toBe(4096);
  });

  it('that is too low for the load is refused in one line', () => {
    expect(() => workerFilesLimit('nginx', 10240, 5000, 4096)).toThrow(/^nginx needs 5256 open files for 5000 connections, but the hard limit here is 4096: .*$/);
  });

  it('is read from the kernel', () => {
    expect(hardFilesLimit()).toBeGreaterThan(0);
  });
});
