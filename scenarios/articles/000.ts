import { defineArticle } from '../../lib/scenario/index.ts';

export default defineArticle({
  id: '000',
  title: 'h2o vs nginx',
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
      text: 'open_file_cache makes nginx faster',
      figures: '624,639 to 700,324 requests/s',
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
});
