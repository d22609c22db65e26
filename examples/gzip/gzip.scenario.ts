import { defineScenario, nginx, wrk } from 'server-bakeoff';

export default defineScenario({
  name: 'gzip',
  title: 'what does compression cost, for a page of text?',
  knob: 'gzip on',
  load: wrk("-c 50 -t 2 -d 10 -H 'Accept-Encoding: gzip'"),
  page: { docroot: './www', path: '/page.html' },
  variants: [
    { name: 'plain', server: nginx(['base', 'workers'], { workers: 'server-cores' }) },
    {
      name: 'gzip',
      server: nginx(['base', 'workers', './gzip.conf'], { workers: 'server-cores' }),
    },
  ],
});
