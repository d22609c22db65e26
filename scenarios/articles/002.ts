import { defineArticle } from '../../lib/scenario/index.ts';

export default defineArticle({
  id: '002',
  title: 'nghttpd over HTTP/2',
  source: 'nghttpd HTTP/2 お試し',
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
      quote: '`nginx` との比較用では、`H2O` とほぼ同じベンチマークが出た',
      place: 'まとめ',
      text: 'nghttpd is about as fast as h2o on the small page',
      figures: "61,841 requests/s for nghttpd; h2o's figure is in an earlier text",
      rests: [{ scenario: 'nghttpd-index', variant: 'h2o', against: 'nghttpd', is: 'same' }],
    },
    {
      quote: '大量画像表示でも、 `H2O` とほぼ同じベンチマークが出たが、',
      place: 'まとめ',
      text: 'nghttpd is about as fast as h2o on the large page',
      figures: "221.86 requests/s for nghttpd; h2o's figure is in an earlier text",
      rests: [
        { scenario: 'nghttpd-img', variant: 'h2o-4096', against: 'nghttpd-4096', is: 'same' },
      ],
    },
    {
      quote:
        '2〜3回と繰り返すと HTTP4xx のエラーが発生。この条件だと信頼性は、`H2O` に軍配があがった',
      place: 'まとめ',
      text: 'repeated on the large page, h2o is the more reliable one',
      figures: "100 %, 15.386 % and 55.272 % of nghttpd's succeeded, the others were 4xx",
      rests: [
        {
          scenario: 'nghttpd-img',
          variant: 'h2o-1024',
          against: 'nghttpd-1024',
          moreSucceed: true,
        },
      ],
    },
  ],
  leftOut: [
    {
      quote:
        'クライアント数 = クライアント当たりの、最大ストリーム並列数 = 1021 から `client could not connect to host` が出始める',
      why: 'it is a limit of the machine with the load: 1024 open files',
    },
  ],
});
