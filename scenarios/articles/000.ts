import { defineArticle } from '../../lib/scenario/index.ts';

export default defineArticle({
  id: '000',
  title: 'h2o vs nginx',
  source: 'h2o와 nginx의 성능 비교',
  date: '2015-05-06',
  machine: {
    hardware: 'EC2 c4.8xlarge; server and generator on the same machine',
    kernel: 'Linux 3.14.35 (amzn1)',
    compiler: 'gcc 4.8.2',
    servers: 'nginx 1.8.0, h2o 1.2.1-alpha1',
  },
  commands: ['./wrk -c 100 -t 10 -d 10 http://127.0.0.1/'],
  scenarios: [
    'h2o-vs-nginx',
    'nginx-open-file-cache',
    'nginx-accept-mutex-delay',
    'nginx-tcp-nopush',
    'nginx-worker-connections',
    'h2o-num-threads',
    'nginx-workers',
    'nginx-kernel-settings',
  ],
  claims: [
    {
      quote: '단번에 성장했습니다.',
      place: '작업자 프로세스 및 연결 수를 증가',
      text: '16 workers instead of 1 make nginx faster at once',
      figures: '53,434 to 624,639 requests/s',
      rests: [
        { scenario: 'nginx-workers', variant: 'workers-16', against: 'workers-1', is: 'faster' },
      ],
    },
    {
      quote: 'h2o은 대부분 설정하지 않아도 꽤 성능이 나오게있는',
      place: '정리',
      text: 'h2o is fast without tuning: faster than nginx as it comes',
      figures: '53,434 requests/s for nginx, 582,270 for h2o',
      rests: [
        {
          scenario: 'h2o-vs-nginx',
          variant: 'nginx-initial',
          against: 'h2o-initial',
          is: 'slower',
        },
      ],
    },
    {
      quote: 'nginx도 튜닝에 따라 h2o에 필적하는 성능은 발행',
      place: '정리',
      text: 'nginx can be tuned to match h2o',
      figures: '824,800 requests/s for nginx, 708,329 for h2o',
      rests: [
        {
          scenario: 'h2o-vs-nginx',
          variant: 'nginx-tcp-nopush',
          against: 'h2o-tuned',
          is: 'not slower',
        },
      ],
    },
    {
      quote: 'h2o만큼의 수준까지 도달했습니다.',
      place: 'open_file_cache에서 파일 정보를 캐시',
      text: 'open_file_cache makes nginx faster: it reaches the level of h2o',
      figures: '624,639 to 700,324 requests/s; h2o has 708,329',
      rests: [
        {
          scenario: 'nginx-open-file-cache',
          variant: 'open-file-cache',
          against: 'workers',
          is: 'faster',
        },
      ],
    },
    {
      quote: 'h2o을 넘었습니다.',
      place: 'accept_mutex_delay',
      text: 'accept_mutex_delay 100ms makes nginx faster: it passes h2o',
      figures: '700,324 to 714,512 requests/s; h2o has 708,329',
      rests: [
        {
          scenario: 'nginx-accept-mutex-delay',
          variant: 'accept-mutex-delay',
          against: 'open-file-cache',
          is: 'faster',
        },
      ],
    },
    {
      quote: '초 82 만 요청합니다. 대단하네요.',
      place: 'tcp_nopush',
      text: 'tcp_nopush makes nginx faster',
      figures: '714,512 to 824,800 requests/s',
      rests: [
        {
          scenario: 'nginx-tcp-nopush',
          variant: 'tcp-nopush',
          against: 'accept-mutex-delay',
          is: 'faster',
        },
      ],
    },
    {
      quote: '이 두 단지 초 20 만정도 다르기 때문에',
      place: '정리',
      text: 'open_file_cache and tcp_nopush together are worth about 200,000 requests/s: 32 % of 624,639',
      figures:
        '75,686 and 110,288 requests/s; with accept_mutex_delay between them 624,639 to 824,800',
      rests: [
        {
          scenario: 'h2o-vs-nginx',
          variant: 'nginx-tcp-nopush',
          against: 'nginx-workers',
          is: 'faster',
          about: 1.32,
        },
      ],
    },
    {
      quote: 'h2o에서도이 구현되면 딱딱 튜닝 한 nginx보다 빨리 될 것입니다.',
      place: '정리',
      text: 'an h2o with the like of these two will be faster than tuned nginx again',
      figures: 'no figures; the h2o of today keeps files open within a pass of its event loop',
      rests: [
        {
          scenario: 'h2o-vs-nginx',
          variant: 'nginx-tcp-nopush',
          against: 'h2o-tuned',
          is: 'slower',
          unpublished: true,
        },
      ],
    },
    {
      quote: '(따로 필요 없어 살 수)',
      place: 'sysctl.conf',
      text: 'the kernel settings may not be needed',
      figures: 'all rows had them: no figures without',
      rests: [
        {
          scenario: 'nginx-kernel-settings',
          variant: 'kernel-settings',
          against: 'defaults',
          is: 'same',
        },
      ],
    },
    {
      quote: '연결 수는 바꿔도 점수는 거의 동일 했다.',
      place: '작업자 프로세스 및 연결 수를 증가',
      text: 'the connections that nginx allows make no difference',
      figures: 'worker_connections of 10240, 1024 and 640: no figures',
      rests: [
        {
          scenario: 'nginx-worker-connections',
          variant: 'connections-1024',
          against: 'connections-10240',
          is: 'same',
        },
        {
          scenario: 'nginx-worker-connections',
          variant: 'connections-640',
          against: 'connections-10240',
          is: 'same',
        },
      ],
    },
    {
      quote:
        'num-threads 는 더 이상 늘려도 wrk 와 CPU를 잡고 버리는 탓인지 성능이 올라가지 않았습니다.',
      place: '스레드 수를 조정',
      text: 'more threads than the generator leaves cores for do not make h2o faster',
      figures: '708,329 requests/s with 16 threads, 582,270 with 36',
      rests: [
        {
          scenario: 'h2o-num-threads',
          variant: 'threads-16',
          against: 'threads-36',
          is: 'not slower',
        },
      ],
    },
  ],
  resolution: 0.01,
  leftOut: [
    {
      quote:
        '이를 사용하면 간단히 응답 헤더와 파일의 내용을 정리해 보내 게되므로 전송 패킷 수를 최소화 할 수 있습니다.',
      why: 'it is what tcp_nopush does, and 004 has a figure for it',
    },
  ],
});
