// An article of one's own: what nginx's documentation says of TLS, judged as the shipped articles are.
import { defineArticle, defineScenario, nginx, type LoadProfile } from 'server-bakeoff';

const article = defineArticle({
  id: 'nginx-https',
  title: 'Configuring HTTPS servers',
  date: 'undated',
  url: 'https://nginx.org/en/docs/http/configuring_https_servers.html',
  claims: [
    {
      quote:
        'the first is by enabling keepalive connections to send several requests via one connection',
      place: 'HTTPS server optimization',
      text: 'kept connections save handshakes, and make more requests/s',
      figures: 'none',
      rests: [{ scenario: 'https', variant: 'kept', against: 'new', is: 'faster' }],
    },
    {
      quote:
        'the second is to reuse SSL session parameters to avoid SSL handshakes for parallel and subsequent connections',
      place: 'HTTPS server optimization',
      text: 'resumed sessions make more requests/s',
      figures: 'none',
      rests: [{ scenario: 'https', variant: 'resumed', against: 'new', is: 'faster' }],
    },
  ],
});

const load = (more: Partial<LoadProfile>): LoadProfile => ({
  command: 'requests over TLS',
  protocol: 'http/1.1',
  connections: 10,
  threads: 1,
  keepAlive: false,
  durationSeconds: 5,
  ...more,
});

const server = nginx(['base', 'tls'], { workers: 1 });

export default [
  defineScenario({
    name: 'https',
    title: 'What saves TLS handshakes',
    knob: 'connections',
    article,
    load: load({}),
    page: { docroot: 'small', path: '/index.html' },
    variants: [
      { name: 'new', server },
      { name: 'resumed', server, load: load({ tls: { resume: 1 } }) },
      { name: 'kept', server, load: load({ keepAlive: true }) },
    ],
  }),
];
