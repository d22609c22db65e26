import { defineArticle } from '../../lib/scenario/index.ts';

export default defineArticle({
  id: '002',
  title: 'nghttpd over HTTP/2',
  author: 'Hideo Suzuki',
  date: '2015-12-17',
  machine: {
    hardware:
      'Celeron G1820 at 2.7 GHz, 1 virtual core of Hyper-V 2012 R2; the generator on another one, 1 Gbit/s between them',
    os: 'Ubuntu 14.04',
    servers: 'nghttpd',
  },
  commands: [
    'h2load -n 100000 -c 50 -m 50 https://…',
    'h2load -n 100000 -c 1020 -m 1020 https://…',
  ],
  scenarios: ['nghttpd-index', 'nghttpd-img'],
  claims: [
    {
      text: 'nghttpd is about as fast as h2o on the small page',
      figures: "61,841 requests/s for nghttpd; h2o's figure is in an earlier text",
      rests: [{ scenario: 'nghttpd-index', variant: 'h2o', against: 'nghttpd', is: 'same' }],
    },
    {
      text: 'nghttpd is about as fast as h2o on the large page',
      figures: "221.86 requests/s for nghttpd; h2o's figure is in an earlier text",
      rests: [
        { scenario: 'nghttpd-img', variant: 'h2o-4096', against: 'nghttpd-4096', is: 'same' },
      ],
    },
    {
      text: 'repeated on the large page, h2o answers all requests and nghttpd does not',
      figures: "100 %, 15.386 % and 55.272 % of nghttpd's succeeded, the others were 4xx",
      rests: [
        {
          scenario: 'nghttpd-img',
          variant: 'h2o-1024',
          against: 'nghttpd-1024',
          allSucceed: true,
        },
      ],
    },
  ],
});
