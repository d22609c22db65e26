import { ab, defineScenario, nginx } from '../lib/scenario/index.ts';
import { article, network, packets, page, published, workers } from './nginx-tuning-under-delay.ts';

export default defineScenario({
  name: 'nginx-one-request',
  title: 'the packets of one request behind 100 ms, with and without tcp_nopush',
  article,
  knob: 'tcp_nopush',
  load: { ...ab('-n 1'), warmupSeconds: 0 },
  page,
  network,
  rounds: 1,
  variants: [
    {
      name: 'untuned',
      server: nginx(['packaged'], workers),
      published: {
        packetsPerRequest: published.untuned.packetsPerRequest,
        packets: packets.untuned,
      },
    },
    {
      name: 'tcp-nopush',
      // A single request has packets, but no speed to compare.
      against: null,
      server: nginx(['packaged', 'tcp-nopush'], workers),
      published: {
        packetsPerRequest: published.tcpNopush.packetsPerRequest,
        packets: packets.tcpNopush,
      },
    },
  ],
  footnotes: [
    'The article has the lines of tcpdump, taken on the server. tcp_nopush sends head and body in one segment, which also saves the ACK of the other.',
  ],
});
