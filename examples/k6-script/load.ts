// A plain k6 script: two load phases against a server that runs already, with thresholds that decide k6's exit code.
import type { Options } from 'k6/options';
import loadgen from 'k6/x/loadgen';

const url = __ENV.TARGET ?? 'http://127.0.0.1:8080/';
const duration = __ENV.DURATION ?? '10s';

export const options: Options = {
  vus: 1,
  iterations: 1,
  thresholds: {
    // `scope:run` is the phase as a whole, as its last sample has it; the tag `phase` is set below.
    'loadgen_latency_ms{phase:steady,stat:p99,scope:run}': ['value<50'],
    'loadgen_success_ratio{phase:steady}': ['value==1'],
    'loadgen_success_ratio{phase:full}': ['value>0.99'],
  },
};

export default function () {
  // The open model: 500 requests/s, whether or not earlier ones are answered.
  const steady = loadgen.run({
    url,
    duration,
    connections: 20,
    rate: 500,
    tags: { phase: 'steady' },
  });
  // The closed model: 50 connections, each of which asks as soon as it has its answer.
  const full = loadgen.run({
    url,
    duration,
    connections: 50,
    warmup: '500ms',
    tags: { phase: 'full' },
  });

  for (const [phase, { rps, latencyMs, errors }] of Object.entries({ steady, full })) {
    console.log(
      `${phase}: ${rps.toFixed(0)} requests/s, p50 ${latencyMs.p50} ms, p99 ${latencyMs.p99} ms, ${errors.total} errors`,
    );
  }
}
