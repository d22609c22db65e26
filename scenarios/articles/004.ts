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
  commands: ['ab -c 10000 -n 1000000 -r http://…/'],
  scenarios: [scenario, 'nginx-tuning-queue-limit'],
  claims: [
    {
      text: 'tcp_nopush helps under 100 ms of delay',
      figures: '2,211 to 2,431 requests/s, +10 %; 11 packets become 9',
      rests: [{ scenario, variant: 'tcp-nopush', against, is: 'faster' }],
    },
    {
      text: 'accept_mutex_delay has no effect',
      figures: '2,211 to 2,185 requests/s, −1 %',
      rests: [{ scenario, variant: 'accept-mutex-delay', against, is: 'same' }],
    },
    {
      text: 'access_log off has no effect',
      figures: '2,211 to 2,196 requests/s, −1 %',
      rests: [{ scenario, variant: 'access-log-off', against, is: 'same' }],
    },
    {
      text: 'the kernel settings have no effect',
      figures: '2,211 to 2,130 requests/s, −4 %',
      rests: [{ scenario, variant: 'kernel-settings', against, is: 'same' }],
    },
  ],
});
