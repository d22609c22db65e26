import { expect, test } from 'vitest';
import { h2load, vegeta } from '../../lib/scenario/index.ts';
import { refused } from '../fixtures/refused.ts';

test.each([
  [
    '--requests=20 --clients 10 --threads=2 --max-concurrent-streams 5',
    { connections: 10, streams: 5, threads: 2, requests: 20 },
  ],
  [
    '',
    {
      protocol: 'h2',
      connections: 1,
      threads: 1,
      keepAlive: true,
      requests: 1,
      timeoutSeconds: 600,
    },
  ],
  ['-D500ms --warm-up-time 1s', { durationSeconds: 0.5, warmupSeconds: 1 }],
  ['-p h2c -n 5 -m 3', { protocol: 'h2c', streams: 3, requests: 5 }],
  ['--h3 -m 3', { protocol: 'h3', streams: 3 }],
  ['--alpn-list=h3', { protocol: 'h3' }],
  ['-w 1 -W 30', { window: { stream: 1, connection: 2 ** 30 - 1 } }],
  [
    '--h3 --window-bits=20 --connection-window-bits=10',
    { window: { stream: 2 ** 20 - 1, connection: 1023 } },
  ],
])('h2load: "%s" is %o', (line, profile) => {
  expect(h2load(line)).toMatchObject(profile);
});

test('h2load flags for duration, streams and TLS', () => {
  expect(h2load('-D 10')).not.toHaveProperty('requests');
  expect(h2load('--h1')).not.toHaveProperty('streams');
  expect(h2load('-D 10')).not.toHaveProperty('window');
  const tls = { maxVersion: 'TLSv1.2', ciphers: ['ECDHE-RSA-AES128-GCM-SHA256'] } as const;
  expect(h2load('-n 10', { tls }).tls).toEqual(tls);
});

test.each([
  ['-n 10 -D 10', /^h2load: -n and -D do not go together/],
  ['--h1 -m 10 -n 10', /^h2load: streams 10 need h2, h2c or h3, not http\/1\.1/],
  ['-w 31', /^h2load -w 31 has to be 1 to 30, for a window of 2\^N − 1 bytes$/],
  ['-W 15', /^h2load: window: connection has to be 65535 or more, .*: set stream instead$/],
  ['--h1 -w 16', /^h2load: --h1 and -w do not go together: leave one out$/],
  ['-p http/1.1 -W 16', /^h2load: window: http\/1\.1 has no receive windows: leave it out, or/],
  ['-r 5', /^h2load: -r cannot be honoured here; these can: -n -c -t -m -w -W -D -p --rps -H -d /],
])('h2load: "%s" is refused in one line', refused(h2load));

test('vegeta command line of the article', () => {
  const bucketsMs = [0.15, 0.3, 5];
  expect(vegeta('-http2 -insecure -duration=10s -rate=1000', { bucketsMs })).toEqual({
    command: 'vegeta attack -http2 -insecure -duration=10s -rate=1000',
    protocol: 'h2',
    connections: 1,
    streams: 100,
    threads: 1,
    keepAlive: true,
    rate: 1000,
    requests: 10_000,
    timeoutSeconds: 30,
    bucketSeconds: [0.00015, 0.0003, 0.005],
  });
});

test.each([
  ['-duration=10s', { rate: 50, requests: 500 }],
  ['--rate 20/s --duration 2m', { rate: 20, requests: 2400 }],
  ['-rate=100 -duration=290ms', { requests: 29 }],
  ['-duration=10s -http2=false', { protocol: 'http/1.1', connections: 100, keepAlive: true }],
  [
    '-duration=1s -http2=false -keepalive=false -max-connections=20',
    { protocol: 'http/1.1', connections: 20, keepAlive: false },
  ],
  [
    "-duration=1s -header 'X-A: b' -header=X-C:d -name=first -output=o.bin",
    { headers: { 'X-A': 'b', 'X-C': 'd' } },
  ],
])('vegeta: "%s" is %o', (line, profile) => {
  expect(vegeta(line)).toMatchObject(profile);
});

test.each([
  ['-rate=1000', /^vegeta: give a -duration/],
  ['-duration=1m30s', /^vegeta -duration 1m30s has to be a time/],
  ['-duration=1s -rate=100/m', /-rate 100\/m has to be a whole number/],
  ['-http2=no -duration=1s', /^vegeta: -http2=no cannot be honoured here; these can: -http2 /],
  ['-duration=1s -keepalive=false', /^vegeta: keepAlive is false/],
])('vegeta: "%s" is refused in one line', refused(vegeta));

test('a load without a number of requests or a time is told how to set one', () => {
  expect(() => h2load('-c 10 -m 10')).toThrow(/: each connection needs one, such as by -n 1000$/);
});
