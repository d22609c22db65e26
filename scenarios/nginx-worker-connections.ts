import { defineScenario, nginx } from '../lib/scenario/index.ts';
import { article, kernelSettings, load, page, published } from './h2o-vs-nginx.ts';

const workers = { workers: 'server-cores', articleWorkers: 16 } as const;
const note =
  'The article has no figure: the score was nearly the same, whatever the number of connections.';

export default defineScenario({
  name: 'nginx-worker-connections',
  title: 'nginx allows 10240, 1024 or 640 connections a worker: no difference claimed',
  article,
  knob: 'worker_connections',
  load,
  page,
  variants: [
    {
      name: 'connections-10240',
      server: nginx(['base', 'workers'], workers),
      published: published.workers,
    },
    {
      name: 'connections-1024',
      server: nginx(['base', 'workers', 'connections-1024'], workers),
      note,
    },
    {
      name: 'connections-640',
      server: nginx(['base', 'workers', 'connections-640'], workers),
      note,
    },
  ],
  footnotes: [
    "The article tried it since h2o's max-connections of 10240 is for all its threads, and nginx's worker_connections for each worker: 16 times 640 are 10240.",
    'The load opens 100 connections: no limit is reached, even where one worker has them all.',
    kernelSettings,
  ],
});
