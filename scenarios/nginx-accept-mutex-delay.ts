import { defineScenario, nginx } from '../lib/scenario/index.ts';
import { article, kernelSettings, load, page, published } from './h2o-vs-nginx.ts';

// With one worker nginx takes no accept mutex, and there is nothing to delay.
const workers = { workers: 'server-cores', articleWorkers: 16, minWorkers: 2 } as const;

export default defineScenario({
  name: 'nginx-accept-mutex-delay',
  title: 'nginx waits less for its turn to accept: accept_mutex_delay 100ms',
  article,
  knob: 'accept_mutex_delay 100ms',
  load,
  page,
  variants: [
    {
      name: 'open-file-cache',
      server: nginx(['base', 'workers', 'open-file-cache'], workers),
      published: published.openFileCache,
    },
    {
      name: 'accept-mutex-delay',
      server: nginx(['base', 'workers', 'open-file-cache', 'accept-mutex-delay'], workers),
      published: published.acceptMutexDelay,
    },
  ],
  footnotes: [
    kernelSettings,
    'accept_mutex is on in both, as it was by default in nginx 1.8.0, with at least 2 workers: with one, nginx leaves it out.',
  ],
});
