// Which lines of a config of nginx serve a page.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readInPlace, servingLines } from '../../lib/servers/own/overlay-nginx.ts';
import { newFolder } from '../fixtures/new-folder.ts';

test('thousands of expressions that backtrack for ever come to an end, and count as matching', async () => {
  const location = String.raw`location ~ "^/((([a-z]+)+)+)+N[0-9]$" { return 200; }`;
  const numbered = Array.from({ length: 2000 }, (_, n) => location.replace('N', `N${n}`));
  const file = join(newFolder(), 'nginx.conf');
  writeFileSync(
    file,
    `events {}\nhttp { server { listen 80;\n${numbered.join('\n')}\nlocation /other/ { return 201; } } }`,
  );
  const config = await readInPlace(file);
  const path = `/${'a'.repeat(30)}.html`;
  const page = { port: 80, paths: [path], cores: 1 };
  const lines = servingLines(config, page);
  expect(lines.filter(({ name, args }) => name === 'return' && args[0] === '200')).toHaveLength(
    2000,
  );
  expect(lines.filter(({ args }) => args[0] === '201')).toEqual([]);
});

test('ten thousand pages leave time for all expressions', async () => {
  const other = String.raw`location ~ \.(php|cgi)$ { return 200; } location ~* ^/api/ { return 201; }`;
  const file = join(newFolder(), 'nginx.conf');
  writeFileSync(
    file,
    `events {}\nhttp { server { listen 80; ${other} location / { return 202; } } }`,
  );
  const config = await readInPlace(file);
  const paths = Array.from({ length: 10_000 }, (_, n) => `/page-${n}.html`);
  const lines = servingLines(config, { port: 80, paths, cores: 1 });
  expect(lines.flatMap(({ name, args }) => (name === 'return' ? args : []))).toEqual(['202']);
});
