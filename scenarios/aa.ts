import { defineScenario, nginx } from '../lib/scenario/index.ts';
import { load, page } from './h2o-vs-nginx.ts';

// What nginx-open-file-cache and nginx-worker-connections start from, so that its noise is theirs.
const server = nginx(['base', 'workers'], { workers: 'server-cores', articleWorkers: 16 });

export default defineScenario({
  name: 'aa',
  title: "one nginx config against itself: states this machine's noise floor",
  knob: 'nothing',
  load,
  page,
  control: true,
  variants: [
    { name: 'a', server },
    { name: 'again', server },
  ],
  footnotes: [
    'Both rows are the same nginx under the same load, both started anew in each round: whatever differs between them is noise.',
  ],
});
