import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { k6Scripts } from './feature.ts';

test('a scenario is no script of k6, which is said before k6 is built', async () => {
  const folder = newFolder();
  vi.stubEnv('INIT_CWD', folder);
  writeFileSync(path.join(folder, 'my.scenario.ts'), "import { nginx } from 'server-bakeoff';\n");
  const run = k6Scripts.commands?.['k6']?.run;
  await expect(run?.(['run', 'my.scenario.ts'], undefined as never)).rejects.toMatchObject({
    message:
      'my.scenario.ts is a scenario: npm run scenario -- my.scenario.ts runs it, and with --k6-script writes it for k6',
    exitCode: 2,
  });
});
