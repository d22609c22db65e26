import { defineScenario, h2load, h2o } from 'server-bakeoff';

export default defineScenario({
  name: 'access-log',
  title: "what h2o's access log costs over HTTP/2",
  knob: 'an access log',
  load: h2load('-c 50 -m 20 -t 2 -D 10'),
  // A bare name is a folder of pages that bakeoff ships; ./www would be one beside this file.
  page: { docroot: 'h2o', path: '/', bodyBytes: 177 },
  variants: [
    { name: 'no-log', server: h2o(['./h2o.conf'], { workers: 'server-cores' }) },
    { name: 'log', server: h2o(['./h2o.conf', './access-log.conf'], { workers: 'server-cores' }) },
  ],
});
