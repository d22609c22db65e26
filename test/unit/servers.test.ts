import { describe, expect, it } from 'vitest';
import { nginx } from '../../lib/scenario/index.ts';
import { hardFilesLimit, workerFilesLimit } from '../../lib/servers/files-limit.ts';
import { workersFor } from '../../lib/servers/index.ts';

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
