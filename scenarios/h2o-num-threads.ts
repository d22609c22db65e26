import { defineScenario, h2o } from '../lib/scenario/index.ts';
import { article, kernelSettings, load, page, published } from './h2o-vs-nginx.ts';

const note = 'Beyond the article, which has figures for 16 and 36 threads only.';

export default defineScenario({
  name: 'h2o-num-threads',
  title: 'h2o with 1 to 36 threads on the cores that the generator needs too',
  article,
  knob: 'num-threads',
  load,
  page,
  sharedCores: true,
  variants: [
    ...[1, 2, 4, 8].map((threads) => ({
      name: `threads-${threads}`,
      server: h2o(['base', 'tuned'], { workers: threads }),
      note,
    })),
    {
      name: 'threads-16',
      server: h2o(['base', 'tuned'], { workers: 16 }),
      published: published.h2oTuned,
    },
    {
      name: 'threads-36',
      server: h2o(['base'], { workers: 36 }),
      published: published.h2oInitial,
      note: "The article's h2o before tuning: a thread for each of its 36 cores, and 1024 connections allowed, of which the load takes 100.",
    },
  ],
  // Its step: fewer threads, so that the generator has cores to itself.
  alsoCompare: [{ variant: 'threads-16', against: 'threads-36' }],
  footnotes: [
    'Server and generator run on all cores together, as in the article, which had 36: more threads than the generator left cores for did not make it faster.',
    'h2o keeps connections open: how many of the 100 each thread has is settled once in a round, by which thread was first to accept.',
    kernelSettings,
  ],
});
