import { defineArticle } from '../../lib/scenario/index.ts';

const scenario = 'nginx-tuning-under-delay';
const against = 'untuned';

export default defineArticle({
  id: '004',
  title: 'nginx tuning under delay',
  date: '2017-01-14',
  machine: {
    hardware: 'two EC2 t2.micro, 100 ms of delay between them',
    os: 'CentOS 7',
    servers: 'nginx 1.10.2',
  },
  commands: ['ab -c 10000 -n 1000000 -r http://…/', 'ab -n 1 http://…/'],
  scenarios: [
    scenario,
    'nginx-one-request',
    'nginx-errors-under-delay',
    'nginx-tuning-queue-limit',
  ],
  claims: [
    {
      text: 'tcp_nopush helps under 100 ms of delay',
      figures: '2,211 to 2,431 requests/s',
      rests: [{ scenario, variant: 'tcp-nopush', against, is: 'faster' }],
    },
    {
      text: 'with tcp_nopush a request takes fewer packets',
      figures: '11 packets become 9, by two packet dumps',
      rests: [
        {
          scenario: 'nginx-one-request',
          variant: 'tcp-nopush',
          against,
          packetsAtMost: 9 / 11,
        },
      ],
    },
    {
      text: 'accept_mutex_delay has no effect',
      figures: '2,211 to 2,185 requests/s',
      rests: [{ scenario, variant: 'accept-mutex-delay', against, is: 'same' }],
    },
    {
      text: 'access_log off has no effect',
      figures: '2,211 to 2,196 requests/s',
      rests: [{ scenario, variant: 'access-log-off', against, is: 'same' }],
    },
    {
      text: 'the kernel settings have no effect',
      figures: '2,211 to 2,130 requests/s',
      rests: [{ scenario, variant: 'kernel-settings', against, is: 'same' }],
    },
    {
      text: 'the server, tuned, is not the limit',
      figures: 'idle for 84 % of the time at least, by vmstat',
      rests: [{ scenario, variant: 'tcp-nopush', against, idleAtLeast: 0.84 }],
    },
    {
      text: '20,000 connections are no faster than 10,000',
      figures: '19,374 errors in a million instead of 174; no requests/s',
      rests: [
        {
          scenario: 'nginx-tuning-queue-limit',
          variant: 'to-server-limit-20k-nopush',
          against: 'to-server-limit-10k-nopush',
          is: 'not faster',
        },
      ],
    },
  ],
});
