import { command, defineScenario, h2load } from '../lib/scenario/index.ts';

/** The scenario with lost packets uses it too. */
export const caddy = command('caddy run --config static.caddyfile --adapter caddyfile', {
  folder: '../server-configs/caddy',
  tls: true,
});

export default defineScenario({
  name: 'http3-vs-http2',
  title: 'caddy over HTTP/2 and HTTP/3 on a clean line: one file at a time, and 100',
  knob: 'protocol',
  load: h2load('-c 10 -m 1 -D 10'),
  page: { path: '/', bodyBytes: 612 },
  variants: [
    { name: 'one-h2', server: caddy },
    { name: 'one-h3', server: caddy, load: h2load('-c 10 -m 1 -D 10 --h3') },
    { name: 'hundred-h2', against: null, server: caddy, load: h2load('-c 10 -m 100 -D 10') },
    {
      name: 'hundred-h3',
      against: 'hundred-h2',
      server: caddy,
      load: h2load('-c 10 -m 100 -D 10 --h3'),
    },
  ],
});
