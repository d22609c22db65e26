import { defineScenario, nginx, type NetworkSpec } from '../lib/scenario/index.ts';
import { article, load, page, published } from './h2o-vs-nginx.ts';

const nginxTuned = nginx(
  ['base', 'workers', 'open-file-cache', 'accept-mutex-delay', 'tcp-nopush'],
  { workers: 'server-cores', articleWorkers: 16, minWorkers: 2 },
);

/** Both sides of the article were on one machine: its settings held for both. */
const withSettings = (settings: readonly string[]): NetworkSpec => ({
  toServer: { delayMs: 0 },
  toClient: { delayMs: 0 },
  serverSettings: settings,
  clientSettings: settings,
});

export default defineScenario({
  name: 'nginx-kernel-settings',
  title: "nginx, tuned, with the article's kernel settings and with this kernel's own",
  article,
  knob: 'kernel settings',
  load,
  page,
  network: withSettings([]),
  variants: [
    {
      name: 'defaults',
      server: nginxTuned,
      note: 'The article has no figure without its kernel settings. Its author says that they may not be needed.',
    },
    {
      name: 'kernel-settings',
      network: withSettings(['article']),
      server: nginxTuned,
      published: published.tcpNopush,
    },
  ],
  footnotes: [
    'Four of the twelve settings hold for a whole machine or are gone, and are not made: netdev_max_backlog, tcp_tw_recycle (gone since Linux 4.12), rmem_max and wmem_max.',
    'Client and server are in network namespaces of their own, where the settings can be made without changing those of the machine. Their link costs CPU time, so requests/s are fewer than over loopback.',
  ],
});
