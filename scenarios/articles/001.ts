import { defineArticle } from '../../lib/scenario/index.ts';

export default defineArticle({
  id: '001',
  title: 'h2o vs nginx over HTTP/2',
  date: '2017',
  machine: {
    os: 'Ubuntu 16.04',
    compiler: 'gcc 5.4.0 (nginx)',
    servers: 'nginx 1.10.3 (OpenSSL 1.0.2g), h2o 2.2.0-DEV at ad1b607 (LibreSSL 2.4.4)',
  },
  commands: [
    'h2load -n 100000 -c 1000 -t 16 https://…',
    'vegeta attack -http2 -insecure -duration=10s -rate=1000',
  ],
  scenarios: ['h2o-vs-nginx-h2', 'h2o-vs-nginx-h2-rate'],
  claims: [
    {
      text: 'h2o is about 46 % faster than nginx over HTTP/2',
      figures: '12,127 against 8,272 requests/s; only nginx was held to the curve P-384',
      rests: [
        {
          scenario: 'h2o-vs-nginx-h2',
          variant: 'h2o',
          against: 'nginx',
          is: 'faster',
          about: 1.46,
        },
      ],
    },
    {
      text: "h2o's histogram at 1,000 requests/s is the steadier one",
      figures: '58 against 522 of 10,000 responses took more than 5 ms',
      rests: [{ scenario: 'h2o-vs-nginx-h2-rate', variant: 'h2o', against: 'nginx', is: 'faster' }],
    },
  ],
});
