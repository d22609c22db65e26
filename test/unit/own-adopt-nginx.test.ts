// What of a person's own nginx config is redirected, and that the rest is as it was.
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { nginxKind } from '../../lib/servers/nginx.ts';
import { originOfLine } from '../../lib/servers/own/files.ts';
import { isLoopback } from '../../lib/servers/ports.ts';
import type { AdoptPlace } from '../../lib/servers/server.ts';
import { adopt, refusal, type Adopted } from '../fixtures/adopted.ts';

describe('nginx', () => {
  const nginx = (
    text: string,
    place?: Partial<AdoptPlace>,
    others?: Record<string, string>,
  ): Promise<Adopted> => adopt(nginxKind, text, place, others);
  const builtIns = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path`,
  );

  it('gets what it leaves to the build, and keeps everything else', async () => {
    const { lines, redirections, tls, protocol, workers, args } = await nginx(
      "events { worker_connections 9; }\nhttp { log_format x '$uri' # one\n ' {;}';\n server { listen 80; return 200 \"a;\\\"b\"; } }",
    );
    expect(lines).toEqual([
      'daemon off;',
      'error_log stderr;',
      'pid "/t/pid";',
      'lock_file "/t/lock_file";',
      'events {',
      'worker_connections 9;',
      '}',
      'http {',
      ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path "/t/${name}";`,
      ),
      'access_log "/t/access-1.log" combined;',
      "log_format x '$uri' ' {;}';",
      'server {',
      'listen 127.0.0.1:9000;',
      'return 200 "a;\\"b";',
      '}',
      '}',
    ]);
    expect(redirections).toEqual([
      'listen 80 → 127.0.0.1:9000',
      `what it leaves to nginx's build → a temporary file each: error_log, pid, lock_file, ${builtIns.join(', ')}, access_log`,
    ]);
    expect({ tls, protocol, workers }).toEqual({ tls: false, protocol: 'http/1.1', workers: 1 });
    expect(args('/run/nginx.conf')).toEqual(['-e', 'stderr', '-c', '/run/nginx.conf']);
  });

  /** Lines and redirections that there are beside those of `http { server { listen 80; } }`. */
  async function beside(
    main: string,
    server = '',
    place?: Partial<AdoptPlace>,
  ): Promise<{ lines: string[]; said: string[] }> {
    const plain = await nginx('http { server { listen 80; } }', place);
    const changed = await nginx(`${main}\nhttp { server { listen 80; ${server} } }`, place, {
      'x.js': '',
    });
    return {
      lines: changed.lines.filter((line) => !plain.lines.includes(line)),
      said: changed.redirections.filter(
        (line) => !plain.redirections.includes(line) && !line.startsWith('what it leaves'),
      ),
    };
  }

  it.each([
    ['daemon on;', [], ['daemon on → off, so that its end is seen']],
    ['daemon off;', [], []],
    ['pid /run/nginx.pid;', [], ['pid /run/nginx.pid → a temporary file']],
    ['lock_file l;', [], ['lock_file l → a temporary file']],
    [
      'worker_processes auto;',
      ['worker_processes 2;'],
      ['worker_processes auto → 2, the number of server cores'],
    ],
    ['worker_processes 7;', ['worker_processes 7;'], []],
    ['worker_priority 5;', ['worker_priority 5;'], []],
    [
      'worker_priority -5;',
      [],
      ['worker_priority -5: left out, since it takes root, and its workers run without'],
    ],
    [
      'worker_cpu_affinity auto 01;',
      [],
      ["worker_cpu_affinity auto 01: left out, the workers run on the server's cores"],
    ],
    [
      'error_log logs/e.log warn;',
      ['error_log stderr warn;'],
      ['error_log logs/e.log → error.log of this run'],
    ],
    [
      'error_log syslog:server=10.0.0.1 info;',
      ['error_log stderr info;'],
      ['error_log syslog:server=10.0.0.1 → error.log of this run'],
    ],
    ['error_log /dev/null;', ['error_log /dev/null;'], []],
    ['user nobody;', [], []],
    ['user root;', [], ['user root → nobody, since no server needs to be root here']],
    ['"user" 0;', [], ['user 0 → nobody, since no server needs to be root here']],
    ['user nosuchuser;', [], ['user nosuchuser → nobody, since nosuchuser is not there']],
    [
      'user nobody nosuchgroup;',
      [],
      ['user nobody nosuchgroup → nobody, since the group nosuchgroup is not there'],
    ],
    ['user nobody root;', [], ['user nobody root → nobody, since nobody is not in the group root']],
    ['user sync;', [], ['user sync → nobody, since sync is none that web servers run as']],
    [
      'load_module modules/x.so;',
      ['load_module modules/x.so;'],
      [
        'load_module: runs as it is, the files that it writes and the addresses that it calls are not redirected',
      ],
    ],
    [
      'stream { server { listen 53 udp; proxy_pass 10.0.0.1:53; } }',
      [],
      ['stream { } at ~/own.conf:1: left out, only HTTP is compared'],
    ],
    [
      'mail { server { listen 25; } }',
      [],
      ['mail { } at ~/own.conf:1: left out, only HTTP is compared'],
    ],
    [
      'rtmp { server { listen 1935; application live { push rtmp://10.0.0.1/live; } } }',
      [],
      ['rtmp { } at ~/own.conf:1: left out, only HTTP is compared'],
    ],
    [
      'google_perftools_profiles /var/log/p;',
      [],
      ['google_perftools_profiles /var/log/p: left out'],
    ],
  ])('has %j with what is said', async (main, lines, said) => {
    expect(await beside(main)).toEqual({ lines, said });
  });

  it.each([
    [
      'user root;',
      [],
      ['user root → whoever starts bakeoff, since it takes root to become another one'],
    ],
    [
      'worker_rlimit_nofile 90000;',
      ['worker_rlimit_nofile 5000;'],
      ['worker_rlimit_nofile 90000 → 5000, the hard limit here'],
    ],
    ['worker_rlimit_nofile 4000;', ['worker_rlimit_nofile 4000;'], []],
  ])('that root does not start has %j with what is said', async (main, lines, said) => {
    expect(await beside(main, '', { user: undefined })).toEqual({ lines, said });
  });

  it.each(
    [
      ['access_log off;', ['access_log off;'], []],
      [
        'access_log /var/log/a.log main buffer=4k flush=1s;',
        [
          'access_log "/t/access-2.log" combined;',
          'access_log "/t/access-1.log" main buffer=4k flush=1s;',
        ],
        ['access_log /var/log/a.log → a temporary file'],
      ],
      [
        'access_log syslog:server=10.0.0.1 main;',
        ['access_log "/t/access-2.log" combined;', 'access_log "/t/access-1.log" main;'],
        ['access_log syslog:server=10.0.0.1 → a temporary file'],
      ],
      [
        'proxy_temp_path /var/tmp/p 1 2;',
        ['proxy_temp_path "/t/proxy_temp_path-1" 1 2;'],
        ['proxy_temp_path /var/tmp/p → a temporary file'],
      ],
      [
        'ssl_certificate a.pem; ssl_certificate_key "ssl/a.key"; ssl_dhparam /etc/dh; ssl_certificate data:$x; ssl_certificate $y;',
        [
          'ssl_certificate "~/a.pem";',
          'ssl_certificate_key "~/ssl/a.key";',
          'ssl_dhparam /etc/dh;',
          'ssl_certificate data:$x;',
          'ssl_certificate $y;',
        ],
        [],
      ],
      [
        'location / { auth_basic_user_file htpasswd; root html; proxy_ssl_trusted_certificate sub/ca; }',
        [
          'location / {',
          'auth_basic_user_file "~/htpasswd";',
          'root html;',
          'proxy_ssl_trusted_certificate "~/sub/ca";',
        ],
        ["relative paths begin at /usr/local/nginx, this nginx's own prefix"],
      ],
      [
        'ssl_ocsp leaf;',
        ['ssl_ocsp off;'],
        ['ssl_ocsp leaf → off, since it would ask another machine'],
      ],
      [
        'ssl_stapling on;',
        ['ssl_stapling off;'],
        ['ssl_stapling on → off, since it would ask another machine'],
      ],
      [
        'ssl_stapling on; ssl_stapling_file s;',
        ['ssl_stapling on;', 'ssl_stapling_file "~/s";'],
        [],
      ],
      [
        'proxy_store on; proxy_store_access user:rw;',
        ['proxy_store off;', 'proxy_store_access user:rw;'],
        ['proxy_store on → off, since it would write among the files that are served'],
      ],
      [
        'fastcgi_store /data$uri; scgi_store off;',
        ['fastcgi_store off;', 'scgi_store off;'],
        ['fastcgi_store /data$uri → off, since it would write among the files that are served'],
      ],
      [
        'js_path "sub"; js_import x.js; js_import y from /abs/y.js; js_import z from z.js;',
        [
          'js_path "~/sub";',
          'js_import "~/x.js";',
          'js_import y from /abs/y.js;',
          'js_import z from z.js;',
        ],
        [
          'js_import: runs as it is, the files that it writes and the addresses that it calls are not redirected',
        ],
      ],
      [
        "set_by_lua_block $a { -- }\n return \"}\" .. [[}]] .. '\\'}' } add_header X a}b;",
        ['set_by_lua_block $a { -- }', "return \"}\" .. [[}]] .. '\\'}' }", 'add_header X a}b;'],
        [
          'set_by_lua_block: runs as it is, the files that it writes and the addresses that it calls are not redirected',
        ],
      ],
      ['add_header X a\u00a0b;', ['add_header X a\u00a0b;'], []],
    ].map(([server, lines, said]) => [server, lines, said] as [string, string[], string[]]),
  )('has in its server %j with what is said', async (server, lines, said) => {
    expect(await beside('', server)).toEqual({ lines, said });
  });

  describe('addresses', () => {
    const listens = async (
      http: string,
      place?: Partial<AdoptPlace>,
    ): Promise<{ lines: string[]; said: string[] }> => {
      const { lines, redirections } = await nginx(`http { ${http} }`, place);
      return {
        lines: lines.filter((line) => line.startsWith('listen') || line.startsWith('server_name')),
        said: redirections.filter((line) => !line.startsWith('what it leaves')),
      };
    };

    it('of the same port become one, and say once what may be said once', async () => {
      expect(
        await listens(
          'server { listen 80 default_server backlog=511 reuseport; listen [::]:80 default_server ipv6only=on backlog=511; server_name a; } server { listen *:80; server_name b; }',
        ),
      ).toEqual({
        lines: [
          'listen 127.0.0.1:9000 default_server backlog=511 reuseport;',
          'server_name a;',
          'listen 127.0.0.1:9000;',
          'server_name b;',
        ],
        said: ['listen 80, [::]:80, *:80 → 127.0.0.1:9000'],
      });
    });

    it('that were two keep the first default server and the first options of the socket', async () => {
      const { lines, said } = await listens(
        'server { listen 10.0.0.1:80 default_server fastopen=5; }\nserver { listen 10.0.0.2:80 default_server fastopen=6; }',
      );
      expect(lines).toEqual([
        'listen 127.0.0.1:9000 default_server fastopen=5;',
        'listen 127.0.0.1:9000;',
      ]);
      expect(said).toEqual([
        'listen 10.0.0.1:80, 10.0.0.2:80 → 127.0.0.1:9000',
        'listen 10.0.0.2:80 at ~/own.conf:2: one with listen 10.0.0.1:80 at ~/own.conf:1, whose server answers what no server_name is for',
        'fastopen=6 at ~/own.conf:2: left out, 127.0.0.1:9000 has fastopen=5',
      ]);
    });

    it('that were several are as the one that clients elsewhere come to: every address, then the network, then loopback', async () => {
      const [status, site] = [
        'server { listen 127.0.0.1:80; server_name status; }',
        'server { listen 80; server_name site; }',
      ];
      const said = (was: string, line: number, main: string, mainLine: number): string =>
        `listen ${was} at ~/own.conf:${line}: one with listen ${main} at ~/own.conf:${mainLine}, whose server answers what no server_name is for`;
      expect(await listens(`${status}\n${site}`)).toEqual({
        lines: [
          'listen 127.0.0.1:9000;',
          'server_name status;',
          'listen 127.0.0.1:9000 default_server;',
          'server_name site;',
        ],
        said: ['listen 127.0.0.1:80, 80 → 127.0.0.1:9000', said('127.0.0.1:80', 1, '80', 2)],
      });
      expect(await listens(`${site}\n${status.replace(';', ' default_server;')}`)).toEqual({
        lines: [
          'listen 127.0.0.1:9000;',
          'server_name site;',
          'listen 127.0.0.1:9000;',
          'server_name status;',
        ],
        said: ['listen 80, 127.0.0.1:80 → 127.0.0.1:9000', said('127.0.0.1:80', 2, '80', 1)],
      });
      expect((await listens(`${status}\n${site.replace('80', '10.0.0.1:80')}`)).said).toContain(
        said('127.0.0.1:80', 1, '10.0.0.1:80', 2),
      );
      expect(
        (
          await listens(
            `server { listen [::]:80; }\nserver { listen 0.0.0.0:80; }\nserver { listen *:80 default_server; }`,
          )
        ).said,
      ).toContain(said('[::]:80', 1, '*:80', 3));
    });

    it('that were several speak what the one that clients elsewhere come to speaks', async () => {
      const text =
        'http { server { listen 10.0.0.1:80 http2; server_name a; }\nserver { listen 80; server_name b; } }';
      const { lines, redirections, protocol } = await nginx(text);
      expect({ protocol, listens: lines.filter((line) => line.startsWith('listen')) }).toEqual({
        protocol: 'http/1.1',
        listens: ['listen 127.0.0.1:9000;', 'listen 127.0.0.1:9000 default_server;'],
      });
      expect(redirections).toContain('http2 at ~/own.conf:1: left out, listen 80 is without');
      expect((await nginx(text.replace('10.0.0.1:80', '*:80'))).protocol).toBe('h2c');
    });

    it('are the same with their words in quotes', async () => {
      const { lines, tls, protocol } = await nginx(
        'http { server { listen "80" "ssl" \'http2\' "ipv6only=off" "proxy_protocol" "backlog=9"; } server { listen 80 ssl backlog=9; } }',
      );
      expect({ tls, protocol, listens: lines.filter((line) => line.startsWith('listen')) }).toEqual(
        {
          tls: true,
          protocol: 'h2',
          listens: ['listen 127.0.0.1:9000 ssl http2 backlog=9;', 'listen 127.0.0.1:9000 ssl;'],
        },
      );
    });

    it('of several ports, ranges and sockets are all moved; the one that is loaded gets the port', async () => {
      expect(
        await listens(
          'server { listen 80; listen unix:/run/a.sock; } server { listen 443 ssl http2; listen 8000-8001; }',
          { listen: 443 },
        ),
      ).toEqual({
        lines: [
          'listen 127.0.0.1:9001;',
          'listen unix:/t/1.sock;',
          'listen 127.0.0.1:9000 ssl http2;',
          'listen 127.0.0.1:9002;',
          'listen 127.0.0.1:9003;',
        ],
        said: [
          'listen 80 → 127.0.0.1:9001',
          'listen unix:/run/a.sock → a temporary socket',
          'listen 443 → 127.0.0.1:9000',
          'listen 8000 → 127.0.0.1:9002',
          'listen 8001 → 127.0.0.1:9003',
        ],
      });
    });

    it('do not expect the PROXY protocol, which load generators do not speak', async () => {
      expect(
        await listens(
          'server { listen 80 proxy_protocol; listen 443 ssl proxy_protocol backlog=9; }',
          { listen: 443 },
        ),
      ).toEqual({
        lines: ['listen 127.0.0.1:9001;', 'listen 127.0.0.1:9000 ssl backlog=9;'],
        said: [
          'listen 80 → 127.0.0.1:9001',
          'listen 443 → 127.0.0.1:9000',
          'proxy_protocol at ~/own.conf:1: left out, load generators do not speak it',
        ],
      });
    });

    it("of a server without a listen line are nginx's own", async () => {
      const port = process.getuid?.() === 0 ? 80 : 8000;
      expect(await listens('server { server_name a; }')).toEqual({
        lines: ['listen 127.0.0.1:9000;', 'server_name a;'],
        said: [`listen ${port} (nginx's own, no listen line at ~/own.conf:1) → 127.0.0.1:9000`],
      });
    });

    it('of HTTP/3 are left out, with the server that has no others', async () => {
      expect(
        await listens(
          'server { listen 443 quic reuseport; listen 443 ssl; server_name a; }\nserver { listen 444 quic; server_name b; }',
        ),
      ).toEqual({
        lines: ['listen 127.0.0.1:9000 ssl;', 'server_name a;'],
        said: [
          'listen 443 → 127.0.0.1:9000',
          'listen 443 quic reuseport: left out, HTTP/3 is not compared',
          'listen 444 quic: left out, HTTP/3 is not compared',
          'server { } at ~/own.conf:2: left out, it listens to HTTP/3 only',
        ],
      });
    });

    it('have to be chosen among where there are several', async () => {
      const text = 'http { server { listen 80; listen 81; } }';
      expect(await refusal(nginxKind, text)).toBe(
        'own.conf listens on the ports 80, 81: say which one is to be loaded',
      );
      expect(await refusal(nginxKind, text, { listen: 82 })).toBe(
        'own.conf does not listen on port 82; it does on 80, 81',
      );
      expect(await refusal(nginxKind, 'http { server { listen unix:/x; } }')).toBe(
        'own.conf listens on no TCP port',
      );
    });
  });

  describe('upstreams', () => {
    it('of others are told by their addresses, the config itself and what is down aside', async () => {
      const { upstreams } = await nginx(
        `http { upstream app { server 127.0.0.1:3000 weight=2; server localhost:8080; server unix:///run/app; server 10.0.0.1 down; }
        server { listen 80; listen 8080; location /a { proxy_pass http://app/x; } location /c { fastcgi_pass unix:/run/php.sock; } location /s { proxy_pass http://unix:/run/s:/z; }
          location /e { grpc_pass [::1]:50051; } location /g { proxy_pass http://127.0.0.1; } location /h { proxy_pass https://localhost/; } location /i { uwsgi_pass localhost:9; } } }`,
        { listen: 80 },
      );
      expect(upstreams).toEqual([
        { port: 3000 },
        { socket: '/run/app' },
        { socket: '/run/php.sock' },
        { socket: '/run/s' },
        { port: 50_051 },
        { port: 443 },
        { port: 9 },
      ]);
    });

    const passes = async (http: string): Promise<string[]> =>
      (
        await nginx(
          `http { server { listen 80; } server { listen unix:/run/own; listen 8080; } ${http} }`,
          { listen: 80 },
        )
      ).lines.filter((line) => /^(server |\w+_pass )/.test(line) && !line.endsWith('{'));

    it('of this machine stay as they are, and follow what has moved', async () => {
      expect(
        await passes(`upstream app { server 127.0.0.1:3000 weight=2; server localhost:8080; server unix:/run/app; server 10.0.0.1 down; }
        server { listen 80; location /a { proxy_pass http://app/x; } location /b { proxy_pass "http://127.0.0.1:8080/y?$args"; } location /c { fastcgi_pass unix:/run/php.sock; }
          location /d { proxy_pass http://unix:/run/own:/z; } location /e { grpc_pass [::1]:50051; } location /f { proxy_pass http://app$request_uri; } location /g { proxy_pass http://127.0.0.1; } }`),
      ).toEqual([
        'server 127.0.0.1:3000 weight=2;',
        'server "127.0.0.1:9001";',
        'server unix:/run/app;',
        'server 10.0.0.1 down;',
        'proxy_pass http://app/x;',
        'proxy_pass "http://127.0.0.1:9001/y?$args";',
        'fastcgi_pass unix:/run/php.sock;',
        'proxy_pass "http://unix:/t/1.sock:/z";',
        'grpc_pass [::1]:50051;',
        'proxy_pass http://app$request_uri;',
        'proxy_pass "http://127.0.0.1:9000";',
      ]);
    });

    it('have names in any case, and sockets in all their notations', async () => {
      expect(
        await passes(`upstream App { server unix:///run/app.sock; } upstream own { server unix:///run/own; }
        server { listen 80; location / { proxy_pass http://aPP; } location /a { uwsgi_pass unix:///run/u.sock; } location /b { proxy_pass http://127.0.0.1\${request_uri}; } }`),
      ).toEqual([
        'server unix:///run/app.sock;',
        'server "unix:/t/1.sock";',
        'proxy_pass http://aPP;',
        'uwsgi_pass unix:///run/u.sock;',
        'proxy_pass "http://127.0.0.1:9000${request_uri}";',
      ]);
    });

    it("are somebody else's at a port of 127.0.0.1 that the config has at another address only, and loaded too", async () => {
      const { lines, redirections } = await nginx(
        'http { server { listen 10.0.0.1:80; location / { proxy_pass http://127.0.0.1; } location /a { proxy_pass http://localhost:3000; } location /b { proxy_pass http://localhost:3000; } } }',
      );
      expect(lines.filter((line) => line.startsWith('proxy_pass'))).toEqual([
        'proxy_pass http://127.0.0.1;',
        'proxy_pass http://localhost:3000;',
        'proxy_pass http://localhost:3000;',
      ]);
      expect(redirections.filter((line) => line.startsWith('proxy_pass'))).toEqual([
        'proxy_pass http://127.0.0.1: what runs there is loaded too',
        'proxy_pass http://localhost:3000: what runs there is loaded too',
      ]);
    });

    it.each([
      ['upstream app { server 10.0.0.5:80; }', 'server 10.0.0.5:80'],
      ['otel_exporter { endpoint otel:4317; }', 'endpoint otel:4317'],
      ['acme_issuer a { uri https://acme.example/; }', 'acme_issuer'],
      [
        'server { location / { proxy_pass https://example.org/; } }',
        'proxy_pass https://example.org/',
      ],
      ['server { location / { if ($x) { fastcgi_pass php:9000; } } }', 'fastcgi_pass php:9000'],
      [
        'server { location / { grpc_pass grpc://[2001:db8::1]:1; } }',
        'grpc_pass grpc://[2001:db8::1]:1',
      ],
      [
        'server { location / { proxy_pass http://127.0.0.1.example.org; } }',
        'proxy_pass http://127.0.0.1.example.org',
      ],
      [
        'server { location / { proxy_pass http://127.0.0.1@example.org; } }',
        'proxy_pass http://127.0.0.1@example.org',
      ],
    ])('elsewhere are refused: %s', async (http, words) => {
      expect(await refusal(nginxKind, `http {\n server { listen 80; }\n ${http} }`)).toBe(
        `own.conf:3: ${words} may leave this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config`,
      );
    });

    it.each([
      'http://$host',
      'http://127.0.0.1$args',
      'http://app$suffix',
      '$scheme://127.0.0.1',
      'http://127.0.0.1:$port',
    ])('that a variable names are refused: %s', async (target) => {
      expect(
        await refusal(
          nginxKind,
          `http { upstream app { server 127.0.0.1:1; } server { listen 80; location / { proxy_pass ${target}; } } }`,
        ),
      ).toBe(
        `own.conf:1: proxy_pass ${target} may leave this machine, a variable says to where: name an address of 127.0.0.1`,
      );
    });

    it.each([
      'proxy_pass http://127.0.0.1$is_args.evil.example/',
      'proxy_pass http://127.0.0.1$uri',
      'proxy_pass http://127.0.0.1$document_uri',
      'proxy_pass http://127.0.0.1$request_uri_',
      'proxy_pass http://127.0.0.1:80${is_args}$args',
      'proxy_pass $target',
      'fastcgi_pass $target',
      'uwsgi_pass 127.0.0.1:$port',
      'scgi_pass ${host}:1',
      'grpc_pass grpc://$target',
      'memcached_pass $target',
      'tunnel_pass $host',
      'proxy_pass http://127.0.0.1:80@evil.example/',
      'proxy_pass http://user:127.0.0.1@evil.example/',
      'proxy_pass http://127.0.0.1#.evil.example/',
      'proxy_pass http://127.0.0.1\\.evil.example/',
      'proxy_pass "http://127.0.0.1\\t.evil.example/"',
      'proxy_pass http://[::ffff:10.0.0.1]/',
      'proxy_pass http://[::ffff:127.0.0.1]/',
      'proxy_pass http://[::1%eth0]/',
      'proxy_pass http://2130706433/',
      'proxy_pass http://0x7f000001/',
      'proxy_pass http://0177.0.0.1/',
      'proxy_pass http://127.1/',
      'proxy_pass http://127.0.0.01/',
      'proxy_pass http://127.0.0.256/',
      'proxy_pass http://127.0.0.1./',
      'proxy_pass http://localhost./',
      'proxy_pass http://localhost.example/',
      'proxy_pass http://localhost/$arg_x',
      'proxy_pass http://app:81',
      'proxy_pass http://app:81$request_uri',
      'proxy_pass http://app.',
      'memcached_pass cache:11211',
      'tunnel_pass',
      '"proxy_pass" http://evil.example/',
      "'fastcgi_pass' evil.example:9000",
    ])('that may be elsewhere are refused, however they are written: %s', async (line) => {
      expect(
        await refusal(
          nginxKind,
          `http { upstream app { server 127.0.0.1:1; } server { listen 80; resolver 127.0.0.1; location / { ${line}; } } }`,
        ),
      ).toMatch(/^own\.conf:1: \w+_pass .*may leave this machine/);
    });

    it.each([
      'server app.example',
      'server localhost resolve',
      'server localhost service=http resolve',
      'server $x',
      '"server" 10.0.0.1',
      'state /var/lib/servers',
    ])('of a block that may be elsewhere are refused: %s', async (line) => {
      expect(
        await refusal(
          nginxKind,
          `http { upstream app { server 127.0.0.1:1; ${line}; } server { listen 80; } }`,
        ),
      ).toMatch(/^own\.conf:1: (?:server|state) .*may leave this machine/);
    });

    it.each([
      'proxy_pass http://127.0.0.1$request_uri',
      'proxy_pass http://127.0.0.1:81${request_uri}',
      'proxy_pass https://127.0.0.1/$host',
      'proxy_pass http://127.0.0.1?$args',
      'proxy_pass http://APP/x',
      'proxy_pass http://app$request_uri',
      'proxy_pass http://localhost/',
      'fastcgi_pass [::1]:9000',
      'scgi_pass unix:/run/$host',
      'auth_request /auth',
      'mirror /mirror',
    ])('of this machine are taken: %s', async (line) => {
      const { lines } = await nginx(
        `http { upstream app { server 127.0.0.1:1; server localhost:2; server 10.0.0.1 down; server 10.0.0.2 "down"; } server { listen 8000; location / { ${line}; } } }`,
      );
      expect(lines).toContain(`${line};`);
    });

    it('know what loopback is', () => {
      expect(
        [
          '127.0.0.1',
          '127.1.2.3',
          '127.255.255.255',
          'localhost',
          'LocalHost',
          '[::1]',
          '::1',
          '[0:0:0:0:0:0:0:1]',
          '[0000:0000:0000:0000:0000:0000:0000:0001]',
        ].filter((host) => !isLoopback(host)),
      ).toEqual([]);
      expect(
        [
          '128.0.0.1',
          '127.0.0.1.org',
          '0.0.0.0',
          '[::]',
          '[::11]',
          'localhost.org',
          '',
          '127.0.0.256',
          '127.0.0.1.',
          '127.1',
          '127.0.0.01',
          '::',
          '::1]',
          'a.localhost',
          'localhost.',
          '[::ffff:127.0.0.1]',
          '2130706433',
        ].filter(isLoopback),
      ).toEqual([]);
    });
  });

  it.each([
    'load_module modules/x.so;',
    '"load_module" modules/x.so;',
    'perl_modules p;',
    'ssl_engine pkcs11;',
    ...[
      'init_by_lua_block { x }',
      'init_by_lua x;',
      'lua_package_path "/x/?.lua;;";',
      'js_import x.js;',
      'js_include x.js;',
      'perl_require x.pm;',
      'perl_set $x y;',
      'modsecurity_rules_file x;',
    ].map((line) => `http { ${line} server { listen 80; } }`),
    ...[
      'content_by_lua_file x;',
      'set_by_lua $x y;',
      'perl x;',
      'ssl_certificate_key engine:x:y;',
      'ssl_certificate_key "store:pkcs11:x";',
    ].map((line) => `http { server { listen 80; location / { ${line} } } }`),
  ])('does not run as root starts it, unless root trusts it: %s', async (line) => {
    const text = `\n${line}\n${line.startsWith('http') ? '' : 'http { server { listen 80; } }'}`;
    expect(await refusal(nginxKind, text, { trustConfig: false })).toMatch(
      /^own\.conf:2: \w+ runs code of the config's own, and bakeoff was started by root: see what the code does and give --trust-config, or start bakeoff as another user$/,
    );
    for (const place of [{ trustConfig: true }, { trustConfig: false, user: undefined }]) {
      expect((await nginx(text, place)).redirections).toContainEqual(
        expect.stringMatching(/^\w+: runs as it is, the files that it writes /),
      );
    }
  });

  it('hands over what it reads at its start and is closed to its user, and nothing that its workers read', async () => {
    const asked: string[] = [];
    const handOver = (file: string): string => {
      asked.push(path.basename(file));
      return file.endsWith('.key') ? '/kept/0.key' : file;
    };
    const { lines, redirections } = await nginx(
      'http { server { listen 80; ssl_certificate a.pem; ssl_certificate_key a.key; ssl_certificate_key $x.key; proxy_ssl_certificate_key /b.key; auth_basic_user_file users; root secret; } }',
      { handOver },
    );
    expect(asked).toEqual(['a.pem', 'a.key', 'b.key']);
    expect(lines).toEqual(
      expect.arrayContaining([
        'ssl_certificate "~/a.pem";',
        'ssl_certificate_key "/kept/0.key";',
        'ssl_certificate_key $x.key;',
        'proxy_ssl_certificate_key "/kept/0.key";',
      ]),
    );
    expect(redirections).toContain(
      'ssl_certificate_key a.key → a copy for its start, since it is closed to nobody',
    );
  });

  it('keeps two logs two, and one log one', async () => {
    const { lines } = await nginx(
      'http { access_log /a; server { listen 80; access_log /b; location / { access_log /a; access_log /c.$host; } } }',
    );
    expect(lines.filter((line) => line.startsWith('access_log'))).toEqual(
      ['/t/access-1.log', '/t/access-2.log', '/t/access-1.log', '/t/access-3.log'].map(
        (file) => `access_log "${file}";`,
      ),
    );
  });

  it('knows of each line where it comes from', async () => {
    const { text, folder } = await nginx(
      "http {\n\n include a;\n log_format x 'a\nb';\n server {\n listen 80; } }",
      {},
      { a: '# about\n\ngzip\n on;' },
    );
    const lines = text.split('\n');
    const origin = (words: string): string | undefined =>
      originOfLine(text, lines.findIndex((line) => line.includes(words)) + 1);
    expect(origin('gzip on;')).toBe(`${folder}/a:3`);
    expect(origin("log_format x 'a")).toBe(`${folder}/own.conf:4`);
    expect(origin('listen ')).toBe(`${folder}/own.conf:7`);
  });
});
