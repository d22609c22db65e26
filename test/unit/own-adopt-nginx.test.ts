// The redirected lines in the copy of a user's nginx config.
import path from 'node:path';
import { expect, it } from 'vitest';
import { readOwnConfig } from '../../lib/servers/index.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { nginxKind } from '../../lib/servers/nginx.ts';
import type { AdoptPlace } from '../../lib/servers/server.ts';
import { adopt, refusal, type Adopted } from '../fixtures/adopted.ts';

const nginx = (text: string, place?: Partial<AdoptPlace>) =>
  adopt(nginxKind, text, place, { 'x.js': '', 'www/index.html': '' });

it('sets the paths of the build, and keeps everything else', async () => {
  const { lines, redirections, args, ...config } = await nginx(
    "events { worker_connections 9; }\nhttp { log_format x '$uri' # one\n ' {;}';\n server { listen 80; return 200 \"a;\\\"b\"; } }",
  );
  const all = lines.join(' ');
  expect(all).toMatch(
    /^daemon off; error_log stderr; pid "\/t\/pid"; lock_file "\/t\/lock_file"; events \{ worker_connections 9; \} http \{ client_body_temp_path "\/t\/client_body"; /,
  );
  expect(all).toContain(
    `access_log "/t/access-1.log" combined; log_format x '$uri' ' {;}'; server { listen 127.0.0.1:9000; return 200 "a;\\"b"; } }`,
  );
  expect(redirections).toEqual([
    'listen 80 → 127.0.0.1:9000',
    expect.stringMatching(
      /^paths of nginx's build → a temporary file each: pid, .*, scgi_temp_path, access_log; error_log → error\.log of this run$/,
    ),
  ]);
  expect(config).toMatchObject({ tls: false, protocol: 'http/1.1', workers: 1 });
  expect(args('/run/nginx.conf')).toEqual(['-e', 'stderr', '-c', '/run/nginx.conf']);
});

const saidOf = ({ redirections }: Adopted) =>
  redirections.filter((line) => !line.startsWith("paths of nginx's build"));

it('runs a site in the http block of a main config, in place of its sites', async () => {
  const folder = await ownFiles({
    'nginx.conf':
      'worker_processes 3; events {}\nhttp { include conf.d/*.conf; gzip on; server { listen 81; } }',
    'conf.d/log.conf': 'log_format x x;',
    'conf.d/site.conf': 'upstream app { server 127.0.0.1:7; }\nserver { listen 80; }',
    names: 'server_name a.org;',
  });
  const within = `${folder}/nginx.conf`;
  const text = 'upstream app { server 127.0.0.1:8; }\nserver { listen 8080; include names; }';
  const { lines, redirections, workers } = await nginx(text, { within });
  const all = lines.join(' ');
  expect(all).toContain(
    'log_format x x; gzip on; upstream app { server 127.0.0.1:8; } server { listen 127.0.0.1:9000; server_name a.org; } }',
  );
  expect(all).not.toMatch(/127\.0\.0\.1:7|81/);
  expect(workers).toBe(3);
  expect(redirections).toContain(`runs in http { } of ${within}, in place of the sites there`);
  const config = await readOwnConfig(
    path.join(await ownFiles({ 'a.conf': text }), 'a.conf'),
    within,
  );
  expect(config).toMatchObject({ workers: 3, within, listens: [{ port: 8080, hosts: ['a.org'] }] });
  const whole = await readOwnConfig(within, within);
  expect(whole.within).toBeUndefined();
});

it('names of servers that serve come before those that redirect', async () => {
  const text = `events {}
    http {
      server { listen 8080; server_name old.org; return 301 https://new.org$request_uri; }
      server { listen 8080; server_name older.org; location / { return 302 /new; } }
      server { listen 8080; server_name none.org; return 444; }
      server { listen 127.0.0.1:8080; server_name inner.org; }
      server { listen 8080; server_name new.org; location / { root /srv; } location /old { return 301 /; } }
      server { listen 8080; server_name text.org; return 200 hello; }
      server { listen 8443; server_name old.org; }
    }`;
  const folder = await ownFiles({ 'a.conf': text });
  const { listens } = await readOwnConfig(path.join(folder, 'a.conf'));
  expect(listens.map(({ port, hosts }) => [port, ...hosts])).toEqual([
    [8080, 'new.org', 'text.org', 'old.org', 'older.org', 'none.org'],
    [8443, 'old.org'],
  ]);
});

it.each([
  [
    'upstream app { server app:9000 weight=2; } server { location / { proxy_pass http://app; } }',
    'server "127.0.0.1:7" weight=2; proxy_pass http://app;',
    'server app:9000 at 127.0.0.1:7: what runs there is loaded too (CPU µs/req is without it)',
  ],
  [
    'server { set $up App:9000; location / { fastcgi_pass App:9000; proxy_pass https://db/x; } }',
    'set $up App:9000; fastcgi_pass "127.0.0.1:7"; proxy_pass "https://127.0.0.1:8/x";',
    'fastcgi_pass App:9000 at 127.0.0.1:7: what',
  ],
  [
    'server { listen 8; location / { proxy_pass http://$back:1$request_uri; proxy_pass $back; } }',
    'proxy_pass "http://127.0.0.1:9$request_uri"; proxy_pass "http://127.0.0.1:9";',
    'proxy_pass http://$back:1$request_uri at stub:1ms, which',
  ],
])('replaces backends in %j by stubs', async (http, expected, messages) => {
  const { lines, redirections } = await nginx(`http { ${http} }`, {
    upstreams: [
      { name: 'app:9000', to: '127.0.0.1:7', address: '127.0.0.1:7' },
      { name: 'db', to: '127.0.0.1:8', address: '127.0.0.1:8' },
      { name: '$back', to: 'stub:1ms', address: '127.0.0.1:9' },
    ],
  });
  const kept = lines.filter((line) => /^(?:set|server|\w+_pass) (?!{)/.test(line));
  expect(kept.join(' ')).toBe(expected);
  expect(redirections).toContainEqual(expect.stringContaining(messages));
});

it.each(['fastcgi_pass app:9000', 'proxy_pass https://app:9000'])(
  'refuses a stub for %s',
  async (directives) => {
    const upstreams = [{ name: 'app:9000', to: 'stub:1ms', address: '127.0.0.1:9' }];
    await expect(nginx(`http { server { ${directives}; } }`, { upstreams })).rejects.toThrow(
      `own.conf:1: ${directives}: the stub answers plain HTTP alone, so start a backend`,
    );
  },
);

it('warns about lines that may reject the load', async () => {
  const { redirections, hangsUp } = await nginx(
    'http { limit_conn c 9; limit_req_zone $host zone=z:1m rate=100r/s; server { listen 80; location / { limit_req zone=z; if ($x) { return 444; } } location = /other { limit_req zone=y; } } }',
  );
  expect(redirections.filter((line) => /^limit_|444/.test(line))).toEqual([
    'limit_conn c 9 at ~/own.conf:1: may turn away requests of the load',
    expect.stringMatching(/^limit_req zone=z \(rate=100r\/s\) at /),
    expect.stringMatching(/^return 444 at /),
  ]);
  expect(hangsUp).toContain('return 444');
  expect((await nginx('http { server { listen 80; return 404; } }')).hangsUp).toBeUndefined();
  const delaying =
    'http { server { listen 80; limit_req zone=z burst=9; limit_req zone=y burst=9 nodelay; } }';
  expect((await nginx(delaying)).redirections.slice(-2)).toEqual([
    expect.stringMatching(/: may turn away or delay requests of the load$/),
    expect.stringMatching(/ nodelay at .*: may turn away requests of the load$/),
  ]);
});

it.each([
  ['limit_req zone=b; location / { }', ['b']],
  ['location / { limit_req zone=c; }', ['c']],
  ['location / { } location = /other { limit_req zone=c; }', ['a']],
  ['rewrite ^ /b; location /b { limit_req zone=c; }', ['a', 'c']],
  ['limit_req zone=b; } server { listen 80; server_name x;', ['a', 'b']],
  ['limit_conn b 9;', ['a', 'b']],
])('a block with limits of its own has none of those around it: %s', async (server, zones) => {
  const { redirections } = await nginx(
    `http { limit_req zone=a; server { listen 80; ${server} } }`,
  );
  const told = redirections.flatMap(
    (line) => /^limit_(?:req zone=|conn )(\w)/.exec(line)?.[1] ?? [],
  );
  expect(told).toEqual(zones);
});

/** Compares lines and redirections, except those of `http { server { listen 80; } }`. */
async function expectBeside(
  [main, server]: [main: string, server: string],
  lines: string,
  messages: string[],
  place?: Partial<AdoptPlace>,
) {
  const plain = await nginx('http { server { listen 80; } }', place);
  const changed = await nginx(`${main}\nhttp { server { listen 80; ${server} } }`, place);
  expect(changed.lines.filter((line) => !plain.lines.includes(line)).join(' ')).toBe(lines);
  expect(saidOf(changed).filter((line) => !plain.redirections.includes(line))).toEqual(
    messages.map((message) => expect.stringContaining(message)),
  );
}

it.each([
  ['daemon on;', '', 'daemon on → off, so'],
  ['worker_cpu_affinity auto 01;', '', 'worker_cpu_affinity auto 01: left out'],
  ['worker_processes auto;', 'worker_processes 2;', 'worker_processes auto → 2, the number of'],
  ['worker_rlimit_nofile 90000;', 'worker_rlimit_nofile 5000;', 'rlimit_nofile 90000 → 5000'],
  ['error_log logs/e.log warn;', 'error_log stderr warn;', 'error_log logs/e.log → error.log of'],
  ['error_log /dev/null;', 'error_log /dev/null;'],
  ['"user" www-data adm;', '', 'user www-data adm → an unprivileged user'],
  ['stream { server { proxy_pass 10.0.0.1:53; } }', '', 'stream { } at ~/own.conf:1: left out'],
])('%j at the top', async (main, lines, ...messages) => {
  await expectBeside([main, ''], lines, messages);
});

it('runs as the current user if that is not root', async () => {
  const messages = ['user www-data → the user who starts bakeoff'];
  await expectBeside(['user www-data;', ''], '', messages, { user: undefined });
});

it.each([
  ['access_log off;', 'access_log off;'],
  [
    'access_log /var/log/a.log main buffer=4k;',
    'access_log "/t/access-2.log" combined; access_log "/t/access-1.log" main buffer=4k;',
    'access_log /var/log/a.log → a temporary file',
  ],
  [
    'ssl_certificate a.pem; ssl_certificate_key "ssl/a.key"; ssl_dhparam /etc/dh; ssl_certificate data:$x;',
    'ssl_certificate "~/a.pem"; ssl_certificate_key "~/ssl/a.key"; ssl_dhparam /etc/dh; ssl_certificate data:$x;',
  ],
  [
    'location / { auth_basic_user_file htpasswd; root html; proxy_ssl_trusted_certificate sub/ca; }',
    'location / { auth_basic_user_file "~/htpasswd"; root html; proxy_ssl_trusted_certificate "~/sub/ca";',
    "relative paths begin at /usr/local/nginx, this nginx's own prefix",
  ],
  [
    'root www; location /a { alias "www/"; } location /b { root /www; } location /c { root $x; }',
    'root "~/www"; location /a { alias "~/www/"; location /b { root /www; location /c { root $x;',
    'root www → ~/www, beside the config',
    'alias "www/" → ~/www/, beside the config',
  ],
  ['ssl_stapling on;', 'ssl_stapling off;', 'ssl_stapling on → off, since'],
  [
    'fastcgi_store /data$uri; scgi_store off; proxy_store_access user:rw;',
    'fastcgi_store off; scgi_store off; proxy_store_access user:rw;',
    'fastcgi_store /data$uri → off, since',
  ],
  [
    'js_path "sub"; js_import x.js; js_import y from /abs/y.js; js_import z from z.js;',
    'js_path "~/sub"; js_import "~/x.js"; js_import y from /abs/y.js; js_import z from z.js;',
  ],
  [
    "set_by_lua_block $a { -- }\n return \"}\" .. [[}]] .. '\\'}' } add_header X a}b;",
    "set_by_lua_block $a { -- } return \"}\" .. [[}]] .. '\\'}' } add_header X a}b;",
  ],
])('%j in its server', async (server, lines, ...messages) => {
  await expectBeside(['', server], lines, messages);
});

const port = process.getuid?.() === 0 ? 80 : 8000;
const listensIn = ({ lines }: Adopted) =>
  lines
    .filter((line) => /^(?:listen|server_name)/.test(line))
    .join(' ')
    .replaceAll('127.0.0.1:9000', 'HERE');

it.each([
  [
    'on one port for several addresses: words of the socket are said once',
    'server { listen 80 default_server backlog=511; listen [::]:80 default_server ipv6only=on backlog=511; server_name a; } server { listen *:80; server_name b; }',
    undefined,
    'listen HERE default_server backlog=511; server_name a; listen HERE; server_name b;',
    'listen 80, [::]:80, *:80 → HERE',
  ],
  [
    'as every address, else as one of the network, else as loopback',
    'server { listen 127.0.0.1:80 default_server; server_name status; } server { listen 10.0.0.1:80; listen 10.0.0.1:81; } server { listen 80; server_name site; } server { listen localhost:81; }',
    80,
    'listen 127.0.0.1:9001 default_server; server_name status; listen 127.0.0.1:9002; listen 127.0.0.1:9003; listen HERE; server_name site; listen 127.0.0.1:9004;',
    'listen 80 → HERE',
  ],
  [
    'on several ports and sockets: all are moved, and the loaded one gets the port',
    'server { listen 80; listen unix:/run/a.sock; } server { listen 443 ssl http2; listen 8000; }',
    443,
    'listen 127.0.0.1:9001; listen unix:/t/2.sock; listen HERE ssl http2; listen 127.0.0.1:9002;',
    'listen unix:/run/a.sock → a temporary socket',
    'listen 8000 → 127.0.0.1:9002',
  ],
  [
    "on nginx's own port without a listen line",
    'server { server_name a; }',
    undefined,
    'listen HERE; server_name a;',
    `listen ${port} (nginx's own, no listen line at ~/own.conf:1) → HERE`,
  ],
  [
    'without HTTP/3, and without a server that has nothing else',
    'server { listen 443 quic reuseport; listen 443 ssl; server_name a; }\nserver { listen 444 quic; server_name b; }',
    undefined,
    'listen HERE ssl; server_name a;',
    'listen 443 quic: left out, HTTP/3 is not loaded',
    'server { } at ~/own.conf:2: left out, it listens to HTTP/3 only',
  ],
])('listens %s', async (_, http, listen, lines, ...messages) => {
  const config = await nginx(`http { ${http} }`, { listen });
  expect(listensIn(config)).toBe(lines);
  const printed = saidOf(config).join('\n').replaceAll('127.0.0.1:9000', 'HERE');
  for (const message of messages) expect(printed).toContain(message);
});

it('for HTTP/3 too if the load uses it, on the loaded port only', async () => {
  const config = await nginx(
    `quic_bpf on; http { quic_host_key k;
    server { listen 443 quic reuseport default_server; listen [::]:443 quic reuseport; listen 443 ssl reuseport; }
    server { listen 443 ssl; listen 443 quic; }
    server { listen 443 quic; }
    server { listen 8443 quic; } }`,
    { http3: true },
  );
  expect(listensIn(config)).toBe(
    'listen HERE ssl reuseport; listen HERE quic reuseport default_server; listen HERE ssl; listen HERE quic; listen HERE quic;',
  );
  expect(config.lines).toEqual(expect.arrayContaining(['quic_bpf off;', 'quic_host_key "~/k";']));
  expect(saidOf(config).slice(0, 2)).toEqual([
    'listen 443, 443 quic, [::]:443 quic → 127.0.0.1:9000',
    'listen 8443 quic: left out, another port is not loaded',
  ]);
});

it.each([
  ['worker_processes auto;', '', 1],
  ['worker_processes 2;', 'reuseport', 0],
  ['', '', 0],
])(
  'listens for HTTP/3 with a note on workers that share a port: %s %s',
  async (main, word, lines) => {
    const text = `${main} http { server { listen 443 ssl; listen 443 quic ${word}; } }`;
    const messages = saidOf(await nginx(text, { http3: true }));
    expect(messages.filter((line) => line.includes('quic at ~/own.conf:1 without'))).toHaveLength(
      lines,
    );
  },
);

it('with the protocols of the most public address', async () => {
  const text = 'http { server { listen 10.0.0.1:80 http2; }\nserver { listen 80; } }';
  const config = await nginx(text);
  expect(config.protocol).toBe('http/1.1');
  expect(listensIn(config)).toBe('listen 127.0.0.1:9001 http2; listen HERE;');
  expect((await nginx(text.replace('10.0.0.1:80', '*:80'))).protocol).toBe('h2c');
});

it('with quoted arguments', async () => {
  const config = await nginx(
    'http { server { listen "80" "ssl" \'http2\' "ipv6only=off" "proxy_protocol" "backlog=9"; } server { listen 80 ssl; } }',
  );
  expect(config.protocol).toBe('h2');
  expect(listensIn(config)).toBe('listen HERE ssl http2 backlog=9; listen HERE ssl;');
  expect(saidOf(config).join()).toContain('proxy_protocol at ~/own.conf:1: left out');
});

it('on a port that the user must choose if there are several', async () => {
  const text = 'http { server { listen 80; listen 81; } }';
  expect(await refusal(nginxKind, text)).toMatch(/^own\.conf listens on the ports 80, 81: say/);
  expect(await refusal(nginxKind, text, { listen: 82 })).toMatch(
    /not .* port 82; it does on 80, 81$/,
  );
  const socket = 'http { server { listen unix:/x; } }';
  expect(await refusal(nginxKind, socket)).toBe('own.conf listens on no TCP port');
});

it("on this machine stay; the config's own addresses are redirected", async () => {
  const { lines, upstreams, redirections } = await nginx(
    `http { upstream App { server 127.0.0.1:3000 weight=2; server localhost:8080; server unix:///run/app; server unix:///run/own; server 10.0.0.1 down; }
      server { listen unix:/run/own; listen 8080; }
      server { listen 80; location /a { proxy_pass http://aPP/x; } location /b { proxy_pass "http://127.0.0.1:8080/y?$args"; } location /c { fastcgi_pass unix:/run/php.sock; }
        location /d { proxy_pass http://unix:/run/own:/z; } location /e { grpc_pass [::1]:50051; } location /f { proxy_pass http://app$request_uri; }
        location /g { proxy_pass http://127.0.0.1\${request_uri}; } location /h { proxy_pass https://localhost/; } } }`,
    { listen: 80 },
  );
  const targets = lines.filter((line) => /^(server |\w+_pass ).*;$/.test(line));
  expect(targets.join(' ')).toBe(
    'server 127.0.0.1:3000 weight=2; server "127.0.0.1:9001"; server unix:///run/app; server "unix:/t/1.sock"; server 10.0.0.1 down; ' +
      'proxy_pass http://aPP/x; proxy_pass "http://127.0.0.1:9001/y?$args"; fastcgi_pass unix:/run/php.sock; proxy_pass "http://unix:/t/1.sock:/z"; ' +
      'grpc_pass [::1]:50051; proxy_pass http://app$request_uri; proxy_pass "http://127.0.0.1:9000${request_uri}"; proxy_pass https://localhost/;',
  );
  const [app, php] = [{ socket: '/run/app' }, { socket: '/run/php.sock' }];
  expect(upstreams).toEqual([{ port: 3000 }, app, php, { port: 50_051 }, { port: 443 }]);
  expect(redirections).toContain(
    'grpc_pass [::1]:50051: what runs there is loaded too (CPU µs/req is without it)',
  );
});

const refusalOf = (http: string) =>
  refusal(
    nginxKind,
    `http { upstream app { server 127.0.0.1:1; } server { listen 80; }\n ${http} }`,
  );

it('on other machines are refused, with file and line', async () => {
  const line = (directive: string) => `server { location / { ${directive}; } }`;
  expect(await refusalOf('upstream b { server 10.0.0.5:80; }')).toMatch(
    /^own\.conf:2: server 10\.0\.0\.5:80 may .* --upstream '10\.0\.0\.5:80=127\.0\.0\.1:9000' \(=stub:5ms:2KB for a stub\)$/,
  );
  expect(await refusalOf(line('proxy_pass http://$host'))).toMatch(
    / may leave this machine, since its target is a variable: .* --upstream '\$host=127\.0\.0\.1:9000' \(.*\)$/,
  );
  expect(await refusalOf(line('fastcgi_pass 10.0.0.5:80'))).toMatch(/80=127\.0\.0\.1:9000'$/);
});

it.each([
  ...[
    'proxy_pass https://example.org/',
    'grpc_pass grpc://[2001:db8::1]:1',
    'proxy_pass http://127.0.0.1@example.org',
    'proxy_pass http://127.0.0.1\\.example.org/',
    'proxy_pass http://2130706433/',
    'proxy_pass http://localhost/$arg_x',
    'proxy_pass http://app:81',
    'proxy_pass http://127.0.0.1$uri',
    'proxy_pass http://127.0.0.1$request_uri_',
    'uwsgi_pass 127.0.0.1:$port',
    'tunnel_pass',
    '"proxy_pass" http://example.org/',
  ].map((line) => `server { location / { ${line}; } }`),
  'upstream b { server localhost service=http resolve; }',
  'upstream b { state /var/lib/servers; }',
  'otel_exporter { endpoint otel:4317; }',
  'acme_issuer a { uri https://acme.example/; }',
  'resolver dns.example;',
  'set_real_ip_from proxy.example;',
  'ldap_server a { url ldap://10.0.0.1/; }',
  'nchan_redis_url redis://10.0.0.1:6379;',
  'upstream r { nchan_redis_server redis.example; }',
  'upstream d { postgres_server 10.0.0.1 dbname=a; }',
  'upstream d { upsync 10.0.0.1:8500/v1/kv; }',
  'upstream r { nchan_redis_server redis://127.0.0.1@redis.example; }',
  'NginxModuleOtelExporterEndpoint 127.0.0.1@otel:4317;',
  'upstream d { jdomain app.example port=80; }',
  'kafka_broker_list 127.0.0.1:9092,kafka:9092;',
  'kafka_broker_list "127.0.0.1:9092;kafka:9092";',
  'zipkin_collector_host 127.0.0.1@zipkin;',
  'access_udplog 10.0.0.1:514 combined;',
  'server { location / { auth_gss on; } }',
  'session_log x "syslog:tag=a,server=10.0.0.1";',
  'modsecurity_rules_remote key https://10.0.0.1/;',
  'server { location / { proxy_connect; } }',
  'server { location / { app_protect_security_log f syslog:server=10.0.0.1:514; } }',
])('backends that may be on another machine are refused in any form: %s', async (http) => {
  expect(await refusalOf(http)).toMatch(/^own\.conf:2: \w+.* may leave this machine/);
});

it.each([
  ['kafka_broker_list 127.0.0.1:9092,[::1]:9092;', ',[::1]:9092: what runs there is asked too'],
  ['nchan_redis_url redis://:secret@[::1]:6379;', 'nchan_redis_url redis://***@[::1]:6379: what'],
  ['mongo_url mongodb://a:secret@localhost/db;', 'mongo_url mongodb://***@localhost/db: what'],
  ['some_address unix:/run/some;', 'some_address unix:/run/some: what'],
  ['vhost_traffic_status_filter_by_host on;'],
  ['resolver 127.0.0.53 [::1]:53 valid=30s ipv6=off;'],
  ['set_real_ip_from 10.0.0.0/8;'],
  ['set_real_ip_from unix:;'],
  ['some_endpoint /internal;'],
  ['vod_base_url https://cdn.example;'],
])('backends of modules on this machine are kept: %s', async (line, ...messages) => {
  await expectBeside(['', line], line, messages);
});

it('the password of a backend is not printed', async () => {
  const message = await refusalOf('upstream r { nchan_redis_server redis://:secret@10.0.0.1; }');
  expect(message).toMatch(/nchan_redis_server redis:\/\/\*\*\*@10\.0\.0\.1 may leave/);
  expect(message).not.toContain('secret');
});

it('a backend without a port has the default port of the module', async () => {
  const { lines, upstreams } = await nginx(
    'http { upstream r { nchan_redis_server redis://127.0.0.1/1; } statsd_server localhost; server { listen 80; } }',
  );
  expect(lines).toEqual(
    expect.arrayContaining([
      'nchan_redis_server "redis://127.0.0.1:6379/1";',
      'statsd_server "localhost:8125";',
    ]),
  );
  expect(upstreams).toEqual([{ port: 6379 }, { port: 8125 }]);
});

it.each([
  'proxy_pass https://127.0.0.1/$host',
  'proxy_pass http://LocalHost/',
  'proxy_pass http://[0:0:0:0:0:0:0:1]/',
  'proxy_pass http://127.0.0.1?$args',
  'add_header X-A syslog:',
])('backends on this machine are kept unchanged: %s', async (line) => {
  const { lines } = await nginx(`http { server { listen 8000; location / { ${line}; } } }`);
  expect(lines).toContain(`${line};`);
});

it.each([
  ['js_periodic main.f;', true],
  ['perl_set $a "sub { 1 }";', true],
  ['modsecurity on;', true],
  ['content_by_lua "ngx.say(1)";', true],
  ['return 204;', false],
  ['types { application/x-perl pl pm; }', false],
  ['location /js_app { return 204; }', false],
])('knows whether code of a config answers: %s is %j', async (line, runsCode) => {
  const text = `events { } http { server { listen 80; location / { ${line} } } }`;
  expect((await adopt(nginxKind, text)).runsCode).toBe(runsCode);
});

it.each([
  ['/home/me/own.so', true],
  ['/usr/../home/me/own.so', true],
  ['../../../home/me/own.so', true],
  ['modules/ngx_http_image_filter_module.so', false],
  ['/usr/lib/nginx/modules/ngx_http_image_filter_module.so', false],
])('a module counts as code if it is of no package: %s is %j', async (module, runsCode) => {
  const text = `load_module ${module}; events { } http { server { listen 80; } }`;
  expect((await adopt(nginxKind, text)).runsCode).toBe(runsCode);
});

it('a config of a million words is adopted while somebody waits', async () => {
  const text = `events {}\nhttp { server { listen 8080; } types { ${'load_module '.repeat(1e6)}; } }`;
  expect((await adopt(nginxKind, text)).runsCode).toBe(false);
});
