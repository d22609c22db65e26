import { defineScenario, nginx } from '../lib/scenario/index.ts';
import { article, kernelSettings, load, page, published } from './h2o-vs-nginx.ts';

const note = 'Beyond the article, which has figures for 1 and 16 workers only.';

export default defineScenario({
  name: 'nginx-workers',
  title: 'nginx with 1 to 16 workers on the cores that the generator needs too',
  article,
  knob: 'worker_processes',
  load,
  page,
  sharedCores: true,
  variants: [
    {
      name: 'workers-1',
      server: nginx(['base'], { workers: 1 }),
      published: published.nginxInitial,
      note: "The article's nginx before tuning: 1024 connections allowed, and 10240 a worker in the rows below; the load takes 100.",
    },
    ...[2, 4, 8].map((workers) => ({
      name: `workers-${workers}`,
      server: nginx(['base', 'workers'], { workers }),
      note,
    })),
    {
      name: 'workers-16',
      server: nginx(['base', 'workers'], { workers: 16 }),
      published: published.workers,
    },
  ],
  footnotes: [
    'Server and generator run on all cores together, as in the article, which had 36: with more workers than the generator leaves cores for, the two fight for the CPU.',
    'nginx closes a connection after 100 requests (keepalive_requests), so connections move from worker to worker all the time: at 60,000 requests/s hundreds of times a second.',
    'accept_mutex is on, as it was by default in nginx 1.8.0: one worker at a time accepts. A single worker takes no mutex.',
    kernelSettings,
  ],
});
