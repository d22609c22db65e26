// A server with a CPU quota of its own leaves turns.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeCgroup, type Cgroup } from '../fixtures/cgroups.ts';
import { newOut, startCommand, useHome, wholeResult } from '../scenario-run.ts';

const home = useHome(['k6']);

/** A group with a twentieth of a core, less than a busy machine leaves to a server; undefined where none can be made. */
function littleOfACore(): Cgroup | undefined {
  const version1 = '/sys/fs/cgroup/cpu';
  const isVersion1 = existsSync(version1);
  const group = makeCgroup(isVersion1 ? version1 : '/sys/fs/cgroup', 0);
  if (group === undefined) return undefined;
  const [file, quota] = isVersion1 ? ['cpu.cfs_quota_us', '5000'] : ['cpu.max', '5000 100000'];
  try {
    writeFileSync(join(group.folder, file), quota);
    return group;
  } catch {
    console.warn(`SKIPPED: the test with a CPU quota, which cannot be set in ${group.folder}`);
    return undefined;
  }
}

const group = littleOfACore();

/** An answer is a hash of so many bytes that it takes a few tenths of a millisecond of CPU time. */
const server = `
const { createHash } = require('node:crypto');
const { createServer } = require('node:http');
const bytes = Buffer.alloc(300_000);
createServer((_, response) => {
  response.end(createHash('sha256').update(bytes).digest('hex'));
}).listen(process.env.PORT, '127.0.0.1');
`;

test.skipIf(group === undefined)(
  'a server that its own CPU quota holds back is loaded alone, and so is the other side',
  async () => {
    const out = newOut();
    const [program, script] = [join(home.folder, 'server.cjs'), join(home.folder, 'held.sh')];
    writeFileSync(program, server);
    const { folder } = group as Cgroup;
    const enters = `echo $$ >'${folder}/cgroup.procs'`;
    writeFileSync(script, `#!/bin/sh\n${enters} && exec node '${program}'\n`, { mode: 0o755 });
    // Of a set length, so that no round is repeated for another reason.
    const load = ['--load', 'wrk -c 10 -t 1 -d 1', '--warmup', '500ms', '--rounds', '4'];
    const args = [...load, '--store', 'none', '--no-look', '--out', out];
    const run = startCommand(
      ['compare', `free=node ${program}`, `held=${script}`, ...args],
      home.env,
    );
    const { variants, comparisons, warnings } = await wholeResult(run, out);
    expect(warnings.join('\n')).toContain('its own CPU quota held held back');
    const phases = variants.flatMap(({ rounds }) => rounds.flatMap((round) => round.phases));
    expect(phases.length).toBeGreaterThanOrEqual(8);
    expect(phases.map(({ turns }) => turns)).toEqual(phases.map(() => null));
    // Where others starve the free one too, there is no verdict on this.
    expect(comparisons).toMatchObject([{ variant: 'held' }]);
    expect(comparisons[0]?.ratio).toBeLessThan(1);
  },
);
