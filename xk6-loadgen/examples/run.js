// One server at a fixed rate: k6 fails if p99 is P99_MS or more. TARGET=http://127.0.0.1:8080/ P99_MS=50 k6 run run.js
import loadgen from 'k6/x/loadgen';

export const options = {
  vus: 1,
  iterations: 1,
  thresholds: { 'loadgen_latency_ms{stat:p99,scope:run}': [`value<${__ENV.P99_MS ?? 50}`] },
};

export default function () {
  const result = loadgen.run({
    url: __ENV.TARGET,
    connections: 20,
    rate: 500,
    duration: __ENV.DURATION ?? '10s',
  });
  console.log(
    `${result.rps} responses/s, p99 ${result.latencyMs.p99} ms, ${result.errors.total} errors`,
  );
}
