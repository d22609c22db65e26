// What a person gives a load for its server alone is in nothing that a run prints or keeps.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  keptRounds,
  newOut,
  wholeResult,
  runFolder,
  startCommand,
  storeOf,
  useHome,
} from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'influxd']);

const secret = 'hunter2secret';
const encoded = Buffer.from(`me:${secret}`).toString('base64');
const hasSecret = new RegExp(`${secret}|${encoded}`);

const filesWithSecret = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile() && hasSecret.test(readFileSync(file, 'latin1')));

test('credentials reach the server, and nothing that is printed or kept but its configs, which are closed to others', async () => {
  const configs = join(home.folder, 'configs');
  mkdirSync(configs);
  const config = (lines: string) =>
    `events {}\nhttp { ${lines} server { listen 8080; location / {\n` +
    `if ($http_authorization != "Basic ${encoded}") { return 401; }\nif ($cookie_sid != "${secret}") { return 401; }\nreturn 200 hello; } } }\n`;
  for (const [name, lines] of Object.entries({ 'a.conf': '', 'b.conf': 'tcp_nodelay off;' }))
    writeFileSync(join(configs, name), config(lines), { mode: 0o600 });
  const out = newOut();
  const run = startCommand(
    [
      ...`compare a.conf b.conf --quick --duration 0.3s --rounds 1 --out ${out} --load`.split(' '),
      `ab -k -c 2 -n 2000 -A me:${secret} -C sid=${secret} http://localhost:8080/?access_token=${secret}`,
    ],
    { ...home.env, INIT_CWD: configs },
  );
  const result = await wholeResult(run, out);
  for (const { load, rounds } of result.variants) {
    expect(load.command).toBe(
      'ab -k -c 2 -n 2000 -A *** -C *** http://localhost:8080/?access_token=***',
    );
    expect(load).toMatchObject({ headers: { Authorization: '***', Cookie: '***' } });
    const [phase] = rounds[0]?.phases ?? [];
    expect(phase?.responses['2xx']).toBe(phase?.requests);
  }
  const folder = runFolder(out);
  expect(run.stdout() + run.stderr()).not.toMatch(hasSecret);

  // Configs are kept as they ran, and shown in the page.
  const withSecret = filesWithSecret(folder).map((file) => file.slice(folder.length + 1));
  const tries = Array.from(
    { length: keptRounds(result)[0] ?? NaN },
    (_, index) => `round-${index + 1}`,
  );
  expect(withSecret.sort()).toEqual([
    'report.html',
    ...tries.flatMap((round) => [`${round}/a/nginx.conf`, `${round}/b/nginx.conf`]),
  ]);
  for (const file of withSecret) expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);

  const again = startCommand(['report', folder], home.env);
  expect(await again.ended, again.stderr()).toBe(0);
  expect(statSync(join(folder, 'report.html')).mode & 0o777).toBe(0o600);

  await storeOf(home);
  expect(filesWithSecret(join(home.folder, 'influxdb'))).toEqual([]);
});
