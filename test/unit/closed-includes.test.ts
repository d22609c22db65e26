// Files named in a config, when root reads them on behalf of an unprivileged server.
import { chmodSync, linkSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { withShortQuotes } from '../../lib/errors.ts';
import { readBytes } from '../../lib/files.ts';
import { readOwnConfig } from '../../lib/servers/index.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { refusalOf } from '../fixtures/refused.ts';

const asRoot = it.runIf(process.getuid?.() === 0);

/** @param modes by relative path */
async function withModes(
  files: Record<string, string>,
  modes: Record<string, number>,
): Promise<string> {
  const folder = await ownFiles(files);
  for (const [name, mode] of Object.entries(modes)) chmodSync(path.join(folder, name), mode);
  return folder;
}

const secret = 'server { listen 81; } # hunter2\nroot:$6$hunter2';

const nginx = (include: string) => `events {}\nhttp {\ninclude ${include}; server { listen 80; } }`;

asRoot.each([
  ['a file', nginx('secret'), { secret: 0o640 }],
  ['a file in a closed folder', nginx('in/deep/secret'), { in: 0o754 }],
  ['a list of a closed folder', nginx('in/deep/*'), { 'in/deep': 0o711 }],
  ['a folder below a closed one', nginx('in/*/secret'), { in: 0o744 }],
  ['a link', nginx('link'), { secret: 0o600 }],
  ['a file of h2o', 'listen: 80\nhosts:\n a: !file secret', { secret: 0o600 }],
])(
  'an include of %s that the server may not read is refused, with the line',
  async (_, text, modes) => {
    const files = { 'own.conf': text, secret, 'in/deep/secret': secret };
    const folder = await withModes(files, modes as Record<string, number>);
    symlinkSync('secret', path.join(folder, 'link'));
    const line = (await refusalOf(readOwnConfig(path.join(folder, 'own.conf')))).replaceAll(
      folder,
      '',
    );
    expect(line).toMatch(/\/own\.conf:3.*not every user may (?:read|list) it.*copy.*another user$/);
    expect(line).not.toContain('hunter2');
  },
);

asRoot.each(['/proc/self/environ', '/proc/self/maps', '/dev/stdin', '/proc/self/fd/0'])(
  'an include of %s is refused, and waits for nothing',
  async (name) => {
    const folder = await ownFiles({ 'own.conf': nginx(name) });
    expect(await refusalOf(readOwnConfig(path.join(folder, 'own.conf')))).toMatch(
      /^cannot read \S+, which \S+own\.conf:3 includes: /,
    );
  },
);

// A stranger's repository may have links to what only root may read.
asRoot('a named file behind a link is read only if all may read it', async () => {
  const folder = await withModes({ closed: secret, open: 'X: y', 'in/own': '' }, { closed: 0o600 });
  const link = (name: string, target: string) => {
    symlinkSync(target, path.join(folder, name));
    return path.join(folder, name);
  };
  const readIt = (file: string) => readBytes(file, 1000).toString();
  expect(readIt(path.join(folder, 'closed'))).toBe(secret);
  expect(readIt(link('to-open', 'open'))).toBe('X: y');
  const folderLink = link('there', '.');
  const refused = `a link leads to ${folder}/closed, which not every user may read: name that file itself`;
  for (const file of [link('to-closed', 'closed'), path.join(folderLink, 'closed')])
    expect(() => readIt(file)).toThrow(refused);
  expect(await refusalOf(readOwnConfig(link('n.conf', 'closed')))).toContain(refused);
});

asRoot('a named config may be closed, but not as an include of another', async () => {
  const files = { 'own.conf': nginx('open'), open: '', 'other.conf': nginx('own.conf') };
  const folder = await withModes(files, { 'own.conf': 0o600 });
  const { listens } = await readOwnConfig(path.join(folder, 'own.conf'));
  expect(listens).toMatchObject([{ port: 80 }]);
  expect(await refusalOf(readOwnConfig(path.join(folder, 'other.conf')))).toContain(
    'not every user',
  );
});

asRoot('a site that the person names may be closed', async () => {
  const files = { site: 'server { listen 82; include more; }', 'etc/nginx.conf': nginx('none/*') };
  const folder = await withModes({ ...files, 'etc/more': '' }, { site: 0o600 });
  const within = path.join(folder, 'etc/nginx.conf');
  const { listens } = await readOwnConfig(path.join(folder, 'site'), within);
  expect(listens).toMatchObject([{ port: 82 }]);
});

asRoot('a file is as open as the name that is included', async () => {
  const folder = await withModes(
    { 'own.conf': nginx('in/again'), 'open/file': '', 'in/x': '' },
    { in: 0o700 },
  );
  linkSync(path.join(folder, 'open/file'), path.join(folder, 'in/again'));
  expect(await refusalOf(readOwnConfig(path.join(folder, 'own.conf')))).toContain('not every user');
});

it.each([
  ['root:$6$hunter2:1:0:99999:7:::\nme:hunter2:1:0\n', /^\S+ is not a config of nginx/],
  ['http { token hunter2 hunter2 }', /"token" and its words do not end with ";"$/],
  ['listen: 80\nhosts: {a: hunter2\nhunter2 b', /^h2o config \S+:\d+: [^"]*$/],
])('the error for a link to a secret file quotes at most one word: %j', async (text, line) => {
  const folder = await ownFiles({ secret: text });
  symlinkSync('secret', path.join(folder, 'own.conf'));
  const message = await refusalOf(readOwnConfig(path.join(folder, 'own.conf')));
  expect(message).toMatch(line);
  expect(message).not.toContain('hunter2');
});

it.each([
  ['unknown directive "hunter2 of root"', 'unknown directive "hunter2…"'],
  [`invalid value "${'a'.repeat(70)}"`, `invalid value "${'a'.repeat(60)}…"`],
  ['invalid port in "a:b" of "listen"', 'invalid port in "a:b" of "listen"'],
  ['open() "/a b/c" failed', 'open() "/a b/c" failed'],
])('a message quotes at most one word of a file: %s', (message, short) => {
  expect(withShortQuotes(message)).toBe(short);
});
