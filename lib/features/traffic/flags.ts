import type { Flag } from '../../cli/arguments.ts';

export const trafficFlags = {
  log: {
    group: 'request',
    value: 'access.log',
    namesRequests: true,
    repeated: true,
    help: 'the requests of an access log, by their shares; - is stdin',
  },
  har: {
    group: 'request',
    rare: true,
    value: 'FILE',
    namesRequests: true,
    help: "the requests that a browser's developer tools have saved",
  },
  targets: {
    group: 'request',
    rare: true,
    value: 'FILE',
    namesRequests: true,
    help: 'the targets of vegeta, as text or JSON',
  },
  methods: {
    group: 'request',
    rare: true,
    value: 'all',
    needs: ['log', 'har'],
    help: 'of a log or HAR not only GET and HEAD: the others may change data',
  },
  site: {
    group: 'request',
    rare: true,
    value: 'HOST',
    needs: ['log', 'har'],
    help: 'the host whose requests are taken from a log or HAR (the most frequent)',
  },
  pace: {
    group: 'request',
    rare: true,
    value: 'as-logged|10x',
    needs: ['log'],
    setsRate: true,
    help: "the log's busiest --duration (10s) at its own times, or 10 times as fast (by shares, as fast as it goes)",
  },
  'accept-differences': {
    group: 'request',
    rare: true,
    help: 'more than 5 % of the requests may have another status than the log',
  },
} as const satisfies Record<string, Flag>;
