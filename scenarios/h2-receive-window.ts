import {
  defineScenario,
  h2load,
  nghttpd,
  type NetworkSpec,
  type Variant,
} from '../lib/scenario/index.ts';

/** 50 ms there and back. TCP sends a whole window at once, so that nothing else decides. */
const direction = { delayMs: 25 };
const network: NetworkSpec = {
  toServer: direction,
  toClient: direction,
  serverSettings: ['reno'],
  clientSettings: [],
};

/**
 * nghttpd for a client with a receive window of 2^bits − 1 bytes. Its frames of 16 KiB end where half a window is read, so the client
 * gives back all of a window in each round trip. Other frames can leave up to half of it for the next one.
 */
function withWindow(name: string, bits: number): Variant {
  return {
    name,
    server: nghttpd(['h2'], { workers: 1 }),
    load: h2load(`-c 2 -m 1 -D 5 -w ${bits}`),
  };
}

export default defineScenario({
  name: 'h2-receive-window',
  title: 'nghttpd over HTTP/2 behind 50 ms: receive windows of 64 kB to 1 GB',
  knob: 'the receive window',
  load: h2load('-c 2 -m 1 -D 5'),
  page: { docroot: 'images', path: '/img.html', bodyBytes: 525_304 },
  network,
  variants: [
    withWindow('window-64k', 16),
    withWindow('window-256k', 18),
    withWindow('window-1g', 30),
  ],
  footnotes: [
    'A stream gets one window in each round trip: the body takes 9 round trips of 50 ms with 65,535 bytes, 3 with 262,143, and 1 with 2^30 − 1.',
  ],
});
