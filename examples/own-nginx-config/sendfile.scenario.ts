import { defineScenario, nginx, wrk } from 'server-bakeoff';

export default defineScenario({
  name: 'sendfile',
  title: 'is sendfile worth it for a page of 16 KiB?',
  knob: 'sendfile off',
  load: wrk('-c 50 -t 2 -d 10'),
  // Paths that begin with ./ are meant from this file.
  page: { docroot: './www', path: '/page.txt', bodyBytes: 16_384 },
  variants: [
    { name: 'sendfile', server: nginx(['./nginx.conf'], { workers: 'server-cores' }) },
    {
      name: 'no-sendfile',
      server: nginx(['./nginx.conf', './sendfile-off.conf'], { workers: 'server-cores' }),
    },
  ],
});
