// The load as a stock k6 script: k6/http, one virtual user per connection, or a rate.
import http from 'k6/http';

const { url, connections, seconds, keepAlive, rate } = JSON.parse(__ENV.LOAD);
const duration = `${seconds}s`;

const closed = { executor: 'constant-vus', vus: connections, duration };
const atRate = { executor: 'constant-arrival-rate', rate, duration, preAllocatedVUs: connections };

export const options = {
  scenarios: {
    load: { ...(rate === undefined ? closed : atRate), gracefulStop: '10s' },
  },
  noConnectionReuse: !keepAlive,
  discardResponseBodies: true,
  insecureSkipTLSVerify: true,
  summaryTrendStats: ['avg', 'med', 'p(99)'],
};

export default function () {
  http.get(url);
}

export function handleSummary({ metrics }) {
  const { count, rate: rps } = metrics.http_reqs.values;
  const latency = metrics.http_req_duration.values;
  const figures = {
    requests: count,
    rps,
    errors: metrics.http_req_failed.values.passes,
    bodyBytes: metrics.data_received.values.count,
    latencyMs: { mean: latency.avg, p50: latency.med, p99: latency['p(99)'] },
  };
  return { stdout: `FIGURES ${JSON.stringify(figures)}\n` };
}
