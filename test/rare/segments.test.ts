// One load from several k6 processes.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startK6, compileScript } from '../../lib/runner/k6.ts';
import { instanceArguments } from '../fixtures/pods.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { newFolder } from '../fixtures/new-folder.ts';

test('no process begins if the numbers of instances disagree', async () => {
  const { k6 } = await ensureTools(['k6']);
  const folder = newFolder();
  const [script, binary] = [path.join(folder, 'script.js'), path.join(folder, 'k6')];
  await compileScript(script);
  const flags = instanceArguments(1, 2).join(' ');
  await writeFile(binary, `#!/bin/sh\nexec '${k6}' "$@" ${flags}\n`, { mode: 0o755 });
  const side = { url: 'http://127.0.0.1:9/', connections: 3, requests: 3 };
  const loadPlan = {
    scenario: 'segments',
    tags: {},
    instances: 3,
    maxDurationSeconds: 30,
    phases: [{ sides: [side] }],
  };
  const running = await startK6({ binary, script, folder, cpus: [1], loadPlan, output: null });
  onTestFinished(() => running.stop(0));
  await expect(running.results()).rejects.toThrow(
    'the load is divided among 3 k6, and the execution segments of this one among 2: give --execution-segment and --execution-segment-sequence for 3',
  );
}, 300_000);
