import { defineScenario, h2load, type NetworkSpec, type Variant } from '../lib/scenario/index.ts';
import { caddy } from './http3-vs-http2.ts';

/** 50 ms there and back. */
const lineWith = (lossShare: number): NetworkSpec => {
  const direction = { delayMs: 25, ...(lossShare === 0 ? {} : { lossShare }) };
  return { toServer: direction, toClient: direction, serverSettings: [], clientSettings: [] };
};

/** Four people read at once, each one page of 10 files after the other. */
const pagesOf10 = { together: true } as const;
const loads = {
  h2: { ...h2load('-c 4 -m 10 -D 10'), ...pagesOf10 },
  h3: { ...h2load('-c 4 -m 10 -D 10 --h3'), ...pagesOf10 },
};

/** HTTP/2 and HTTP/3 at this loss. */
const pairAt = (perThousand: number): Variant[] => {
  const common = { server: caddy, network: lineWith(perThousand / 1000) };
  const baseline = `h2-loss-${perThousand}`;
  return [
    { ...common, name: baseline, series: 'h2', against: null, load: loads.h2 },
    { ...common, name: `h3-loss-${perThousand}`, series: 'h3', against: baseline, load: loads.h3 },
  ];
};

export default defineScenario({
  name: 'http3-loss',
  title: 'caddy over HTTP/2 and HTTP/3: pages of 10 files, 0 to 3 % of the packets lost',
  knob: 'lost of 1,000 packets',
  load: loads.h2,
  page: { path: '/LICENSE', bodyBytes: 11_358 },
  variants: [0, 5, 10, 30].flatMap(pairAt),
});
