// What of a person's own config is redirected, and that the rest is as it was.
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { UserError } from '../../lib/errors.ts';
import { h2oKind } from '../../lib/servers/h2o.ts';
import { nghttpdKind } from '../../lib/servers/nghttpd.ts';
import { nginxKind } from '../../lib/servers/nginx.ts';
import { originOfLine } from '../../lib/servers/own/origin.ts';
import { isLoopback } from '../../lib/servers/own/upstream.ts';
import type { AdoptedConfig, AdoptPlace, Build, ServerKind } from '../../lib/servers/server.ts';
import { ownFiles } from '../fixtures/own-files.ts';

const build: Build = { version: '1.22.1', answer: '' };
const asRoot = { name: 'nobody', group: 'nogroup' };

interface Adopted extends AdoptedConfig { folder: string; lines: string[] }

/** Adopts it at port 9000, others from 9001 on. The folder is left out of what comes back. */
async function adopt(kind: ServerKind, text: string, place: Partial<AdoptPlace> = {}, others: Record<string, string> = {}): Promise<Adopted> {
  const folder = await ownFiles({ 'own.conf': text, ...others });
  let next = 9000;
  const config = await kind.adopt(path.join(folder, 'own.conf'), {
    port: 9000, cores: 2, fileLimit: 5000, temp: '/t', logFile: '/run/error.log', listen: undefined, user: asRoot,
    nextPort: () => Promise.resolve(++next), certificateFile: () => Promise.resolve('/machine.pem'), ...place,
  }, build);
  const short = (one: string): string => one.replaceAll(folder, '~');
  const lines = config.text.split('\n').map((line) => short(line.replace(/ {2}# .*/, '').trim())).filter((line) => line !== '' && !line.startsWith('#'));
  return { ...config, folder, lines, redirections: config.redirections.map(short), args: (file) => config.args(file).map(short) };
}

/** The message of what is refused, without the folder. */
async function refusal(kind: ServerKind, text: string, place: Partial<AdoptPlace> = {}): Promise<string> {
  const error: unknown = await adopt(kind, text, place).then(() => expect.fail('it was taken'), (thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UserError);
  expect((error as Error).message).not.toContain('\n');
  return (error as Error).message.replace(/\/\S*\/own\.conf/g, 'own.conf');
}

describe('nginx', () => {
  const nginx = (text: string, place?: Partial<AdoptPlace>, others?: Record<string, string>): Promise<Adopted> => adopt(nginxKind, text, place, others);
  const builtIns = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path`);

  it('gets what it leaves to the build, and keeps everything else', async () => {
    const { lines, redirections, tls, protocol, workers, args } = await nginx("events { worker_connections 9; }\nhttp { log_format x '$uri' # one\n ' {;}';\n server { listen 80; return 200 \"a;\\\"b\"; } }");
    expect(lines).toEqual([
      'daemon off;', 'error_log "/run/error.log";', 'pid "/t/pid";', 'lock_file "/t/lock_file";', 'events {', 'worker_connections 9;', '}', 'http {',
      ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path "/t/${name}";`), 'access_log "/t/access-1.log" combined;',
      "log_format x '$uri' ' {;}';", 'server {', 'listen 127.0.0.1:9000;', 'return 200 "a;\\"b";', '}', '}',
    ]);
    expect(redirections).toEqual([
      'listen 80 → 127.0.0.1:9000', `what it leaves to nginx's build → a temporary file each: error_log, pid, lock_file, ${builtIns.join(', ')}, access_log`,
    ]);
    expect({ tls, protocol, workers }).toEqual({ tls: false, protocol: 'http/1.1', workers: 1 });
    expect(args('/run/nginx.conf')).toEqual(['-e', '/run/error.log', '-c', '/run/nginx.conf']);
  });

  /** Lines and redirections that there are beside those of `http { server { listen 80; } }`. */
  async function beside(main: string, server = '', place?: Partial<AdoptPlace>): Promise<{ lines: string[]; said: string[] }> {
    const plain = await nginx('http { server { listen 80; } }', place);
    const changed = await nginx(`${main}\nhttp { server { listen 80; ${server} } }`, place, { 'x.js': '' });
    return {
      lines: changed.lines.filter((line) => !plain.lines.includes(line)),
      said: changed.redirections.filter((line) => !plain.redirections.includes(line) && !line.startsWith('what it leaves')),
    };
  }

  it.each([
    ['daemon on;', [], ['daemon on → off, so that its end is seen']],
    ['daemon off;', [], []],
    ['pid /run/nginx.pid;', [], ['pid /run/nginx.pid → a temporary file']],
    ['lock_file l;', [], ['lock_file l → a temporary file']],
    ['worker_processes auto;', ['worker_processes 2;'], ['worker_processes auto → 2, the number of server cores']],
    ['worker_processes 7;', ['worker_processes 7;'], []],
    ['worker_cpu_affinity auto 01;', [], ["worker_cpu_affinity auto 01: left out, the workers run on the server's cores"]],
    ['worker_rlimit_nofile 90000;', ['worker_rlimit_nofile 90000;'], []],
    ['error_log logs/e.log warn;', ['error_log "/run/error.log" warn;'], ['error_log logs/e.log → error.log of this run']],
    ['error_log syslog:server=10.0.0.1 info;', ['error_log "/run/error.log" info;'], ['error_log syslog:server=10.0.0.1 → error.log of this run']],
    ['error_log stderr;', ['error_log stderr;'], []],
    ['user root;', ['user root;'], []],
    ['user nosuchuser;', ['user nobody nogroup;'], ['user nosuchuser → nobody nogroup, since nosuchuser is not there']],
    ['user root nosuchgroup;', ['user nobody nogroup;'], ['user root nosuchgroup → nobody nogroup, since the group nosuchgroup is not there']],
    ['load_module modules/x.so;', ['load_module modules/x.so;'], []],
    ['stream { server { listen 53 udp; proxy_pass 10.0.0.1:53; } }', [], ['stream { } at ~/own.conf:1: left out, only HTTP is compared']],
    ['mail { server { listen 25; } }', [], ['mail { } at ~/own.conf:1: left out, only HTTP is compared']],
    ['rtmp { server { listen 1935; application live { push rtmp://10.0.0.1/live; } } }', [], ['rtmp { } at ~/own.conf:1: left out, only HTTP is compared']],
    ['google_perftools_profiles /var/log/p;', [], ['google_perftools_profiles /var/log/p: left out']],
  ])('has %j with what is said', async (main, lines, said) => {
    expect(await beside(main)).toEqual({ lines, said });
  });

  it.each([
    ['user root;', [], ['user root → whoever starts bakeoff, since it takes root to become another one']],
    ['worker_rlimit_nofile 90000;', ['worker_rlimit_nofile 5000;'], ['worker_rlimit_nofile 90000 → 5000, the hard limit here']],
    ['worker_rlimit_nofile 4000;', ['worker_rlimit_nofile 4000;'], []],
  ])('that root does not start has %j with what is said', async (main, lines, said) => {
    expect(await beside(main, '', { user: undefined })).toEqual({ lines, said });
  });

  it.each([
    ['access_log off;', ['access_log off;'], []],
    ['access_log /var/log/a.log main buffer=4k flush=1s;', ['access_log "/t/access-2.log" combined;', 'access_log "/t/access-1.log" main buffer=4k flush=1s;'], ['access_log /var/log/a.log → a temporary file']],
    ['access_log syslog:server=10.0.0.1 main;', ['access_log "/t/access-2.log" combined;', 'access_log "/t/access-1.log" main;'], ['access_log syslog:server=10.0.0.1 → a temporary file']],
    ['proxy_temp_path /var/tmp/p 1 2;', ['proxy_temp_path "/t/proxy_temp_path-1" 1 2;'], ['proxy_temp_path /var/tmp/p → a temporary file']],
    ['ssl_certificate a.pem; ssl_certificate_key "ssl/a.key"; ssl_dhparam /etc/dh; ssl_certificate data:$x; ssl_certificate $y;',
      ['ssl_certificate "~/a.pem";', 'ssl_certificate_key "~/ssl/a.key";', 'ssl_dhparam /etc/dh;', 'ssl_certificate data:$x;', 'ssl_certificate $y;'], []],
    ['location / { auth_basic_user_file htpasswd; root html; proxy_ssl_trusted_certificate sub/ca; }',
      ['location / {', 'auth_basic_user_file "~/htpasswd";', 'root html;', 'proxy_ssl_trusted_certificate "~/sub/ca";'], ["relative paths begin at /usr/local/nginx, this nginx's own prefix"]],
    ['ssl_stapling on;', ['ssl_stapling off;'], ['ssl_stapling on → off, since it would ask another machine']],
    ['ssl_stapling on; ssl_stapling_file s;', ['ssl_stapling on;', 'ssl_stapling_file "~/s";'], []],
    ['proxy_store on; proxy_store_access user:rw;', ['proxy_store off;', 'proxy_store_access user:rw;'], ['proxy_store on → off, since it would write among the files that are served']],
    ['fastcgi_store /data$uri; scgi_store off;', ['fastcgi_store off;', 'scgi_store off;'], ['fastcgi_store /data$uri → off, since it would write among the files that are served']],
    ['js_path "sub"; js_import x.js; js_import y from /abs/y.js; js_import z from z.js;',
      ['js_path "~/sub";', 'js_import "~/x.js";', 'js_import y from /abs/y.js;', 'js_import z from z.js;'], ['js_import: runs as it is, the files that it writes and the addresses that it calls are not redirected']],
    ['set_by_lua_block $a { -- }\n return "}" .. [[}]] .. \'\\\'}\' } add_header X a}b;', ['set_by_lua_block $a { -- }', 'return "}" .. [[}]] .. \'\\\'}\' }', 'add_header X a}b;'],
      ['set_by_lua_block: runs as it is, the files that it writes and the addresses that it calls are not redirected']],
    ['add_header X a\u00a0b;', ['add_header X a\u00a0b;'], []],
  ].map(([server, lines, said]) => [server, lines, said] as [string, string[], string[]]))('has in its server %j with what is said', async (server, lines, said) => {
    expect(await beside('', server)).toEqual({ lines, said });
  });

  describe('addresses', () => {
    const listens = async (http: string, place?: Partial<AdoptPlace>): Promise<{ lines: string[]; said: string[] }> => {
      const { lines, redirections } = await nginx(`http { ${http} }`, place);
      return { lines: lines.filter((line) => line.startsWith('listen') || line.startsWith('server_name')), said: redirections.filter((line) => !line.startsWith('what it leaves')) };
    };

    it('of the same port become one, and say once what may be said once', async () => {
      expect(await listens('server { listen 80 default_server backlog=511 reuseport; listen [::]:80 default_server ipv6only=on backlog=511; server_name a; } server { listen *:80; server_name b; }')).toEqual({
        lines: ['listen 127.0.0.1:9000 default_server backlog=511 reuseport;', 'server_name a;', 'listen 127.0.0.1:9000;', 'server_name b;'],
        said: ['listen 80, [::]:80, *:80 → 127.0.0.1:9000'],
      });
    });

    it('that were two keep the first default server and the first options of the socket', async () => {
      const { lines, said } = await listens('server { listen 10.0.0.1:80 default_server fastopen=5; }\nserver { listen 10.0.0.2:80 default_server fastopen=6; }');
      expect(lines).toEqual(['listen 127.0.0.1:9000 default_server fastopen=5;', 'listen 127.0.0.1:9000;']);
      expect(said).toEqual([
        'listen 10.0.0.1:80, 10.0.0.2:80 → 127.0.0.1:9000', 'default_server at ~/own.conf:2: left out, 127.0.0.1:9000 has the one at ~/own.conf:1',
        'fastopen=6 at ~/own.conf:2: left out, 127.0.0.1:9000 has fastopen=5',
      ]);
    });

    it('of several ports, ranges and sockets are all moved; the one that is loaded gets the port', async () => {
      expect(await listens('server { listen 80; listen unix:/run/a.sock; } server { listen 443 ssl http2; listen 8000-8001; }', { listen: 443 })).toEqual({
        lines: ['listen 127.0.0.1:9001;', 'listen unix:/t/1.sock;', 'listen 127.0.0.1:9000 ssl http2;', 'listen 127.0.0.1:9002;', 'listen 127.0.0.1:9003;'],
        said: ['listen 80 → 127.0.0.1:9001', 'listen unix:/run/a.sock → a temporary socket', 'listen 443 → 127.0.0.1:9000', 'listen 8000 → 127.0.0.1:9002', 'listen 8001 → 127.0.0.1:9003'],
      });
    });

    it('do not expect the PROXY protocol, which load generators do not speak', async () => {
      expect(await listens('server { listen 80 proxy_protocol; listen 443 ssl proxy_protocol backlog=9; }', { listen: 443 })).toEqual({
        lines: ['listen 127.0.0.1:9001;', 'listen 127.0.0.1:9000 ssl backlog=9;'],
        said: ['listen 80 → 127.0.0.1:9001', 'listen 443 → 127.0.0.1:9000', 'proxy_protocol at ~/own.conf:1: left out, load generators do not speak it'],
      });
    });

    it("of a server without a listen line are nginx's own", async () => {
      const port = process.getuid?.() === 0 ? 80 : 8000;
      expect(await listens('server { server_name a; }')).toEqual({
        lines: ['listen 127.0.0.1:9000;', 'server_name a;'], said: [`listen ${port} (nginx's own, no listen line at ~/own.conf:1) → 127.0.0.1:9000`],
      });
    });

    it('of HTTP/3 are left out, with the server that has no others', async () => {
      expect(await listens('server { listen 443 quic reuseport; listen 443 ssl; server_name a; }\nserver { listen 444 quic; server_name b; }')).toEqual({
        lines: ['listen 127.0.0.1:9000 ssl;', 'server_name a;'],
        said: [
          'listen 443 → 127.0.0.1:9000', 'listen 443 quic reuseport: left out, HTTP/3 is not compared', 'listen 444 quic: left out, HTTP/3 is not compared',
          'server { } at ~/own.conf:2: left out, it listens to HTTP/3 only',
        ],
      });
    });

    it('have to be chosen among where there are several', async () => {
      const text = 'http { server { listen 80; listen 81; } }';
      expect(await refusal(nginxKind, text)).toBe('own.conf listens on the ports 80, 81: say which one is to be loaded');
      expect(await refusal(nginxKind, text, { listen: 82 })).toBe('own.conf does not listen on port 82; it does on 80, 81');
      expect(await refusal(nginxKind, 'http { server { listen unix:/x; } }')).toBe('own.conf listens on no TCP port');
    });
  });

  describe('upstreams', () => {
    const passes = async (http: string): Promise<string[]> =>
      (await nginx(`http { server { listen 80; } server { listen unix:/run/own; listen 8080; } ${http} }`, { listen: 80 })).lines.filter((line) => /^(server |\w+_pass )/.test(line) && !line.endsWith('{'));

    it('of this machine stay as they are, and follow what has moved', async () => {
      expect(await passes(`upstream app { server 127.0.0.1:3000 weight=2; server localhost:8080; server unix:/run/app; server 10.0.0.1 down; }
        server { listen 80; location /a { proxy_pass http://app/x; } location /b { proxy_pass "http://127.0.0.1:8080/y?$args"; } location /c { fastcgi_pass unix:/run/php.sock; }
          location /d { proxy_pass http://unix:/run/own:/z; } location /e { grpc_pass [::1]:50051; } location /f { proxy_pass http://app$request_uri; } location /g { proxy_pass http://127.0.0.1; } }`)).toEqual([
        'server 127.0.0.1:3000 weight=2;', 'server "127.0.0.1:9001";', 'server unix:/run/app;', 'server 10.0.0.1 down;',
        'proxy_pass http://app/x;', 'proxy_pass "http://127.0.0.1:9001/y?$args";', 'fastcgi_pass unix:/run/php.sock;', 'proxy_pass "http://unix:/t/1.sock:/z";', 'grpc_pass [::1]:50051;',
        'proxy_pass http://app$request_uri;', 'proxy_pass "http://127.0.0.1:9000";',
      ]);
    });

    it('have names in any case, and sockets in all their notations', async () => {
      expect(await passes(`upstream App { server unix:///run/app.sock; } upstream own { server unix:///run/own; }
        server { listen 80; location / { proxy_pass http://aPP; } location /a { uwsgi_pass unix:///run/u.sock; } location /b { proxy_pass http://127.0.0.1\${uri}; } }`)).toEqual([
        'server unix:///run/app.sock;', 'server "unix:/t/1.sock";', 'proxy_pass http://aPP;', 'uwsgi_pass unix:///run/u.sock;', 'proxy_pass "http://127.0.0.1:9000${uri}";',
      ]);
    });

    it("are somebody else's at a port of 127.0.0.1 that the config has at another address only, and loaded too", async () => {
      const { lines, redirections } = await nginx('http { server { listen 10.0.0.1:80; location / { proxy_pass http://127.0.0.1; } location /a { proxy_pass http://localhost:3000; } location /b { proxy_pass http://localhost:3000; } } }');
      expect(lines.filter((line) => line.startsWith('proxy_pass'))).toEqual(['proxy_pass http://127.0.0.1;', 'proxy_pass http://localhost:3000;', 'proxy_pass http://localhost:3000;']);
      expect(redirections.filter((line) => line.startsWith('proxy_pass'))).toEqual(['proxy_pass http://127.0.0.1: what runs there is loaded too', 'proxy_pass http://localhost:3000: what runs there is loaded too']);
    });

    it.each([
      ['upstream app { server 10.0.0.5:80; }', 'server 10.0.0.5:80'],
      ['otel_exporter { endpoint otel:4317; }', 'endpoint otel:4317'],
      ['acme_issuer a { uri https://acme.example/; }', 'acme_issuer'],
      ['server { location / { proxy_pass https://example.org/; } }', 'proxy_pass https://example.org/'],
      ['server { location / { if ($x) { fastcgi_pass php:9000; } } }', 'fastcgi_pass php:9000'],
      ['server { location / { grpc_pass grpc://[2001:db8::1]:1; } }', 'grpc_pass grpc://[2001:db8::1]:1'],
      ['server { location / { proxy_pass http://127.0.0.1.example.org; } }', 'proxy_pass http://127.0.0.1.example.org'],
      ['server { location / { proxy_pass http://127.0.0.1@example.org; } }', 'proxy_pass http://127.0.0.1@example.org'],
    ])('elsewhere are refused: %s', async (http, words) => {
      expect(await refusal(nginxKind, `http {\n server { listen 80; }\n ${http} }`)).toBe(
        `own.conf:3: ${words} leaves this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config`,
      );
    });

    it.each(['http://$host', 'http://127.0.0.1$args', 'http://app$suffix', '$scheme://127.0.0.1', 'http://127.0.0.1:$port'])('that a variable names are refused: %s', async (target) => {
      expect(await refusal(nginxKind, `http { upstream app { server 127.0.0.1:1; } server { listen 80; location / { proxy_pass ${target}; } } }`)).toBe(
        `own.conf:1: proxy_pass ${target} may leave this machine, a variable says to where: name an address of 127.0.0.1`,
      );
    });

    it('know what loopback is', () => {
      expect(['127.0.0.1', '127.1.2.3', 'localhost', '[::1]', '[0:0:0:0:0:0:0:1]'].filter((host) => !isLoopback(host))).toEqual([]);
      expect(['128.0.0.1', '127.0.0.1.org', '0.0.0.0', '[::]', '[::11]', 'localhost.org', ''].filter(isLoopback)).toEqual([]);
    });
  });

  it('keeps two logs two, and one log one', async () => {
    const { lines } = await nginx('http { access_log /a; server { listen 80; access_log /b; location / { access_log /a; access_log /c.$host; } } }');
    expect(lines.filter((line) => line.startsWith('access_log'))).toEqual(['/t/access-1.log', '/t/access-2.log', '/t/access-1.log', '/t/access-3.log'].map((file) => `access_log "${file}";`));
  });

  it('knows of each line where it comes from', async () => {
    const { text, folder } = await nginx("http {\n\n include a;\n log_format x 'a\nb';\n server {\n listen 80; } }", {}, { a: '# about\n\ngzip\n on;' });
    const lines = text.split('\n');
    const origin = (words: string): string | undefined => originOfLine(text, lines.findIndex((line) => line.includes(words)) + 1);
    expect(origin('gzip on;')).toBe(`${folder}/a:3`);
    expect(origin("log_format x 'a")).toBe(`${folder}/own.conf:4`);
    expect(origin('listen ')).toBe(`${folder}/own.conf:7`);
  });
});

describe('h2o', () => {
  const h2o = async (text: string, place?: Partial<AdoptPlace>, others?: Record<string, string>): Promise<Adopted & { yaml: Record<string, unknown> }> => {
    const config = await adopt(h2oKind, text, place, others);
    return { ...config, yaml: parse(config.text.replaceAll(config.folder, '~'), { uniqueKeys: false, schema: 'failsafe' }) as Record<string, unknown> };
  };
  const plain = { 'num-threads': '2', 'error-log': '/run/error.log', user: 'root' };
  const root = 'user (h2o\'s own) → root: as another user h2o would go on when bakeoff is killed';
  const threads = 'num-threads (all cores) → 2, the number of server cores';

  it('gets an address, threads, a log and its user, and keeps everything else', async () => {
    const { yaml, redirections, tls, protocol, workers, workingFolder, folder } = await h2o('listen: 80\nhosts:\n  "a:b":\n    paths:\n      /: {file.dir: www, mruby.handler: "|env|\\n [200, {}, [\\"#\\"]]\\n"}\n      /x:\n        - redirect: http://example.org/\n        - status: ON\n      /e: {}\n      /l: []\nsetenv:\n  listen: "80"\n  A: ""\n');
    expect(yaml).toEqual({
      ...plain, listen: { host: '127.0.0.1', port: '9000' },
      hosts: { 'a:b': { paths: { '/': { 'file.dir': 'www', 'mruby.handler': '|env|\n [200, {}, ["#"]]\n' }, '/x': [{ redirect: 'http://example.org/' }, { status: 'ON' }], '/e': {}, '/l': [] } } },
      setenv: { listen: '80', A: '' },
    });
    expect(redirections).toEqual([
      'listen 80 → 127.0.0.1:9000', threads, root, 'mruby.handler: runs as it is, the files that it writes and the addresses that it calls are not redirected',
      'relative paths begin at ~, as if h2o were started there',
    ]);
    expect({ tls, protocol, workers, workingFolder }).toEqual({ tls: false, protocol: 'http/1.1', workers: 2, workingFolder: folder });
  });

  it.each([
    ['num-threads: 5', { 'num-threads': '5' }, []],
    ['user: www-data', {}, ['user www-data → root: as another user h2o would go on when bakeoff is killed']],
    ['pid-file: /run/h2o.pid', {}, ['pid-file /run/h2o.pid: left out']],
    ['error-log: "|cat"', {}, ['error-log |cat → error.log of this run']],
    ['access-log: "|rotatelogs x"', { 'access-log': '/t/access-1.log' }, ['access-log |rotatelogs x → a temporary file']],
    ['access-log: {path: /var/log/a, format: "%h"}', { 'access-log': { path: '/t/access-1.log', format: '%h' } }, ['access-log /var/log/a → a temporary file']],
    ['access-log: [/a, {path: /b}, /a]', { 'access-log': ['/t/access-1.log', { path: '/t/access-2.log' }, '/t/access-1.log'] }, ['access-log /a → a temporary file', 'access-log /b → a temporary file']],
    ['access-log: /dev/null', { 'access-log': '/dev/null' }, []],
    ['reproxy: OFF', { reproxy: 'OFF' }, []],
    ['reproxy: ON', { reproxy: 'ON' }, ['reproxy: runs as it is, the files that it writes and the addresses that it calls are not redirected']],
  ])('has %j with what is said', async (line, expected, said) => {
    const { yaml, redirections } = await h2o(`listen: 80\nhosts: {a: {paths: {}}}\n${line}\n`);
    expect(yaml).toEqual({ ...plain, listen: { host: '127.0.0.1', port: '9000' }, hosts: { a: { paths: {} } }, ...expected });
    expect(redirections.filter((one) => !['listen 80 → 127.0.0.1:9000', threads, root].includes(one))).toEqual(said);
  });

  it('that root does not start stays who starts it', async () => {
    const { yaml, redirections } = await h2o('user: www-data\nlisten: 80\nhosts: {}', { user: undefined });
    expect(yaml).not.toHaveProperty('user');
    expect(redirections).toContain('user www-data: left out, since it takes root to become another one');
  });

  it('listens on other addresses, with TLS as it was; the same twice is once', async () => {
    const { text, redirections, tls, protocol } = await h2o(
      'listen: {host: 0.0.0.0, port: 443, ssl: &s {certificate-file: c, key-file: k, minimum-version: TLSv1.2}}\nlisten: {host: "::", port: 443, ssl: *s}\nhosts:\n  a:\n    listen: 80\n    listen: {type: unix, port: /run/a, permission: "666"}\n    paths: {}\n', { listen: 443 },
    );
    expect(text.match(/^ *listen:/gm)).toHaveLength(3);
    expect(text.match(/^ {2}ssl:/gm)).toHaveLength(1);
    expect(text).toMatch(/minimum-version: TLSv1\.2 /);
    expect({ tls, protocol }).toEqual({ tls: true, protocol: 'h2' });
    expect(redirections.filter((line) => /^(listen|ocsp)/.test(line))).toEqual([
      'listen 0.0.0.0:443, :::443 → 127.0.0.1:9000', 'listen 80 → 127.0.0.1:9001', 'listen /run/a → a temporary socket', 'ocsp-update-interval → 0, since it would ask another machine',
    ]);
  });

  it('does not expect the PROXY protocol', async () => {
    const { yaml, redirections } = await h2o('listen: {port: 80, proxy-protocol: ON}\nhosts: {a: {paths: {}}}');
    expect(yaml['listen']).toEqual({ host: '127.0.0.1', port: '9000' });
    expect(redirections).toContain('proxy-protocol: left out, load generators do not speak it');
  });

  it('passes on to this machine only, and follows what has moved', async () => {
    const paths = '/a: {proxy.reverse.url: "http://127.0.0.1:8080/x"}\n      /b: {proxy.reverse.url: "http://localhost:3000/"}\n      /c: {proxy.reverse.url: "http://[unix:/run/own]/y"}\n      /d: {fastcgi.connect: {port: /run/own, type: unix}}\n      /e: {fastcgi.connect: 9000}\n      /f: {proxy.reverse.url: [{url: "http://127.0.0.1:8080/"}, "http://[::1]:1/"]}\n      /g: {proxy.reverse.url: {balancer: least-conn, backends: ["http://127.0.0.1:8080/"]}}';
    const { yaml, redirections } = await h2o(`listen: 80\nlisten: 8080\nlisten: {type: unix, port: /run/own}\nhosts:\n  a:\n    paths:\n      ${paths}`, { listen: 80 });
    expect(yaml['hosts']).toEqual({ a: { paths: {
      '/a': { 'proxy.reverse.url': 'http://127.0.0.1:9001/x' }, '/b': { 'proxy.reverse.url': 'http://localhost:3000/' }, '/c': { 'proxy.reverse.url': 'http://[unix:/t/1.sock]/y' },
      '/d': { 'fastcgi.connect': { port: '/t/1.sock', type: 'unix' } }, '/e': { 'fastcgi.connect': '9000' },
      '/f': { 'proxy.reverse.url': [{ url: 'http://127.0.0.1:9001/' }, 'http://[::1]:1/'] }, '/g': { 'proxy.reverse.url': { balancer: 'least-conn', backends: ['http://127.0.0.1:9001/'] } },
    } } });
    expect(redirections.filter((line) => line.includes('loaded too'))).toEqual(
      ['proxy.reverse.url http://localhost:3000/', 'fastcgi.connect 9000', 'proxy.reverse.url http://[::1]:1/'].map((words) => `${words}: what runs there is loaded too`),
    );
  });

  it.each([
    ['proxy.reverse.url: http://10.0.0.1/', 'proxy.reverse.url http://10.0.0.1/'],
    ['proxy.reverse.url: {backends: [{url: "http://10.0.0.1/"}]}', 'proxy.reverse.url http://10.0.0.1/'], ['fastcgi.connect: {host: php, port: 9000}', 'fastcgi.connect php'],
    ['file.custom-handler: {extension: .php, fastcgi.connect: {host: php, port: 9000}}', 'fastcgi.connect php'],
  ])('refuses to pass on elsewhere: %s', async (handler, words) => {
    expect(await refusal(h2oKind, `listen: 80\nhosts:\n  a:\n    paths:\n      /: {${handler}}`)).toBe(
      `own.conf:5: ${words} leaves this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config`,
    );
  });

  it('has what it spawns run as the user that it would have been', async () => {
    const spawned = async (text: string): Promise<unknown> => (await h2o(`listen: 80\nhosts: {}\nfile.custom-handler: {extension: .php, fastcgi.spawn: ${text}}\nuser: www-data`)).yaml['file.custom-handler'];
    expect(await spawned('php-cgi')).toEqual({ extension: '.php', 'fastcgi.spawn': { command: 'php-cgi', user: 'www-data' } });
    expect(await spawned('{command: php-cgi, user: me}')).toEqual({ extension: '.php', 'fastcgi.spawn': { command: 'php-cgi', user: 'me' } });
  });

  it('knows of each line where it comes from, over what is included', async () => {
    const { text, folder } = await h2o('listen: 80\n\nhosts:\n  a: !file a.yaml\n', {}, { 'a.yaml': '# about\npaths:\n  /:\n    file.dir: /srv\n' });
    const origin = (words: string): string | undefined => originOfLine(text, text.split('\n').findIndex((line) => line.includes(words)) + 1);
    expect(origin('file.dir: ')).toBe(`${folder}/a.yaml:4`);
    expect(origin('  a:')).toBe(`${folder}/own.conf:4`);
  });
});

describe('nghttpd', () => {
  const nghttpd = (text: string, others?: Record<string, string>): Promise<Adopted> => adopt(nghttpdKind, text, {}, others);

  it('has its flags, with paths from the folder of the file', async () => {
    const { args, redirections, workers, tls, protocol } = await nghttpd('-m 10\n-d www\n--mime-types-file=/etc/mime.types\n-n 3\n-D\n-a ::\n8443 k c\n', { k: '', c: '' });
    expect(args('')).toEqual(['--max-concurrent-streams=10', '--htdocs=~/www', '--mime-types-file=/etc/mime.types', '--workers=3', '--address=127.0.0.1', '9000', '~/k', '~/c']);
    expect(redirections).toEqual(['port :::8443 → 127.0.0.1:9000', '--daemon: left out, so that its end is seen']);
    expect({ workers, tls, protocol }).toEqual({ workers: 3, tls: true, protocol: 'h2' });
  });

  it("has this machine's certificate where it names none, and none without TLS", async () => {
    const tls = await nghttpd('-d /srv\n8443');
    expect(tls.args('').slice(-3)).toEqual(['9000', '/machine.pem', '/machine.pem']);
    expect(tls.redirections).toEqual(['port 8443 → 127.0.0.1:9000', 'key and certificate (none there) → those of this machine']);
    const plain = await nghttpd('--no-tls');
    expect(plain.args('')).toEqual(['--no-tls', '--htdocs=~', '--address=127.0.0.1', '9000']);
    expect(plain.redirections).toEqual(['port (none there) → 127.0.0.1:9000', 'htdocs (where it is started) → ~']);
    expect(plain.protocol).toBe('h2c');
  });

  it('says which certificate is missing', async () => {
    expect(await refusal(nghttpdKind, '-d /srv\n8443 key.pem cert.pem')).toMatch(/^own\.conf:2: the key or certificate \/\S+\/key\.pem is not there, or closed to this user$/);
  });
});
