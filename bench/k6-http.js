// The load as a stock k6 script: k6/http, one virtual user per connection.
import http from 'k6/http';

const { url, connections, duration, keepAlive } = JSON.parse(__ENV.LOAD);

export const options = {
  vus: connections,
  duration,
  noConnectionReuse: !keepAlive,
  discardResponseBodies: true,
};

export default function () {
  http.get(url);
}

export function handleSummary({ metrics }) {
  const { count, rate } = metrics.http_reqs.values;
  return {
    stdout: `BENCH ${JSON.stringify({ requests: count, rps: rate, errors: metrics.http_req_failed.values.passes })}\n`,
  };
}
