import { defineScenario, fromLog, nginx, wrk } from 'server-bakeoff';

export default defineScenario({
  name: 'api-gzip',
  title: 'does compression of the API pay, for the traffic of the log?',
  knob: 'gzip for /api/',
  load: wrk("-c 10 -t 1 -d 10 -H 'Accept-Encoding: gzip'"),
  page: {
    path: '/',
    requests: await fromLog(new URL('access.log', import.meta.url)),
    // By the weights of the log, without compression.
    bodyBytes: 376,
  },
  variants: [
    { name: 'plain', server: nginx(['./nginx.conf'], { workers: 1, asIs: {} }) },
    { name: 'gzip', server: nginx(['./gzip.conf'], { workers: 1, asIs: {} }) },
  ],
});
