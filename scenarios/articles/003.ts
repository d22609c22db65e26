import { defineArticle } from '../../lib/scenario/index.ts';

export default defineArticle({
  id: '003',
  title: 'HTTP/2 and SPDY on a small file',
  source:
    '軽量な静的コンテンツ配信におけるHTTP/2とSPDYのWebサーバの性能を見てみよう; no date in it: 2014 by its h2-10 and nginx 1.5.11',
  url: 'http://blog.matsumoto-r.jp/?p=4079',
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
      quote: '125410 request/secとnginxのSPDYやHTTP/1.1と比較して、非常に速い事がわかります。',
      place: 'HTTP/2かつTLSのnghttpd',
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
      quote: 'keepalive有りのHTTP/1.1の静的配信と比べて約2倍の性能がでています。',
      place: 'SPDY/3.1のnginx',
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
      quote:
        'SPDY/3.1ではヘッダ圧縮の効果により1511000bytesとヘッダの転送量が15分の1程度になっています。',
      place: 'SPDY/3.1のnginx',
      text: "headers over SPDY are 1/15 of HTTP/1.1's",
      figures: '1,511,000 against 23,600,000 B',
      rests: [
        {
          scenario: 'http1-vs-h2-small-file',
          variant: 'nginx-spdy',
          against: 'nginx-http1',
          headersAbout: 1 / 15,
        },
      ],
    },
    {
      quote: 'HTTP/1.1のヘッダの転送量から見ると45分の1になりました。',
      place: 'HTTP/2かつTLSのnghttpd',
      text: "headers over HTTP/2 are 1/45 of HTTP/1.1's",
      figures: '426,885 against 23,600,000 B',
      rests: [
        {
          scenario: 'http1-vs-h2-small-file',
          variant: 'nghttpd-h2',
          against: 'nginx-http1',
          headersAbout: 1 / 45,
        },
      ],
    },
    {
      quote:
        'ヘッダーのサイズはSPDYの1511000bytesよりも更に少なくSPDYのヘッダの3分の1の426885bytesとなっており、',
      place: 'HTTP/2かつTLSのnghttpd',
      text: "headers over HTTP/2 are a third of SPDY's",
      figures: '426,885 against 1,511,000 B',
      rests: [
        {
          scenario: 'http1-vs-h2-small-file',
          variant: 'nghttpd-h2',
          against: 'nginx-spdy',
          headersAbout: 1 / 3,
        },
      ],
    },
    {
      quote:
        'この1セッション時に使用する並列ストリームを100から減らしていくと性能がどんどん劣化し、',
      place: 'HTTP/2かつTLSのnghttpd',
      text: 'HTTP/2 gets slower with fewer streams than 100',
      figures: 'no figures',
      rests: [
        { scenario: 'h2-stream-sweep', variant: 'streams-1', against: 'streams-100', is: 'slower' },
      ],
    },
    {
      quote: '並列ストリーム数を1つにすると大体nginxのHTTP/1.1程度の性能になることも確認しました。',
      place: 'HTTP/2かつTLSのnghttpd',
      text: 'with a single stream HTTP/2 is about as fast as nginx over HTTP/1.1',
      figures: 'no figures',
      rests: [
        { scenario: 'h2-stream-sweep', variant: 'streams-1', against: 'nginx-http1', is: 'same' },
      ],
    },
  ],
});
