import { defineArticle } from '../../lib/scenario/index.ts';

export default defineArticle({
  id: '001',
  title: 'h2o vs nginx over HTTP/2',
  source:
    'HTTP/2에 최적화된 웹 서버, h2o 알아보기 (벤치마크); no date in it: 2017 by its nginx 1.10.3',
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
      quote: 'h2o가 약 46%정도 더 빠른 부분을 확인할 수 있었습니다.',
      place: '결과',
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
      quote: 'vegeta 테스트에서 h2o 쪽이 훨씬 안정적인 히스토그램을 보여주고 있기 때문에',
      place: '결과',
      text: "h2o's histogram at 1,000 requests/s is the steadier one",
      figures: '58 against 522 of 10,000 responses took more than 5 ms',
      rests: [{ scenario: 'h2o-vs-nginx-h2-rate', variant: 'h2o', against: 'nginx', is: 'faster' }],
    },
  ],
  leftOut: [
    {
      quote: '벤치마크를 돌려보고 on쪽이 성능이 더 좋아 켜두었습니다.',
      why: 'multi_accept has no scenario: npm run knobs tries it',
    },
    {
      quote: '이 테스트는 TLS handshake가 끝난 후 시작되는 테스트이기 때문에',
      why: 'its h2load counts the time of the handshakes: a third row has the curve of h2o',
    },
    {
      quote:
        '/dev/null로 로그를 보내다가 이렇게 하면 로그를 /dev/null에 던지는 코드가 계속 실행되는 부분을 발견하여 주석처리 하였습니다.',
      why: 'it was read in the code, and not measured',
    },
  ],
});
