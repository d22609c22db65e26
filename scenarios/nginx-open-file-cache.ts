import { defineScenario, nginx } from '../lib/scenario/index.ts';
import { article, kernelSettings, load, page, published } from './h2o-vs-nginx.ts';

const workers = { workers: 'server-cores', articleWorkers: 16 } as const;
const note = 'Beyond the article: connections are not closed after 100 requests.';

export default defineScenario({
  name: 'nginx-open-file-cache',
  title: 'nginx remembers open files: open_file_cache max=100 inactive=20s',
  article,
  knob: 'open_file_cache',
  load,
  page,
  variants: [
    { name: 'workers', server: nginx(['base', 'workers'], workers), published: published.workers },
    {
      name: 'open-file-cache',
      server: nginx(['base', 'workers', 'open-file-cache'], workers),
      published: published.openFileCache,
    },
    {
      name: 'workers-unlimited',
      onRequest: true,
      server: nginx(['base', 'workers', 'keepalive-unlimited'], workers),
      note,
    },
    {
      name: 'open-file-cache-unlimited',
      onRequest: true,
      against: 'workers-unlimited',
      server: nginx(['base', 'workers', 'open-file-cache', 'keepalive-unlimited'], workers),
      note,
    },
  ],
  footnotes: [kernelSettings],
});
