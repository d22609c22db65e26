// A loopback of a side's own.
import { expect, it } from 'vitest';
import { linkOf } from '../../lib/files.ts';
import { sendIfThere } from '../../lib/process.ts';
import { openOwnLoopback } from '../../lib/runner/own-loopback.ts';
import { isRunning } from '../fixtures/processes.ts';

it.skipIf(process.getuid?.() !== 0)(
  'a loopback of its own ends when it is stopped, and its early end is reported',
  async () => {
    const loopbacks = [await openOwnLoopback(signal), await openOwnLoopback(signal)] as const;
    const [stopped, killed] = loopbacks;
    const paths = loopbacks.map(({ client }) => client.options.netns as string);
    expect(new Set([...paths, '/proc/self/ns/net'].map(linkOf)).size).toBe(3);
    const [stoppedPid, killedPid] = paths.map((path) => Number(path.split('/')[2])) as [
      number,
      number,
    ];
    sendIfThere(killedPid, 'SIGKILL');
    expect(await killed.died).toBe(
      `its own loopback (pid ${killedPid}) ended by SIGKILL: it says nothing`,
    );
    await stopped.stop();
    await stopped.stop();
    await killed.stop();
    expect(isRunning(stoppedPid)).toBe(false);
  },
);

const { signal } = new AbortController();

it('an ended run opens none', async () => {
  const ended = AbortSignal.abort(new Error('ended'));
  await expect(openOwnLoopback(ended)).rejects.toThrow('ended');
});
