import {
  defineScenario,
  h2load,
  h2o,
  nghttpd,
  nginx,
  weighttp,
  type Variant,
} from '../lib/scenario/index.ts';
import article from './articles/003.ts';
import { allSucceeded } from './articles/outcomes.ts';

export { article };
export const page = { docroot: 'small', path: '/index.html', bodyBytes: 21 };
export const tls = {
  maxVersion: 'TLSv1.2',
  ciphers: ['ECDHE-RSA-AES128-GCM-SHA256'],
  curves: ['P-256'],
} as const;

// Neither tool counted timeouts then.
const { timeout: _, ...outcomes } = allSucceeded;

export const nginxHttp1: Variant = {
  name: 'nginx-http1',
  server: nginx(['small-file'], { workers: 'server-cores', articleWorkers: 2, minWorkers: 2 }),
  load: weighttp('-k -c 100 -n 100000'),
  published: {
    rps: 44_326,
    transferBytesPerSecond: 11_124 * 1024,
    seconds: 2.25599,
    requests: 100_000,
    outcomes,
    responses: { '2xx': 100_000 },
    successRatio: 1,
    errorsPerMillion: 0,
    receivedBytes: 25_700_000,
    headerBytes: 23_600_000,
    bodyBytes: 2_100_000,
  },
};

export const nghttpdH2: Variant = {
  name: 'nghttpd-h2',
  server: nghttpd(['h2'], { workers: 'server-cores', articleWorkers: 2 }),
  published: {
    rps: 125_410,
    transferBytesPerSecond: 3094 * 1024,
    seconds: 0.797384,
    requests: 100_000,
    outcomes,
    responses: { '2xx': 100_000 },
    successRatio: 1,
    errorsPerMillion: 0,
    receivedBytes: 4_928_985,
    headerBytes: 426_885,
    bodyBytes: 2_100_000,
  },
};

export const footnotes = [
  'HTTP/1.1 is without TLS here, as in the article. It names no TLS version, cipher or curve: all of HTTP/2 gets TLS 1.2, ECDHE-RSA-AES128-GCM-SHA256 and P-256 here.',
  "The article's nghttpd and h2load spoke a draft of HTTP/2 (h2-10). Its header compression sent nothing for a header that was as in the answer before; since a later draft each takes a byte at least.",
];

export default defineScenario({
  name: 'http1-vs-h2-small-file',
  title: '21 bytes over HTTP/1.1, SPDY/3.1 (published only) and HTTP/2 with 100 streams',
  article,
  knob: 'HTTP/2',
  load: h2load('-n100000 -c100 -m100', { tls }),
  page,
  variants: [
    nginxHttp1,
    {
      name: 'nginx-spdy',
      server: 'SPDY was taken out of nginx in 1.9.5, and of every client since',
      published: {
        rps: 77_331,
        transferBytesPerSecond: 2727 * 1024,
        seconds: 1.293127,
        requests: 100_000,
        outcomes,
        responses: { '2xx': 100_000 },
        successRatio: 1,
        errorsPerMillion: 0,
        receivedBytes: 5_215_400,
        headerBytes: 1_511_000,
        bodyBytes: 2_100_000,
      },
    },
    nghttpdH2,
    {
      name: 'nginx-h2',
      server: nginx(['small-file', 'small-file-h2'], {
        workers: 'server-cores',
        articleWorkers: 2,
        minWorkers: 2,
      }),
      note: 'Beyond the article: its nginx over HTTP/2 where SPDY was.',
    },
    {
      name: 'h2o-h2',
      server: h2o(['h2'], { workers: 'server-cores', articleWorkers: 2 }),
      note: 'Beyond the article: the same work on h2o.',
    },
  ],
  footnotes: [
    ...footnotes,
    'nginx answers 10,000 requests on a connection (keepalive_requests), which is more than any gets here. Its gzip never acts: the generators do not ask for it.',
    'The h2load of 2014 left all but headers and data out of its kB/s: total bytes by time are more.',
  ],
});
