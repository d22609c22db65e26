import { defineScenario, nginx } from '../lib/scenario/index.ts';
import { article, kernelSettings, load, page, published } from './h2o-vs-nginx.ts';

// accept_mutex_delay stands in both variants; it acts from 2 workers on.
const workers = { workers: 'server-cores', articleWorkers: 16, minWorkers: 2 } as const;

export default defineScenario({
  name: 'nginx-tcp-nopush',
  title: 'nginx sends headers and file in one packet: tcp_nopush on',
  article,
  knob: 'tcp_nopush',
  load,
  page,
  variants: [
    {
      name: 'accept-mutex-delay',
      server: nginx(['base', 'workers', 'open-file-cache', 'accept-mutex-delay'], workers),
      published: published.acceptMutexDelay,
    },
    {
      name: 'tcp-nopush',
      server: nginx(
        ['base', 'workers', 'open-file-cache', 'accept-mutex-delay', 'tcp-nopush'],
        workers,
      ),
      published: published.tcpNopush,
    },
  ],
  footnotes: [kernelSettings],
});
