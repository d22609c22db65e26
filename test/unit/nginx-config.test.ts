import { describe, expect, it } from 'vitest';
import { composeConfig, parseConfig, printConfig } from '../../lib/servers/nginx-config.ts';
import { nginxKind } from '../../lib/servers/nginx.ts';
import type { Build, Place } from '../../lib/servers/server.ts';
import { ownConfig, ownFiles } from '../fixtures/own-files.ts';

const compose = (...texts: string[]): string =>
  printConfig(
    composeConfig(
      texts.map((text, index) =>
        parseConfig({ origin: index === 0 ? 'base' : `knob${index}`, text }),
      ),
    ),
    'base',
  );

describe('composing', () => {
  it('keeps the base as it is', () => {
    expect(compose('a 1;\nevents { b 2; }\nhttp {\n types { text/html html htm; }\n}')).toBe(
      'a 1;\nevents {\n    b 2;\n}\nhttp {\n    types {\n        text/html html htm;\n    }\n}\n',
    );
  });

  it('lets a knob replace what has its name in the same block, and says whose the line is', () => {
    expect(
      compose(
        'http { keepalive_requests 100; sendfile on; }',
        'http { keepalive_requests 5; }',
        'keepalive_requests 9;',
      ),
    ).toBe(
      'keepalive_requests 9;  # knob2\nhttp {\n    keepalive_requests 5;  # knob1\n    sendfile on;\n}\n',
    );
  });

  it('replaces all lines of a name, merges blocks by name and arguments, and adds the rest at the end', () => {
    expect(
      compose(
        'add a; add b; location / { x 1; } location /b { x 1; }',
        'location /b { x 2; } map $x $y { default 0; } add c; add d; e 1;',
      ),
    ).toBe(
      'add c;  # knob1\nadd d;  # knob1\ne 1;  # knob1\nlocation / {\n    x 1;\n}\nlocation /b {\n    x 2;  # knob1\n}\nmap $x $y {  # knob1\n    default 0;  # knob1\n}\n',
    );
  });

  it('carries the comments about a line, not those about its file', () => {
    expect(
      compose(
        '# the file\n\n# why a\n# is 1\na 1; # really\nb 2;\n',
        '# the knob\n\n# why b\nb 3;',
      ),
    ).toBe('# why a\n# is 1\n# really\na 1;\n# why b\nb 3;  # knob1\n');
  });

  it('leaves quotes, escapes, variables and comment signs in words alone', () => {
    const text = `log_format x '$a "{;}" # $b\\'';\nrewrite ^/a\\;b$ /\${c}d#e;\nx "y\\"z;";\n`;
    expect(compose(text)).toBe(text);
  });

  it('keeps the quotes of a name that needs them, as a key of a map may, and drops others', () => {
    const map = `map $x $y {\n    default upgrade;\n    "" close;\n    "~^[a-z]{2}$" 2;\n    "~*(google bot|bing)" 1;\n    "#top" 1;\n    ~*\\.(jpg|png)$ 3;\n    "~\\\\t" 4;\n    "~\\\\\\"" 5;\n    "\\\\" 6;\n}\n`;
    expect(compose(map)).toBe(map);
    expect(compose(`"gzip" on;\nmap $x $y {\n '' close;\n '#top' 1;\n 'a' 2;\n ~\\\\t 4; }`)).toBe(
      'gzip on;\nmap $x $y {\n    "" close;\n    "#top" 1;\n    a 2;\n    "~\\\\t" 4;\n}\n',
    );
  });

  it.each([
    ['a 1;\nhttp {\n  b 2;\n', 'nginx config base:3: "{" without its "}"'],
    ['a 1;\n}\n', 'nginx config base:2: "}" without its "{"'],
    ['http {\n a 1 }', 'nginx config base:2: "a 1" does not end with ";"'],
    ['a 1', 'nginx config base:1: "a 1" does not end with ";"'],
    ['a "b;\n c', 'nginx config base:1: " without its end'],
    [';', 'nginx config base:1: ";" without a directive'],
  ])('refuses %j', (text, message) => {
    expect(() => compose(text)).toThrow(message);
  });
});

const place: Place = {
  address: '127.0.0.1',
  port: 8099,
  workers: 3,
  fileLimit: 4096,
  docroot: '/d "x"',
  temp: '/t',
  certificateFile: async () => '/c.pem',
};
const build: Build = {
  version: '1.22.1',
  answer: '--without-http_fastcgi_module --without-http_uwsgi_module --without-http_scgi_module',
};
const composeNginx = async (...names: string[]): Promise<string> =>
  (await nginxKind.compose(names, place, build)).text;

describe('the config of a variant', () => {
  it('has its paths quoted, and temporary ones of the modules that the build has', async () => {
    const config = await composeNginx('base', 'workers');
    for (const line of [
      'root "/d \\"x\\"";',
      'client_body_temp_path "/t/client_body";',
      'proxy_temp_path "/t/proxy";',
    ])
      expect(config.split('\n').map((text) => text.replace(/ {2}# .*/, '').trim())).toContain(line);
    expect(config).not.toMatch(/^\s*(user|fastcgi_temp_path|listen 80|include)\b/m);
  });

  it('has what its files include, by names that begin at their own folders', async () => {
    const [one, other] = [
      await ownFiles({
        'nginx.conf': 'events { }\nhttp { include sub/*.conf; server { listen "443" "ssl"; } }',
        'sub/a.conf': 'types { text/x x; }\nsendfile on;',
      }),
      await ownFiles({ 'knob.conf': 'http { include lines; }', lines: 'sendfile off;' }),
    ];
    const text = await composeNginx(`${one}/nginx.conf`, `${other}/knob.conf`);
    expect(text.split('\n').map((line) => line.trim())).toEqual(
      expect.arrayContaining([
        `text/x x;  # from ${one}/sub/a.conf:1`,
        'server {',
        `sendfile off;  # from ${other}/lines:1`,
        'ssl_certificate "/c.pem";  # this machine',
      ]),
    );
    expect(text).not.toMatch(/include|sendfile on/);
  });

  it('offers the nearest file for one that is not there', async () => {
    await expect(composeNginx('base', 'open-file-cash')).rejects.toThrow(
      'there is no nginx config "open-file-cash": did you mean open-file-cache?',
    );
    await expect(composeNginx('base', '/nowhere/own.conf')).rejects.toThrow(
      'cannot read the nginx config /nowhere/own.conf',
    );
  });

  it.each([
    ['a second server', 'http { map $a $b { x y; } server { listen 81; } server { listen 82; } }'],
    ['a stream', 'stream { server { listen 9000; } }'],
  ])('refuses %s, also in an include: it would not listen on loopback', async (_, text) => {
    const including = 'events { } include inc; http { server { listen 80; } }';
    const folder = await ownFiles({ 'own.conf': including, inc: text });
    for (const file of [await ownConfig(`events { } ${text}`), `${folder}/own.conf`])
      await expect(composeNginx(file)).rejects.toThrow('keep one server block');
  });
});
