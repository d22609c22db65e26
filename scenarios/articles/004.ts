import { defineArticle } from '../../lib/scenario/index.ts';

const scenario = 'nginx-tuning-under-delay';
const against = 'untuned';

export default defineArticle({
  id: '004',
  title: 'nginx tuning under delay',
  source:
    'nginx〜go〜mongoDBを使ったREST-WebAPIサーバのパフォーマンスチューニング 第2回 nginx基本チューニング(有効なのはtcp_nopushだけ)',
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
      quote: '最終的に、効果がありそうなものは、tcp_nopush on; だけでした。',
      place: '第2回 nginx基本チューニング',
      text: 'tcp_nopush helps under 100 ms of delay',
      figures: '2,211 to 2,431 requests/s',
      condition: 'with a queue of 1,000 packets, which the article does not state',
      rests: [{ scenario, variant: 'tcp-nopush', against, is: 'faster' }],
    },
    {
      quote:
        'tcp_nopush off;で11パケットだったものが、tcpu_nopush on;で9パケットに減っていることが分かります。',
      place: '2.2. tcp_nopush on;',
      text: 'with tcp_nopush a request takes fewer packets',
      figures: '11 packets become 9, by two packet dumps',
      rests: [
        {
          scenario: 'nginx-one-request',
          variant: 'tcp-nopush',
          against,
          packetsAbout: 9 / 11,
        },
      ],
    },
    {
      quote: '実測では効果は認められませんでした。',
      place: '2.1. accept_mutex_delay 100ms;',
      text: 'accept_mutex_delay has no effect',
      figures: '2,211 to 2,185 requests/s',
      rests: [{ scenario, variant: 'accept-mutex-delay', against, is: 'same' }],
    },
    {
      quote: 'offにすることで性能改善がかなり図れると期待しましたが、効果ありませんでした。',
      place: '2.3. access_log off;',
      text: 'access_log off has no effect',
      figures: '2,211 to 2,196 requests/s',
      rests: [{ scenario, variant: 'access-log-off', against, is: 'same' }],
    },
    {
      quote: 'しかし、結果は効果なし、不採用です。',
      place: '2.4. カーネルチューニング',
      text: 'the kernel settings have no effect',
      figures: '2,211 to 2,130 requests/s',
      rests: [{ scenario, variant: 'kernel-settings', against, is: 'same' }],
    },
    {
      quote: 'CPU idleは最小でも84%あり、メモリやディスクにも顕著な逼迫はありませんでした。',
      place: '3. チューニング後の確認',
      text: 'the server, tuned, is not the limit',
      figures: 'idle for 84 % of the time at least, by vmstat',
      rests: [{ scenario, variant: 'tcp-nopush', against, idleAtLeast: 0.84 }],
    },
    {
      quote:
        '同時2万セッションで測定したところ、エラー発生回数が19,374回と大幅増となり、性能は改善しませんでした。',
      place: '3. チューニング後の確認',
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
  leftOut: [
    {
      quote: 'エラー発生比率は0.1%以下であり、無視してよいでしょう。',
      why: 'what may be ignored is no measurement; nginx-errors-under-delay counts the errors',
    },
    {
      quote: '再度測定すると、この事実は確かめられませんでした。',
      why: 'the earlier text that it did not confirm is not among the five',
    },
  ],
});
