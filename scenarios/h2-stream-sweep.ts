import { defineScenario, h2load, type Variant } from '../lib/scenario/index.ts';
import { article, footnotes, nghttpdH2, nginxHttp1, page, tls } from './http1-vs-h2-small-file.ts';

/** The article's nghttpd under its load with another number of streams per connection. */
function withStreams(streams: number): Variant {
  return {
    name: `streams-${streams}`,
    server: nghttpdH2.server,
    load: h2load(`-n100000 -c100 -m${streams}`, { tls }),
    note: 'The article has no figure: fewer streams were slower and slower, and 1 about as fast as nginx over HTTP/1.1.',
  };
}

export default defineScenario({
  name: 'h2-stream-sweep',
  title: '21 bytes over HTTP/2 with 100 to 1 requests at once, against HTTP/1.1',
  article,
  knob: 'HTTP/2',
  load: h2load('-n100000 -c100 -m100', { tls }),
  page,
  variants: [
    nginxHttp1,
    { ...nghttpdH2, name: 'streams-100' },
    ...[50, 20, 10, 5, 2, 1].map(withStreams),
  ],
  // Fewer streams were slower, the article says.
  alsoCompare: [{ variant: 'streams-1', against: 'streams-100' }],
  footnotes,
});
