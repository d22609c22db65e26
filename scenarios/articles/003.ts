import { defineArticle } from '../../lib/scenario/index.ts';

export default defineArticle({
  id: '003',
  title: 'HTTP/2 and SPDY on a small file',
  date: '2014',
  machine: {
    hardware: 'i7-4770K at 3.5 GHz, 2 cores and 8 GB in a virtual machine (VMware)',
    os: 'Fedora 19',
    servers: 'nginx 1.5.11, nghttpd (nghttp2)',
  },
  commands: [
    'weighttp -k -c 100 -n 100000 http://…',
    'h2load -n100000 -c100 -m100 https://…',
    'nghttpd -n 2 -d DIR 8080 KEY CERT',
  ],
  scenarios: ['http1-vs-h2-small-file', 'h2-stream-sweep'],
  claims: [
    {
      text: 'nghttpd over HTTP/2 is far faster than nginx over HTTP/1.1',
      figures: '125,410 against 44,326 requests/s',
      rests: [
        {
          scenario: 'http1-vs-h2-small-file',
          variant: 'nghttpd-h2',
          against: 'nginx-http1',
          is: 'faster',
        },
      ],
    },
    {
      text: 'nginx over SPDY is about twice as fast as over HTTP/1.1',
      figures: '77,331 against 44,326 requests/s',
      rests: [
        {
          scenario: 'http1-vs-h2-small-file',
          variant: 'nginx-spdy',
          against: 'nginx-http1',
          is: 'faster',
          about: 2,
        },
      ],
    },
    {
      text: "headers over SPDY are 1/15 of HTTP/1.1's",
      figures: '1,511,000 against 23,600,000 B',
      rests: [
        {
          scenario: 'http1-vs-h2-small-file',
          variant: 'nginx-spdy',
          against: 'nginx-http1',
          headersAtMost: 1 / 15,
        },
      ],
    },
    {
      text: "headers over HTTP/2 are 1/45 of HTTP/1.1's",
      figures: '426,885 against 23,600,000 B',
      rests: [
        {
          scenario: 'http1-vs-h2-small-file',
          variant: 'nghttpd-h2',
          against: 'nginx-http1',
          headersAtMost: 1 / 45,
        },
      ],
    },
    {
      text: 'HTTP/2 gets slower with fewer streams than 100',
      figures: 'no figures',
      rests: [
        { scenario: 'h2-stream-sweep', variant: 'streams-1', against: 'streams-100', is: 'slower' },
      ],
    },
    {
      text: 'with a single stream HTTP/2 is about as fast as nginx over HTTP/1.1',
      figures: 'no figures',
      rests: [
        { scenario: 'h2-stream-sweep', variant: 'streams-1', against: 'nginx-http1', is: 'same' },
      ],
    },
  ],
});
