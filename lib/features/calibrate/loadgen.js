// The same load as wrk, ab and h2load send, by loadgen.run. Input: JSON with the options and the number of runs.
import loadgen from 'k6/x/loadgen';

const load = JSON.parse(__ENV.LOAD);

// One VU per k6 process.
export const options = {
  scenarios: {
    bench: {
      executor: 'per-vu-iterations',
      vus: load.instances ?? 1,
      iterations: 1,
      maxDuration: '10m',
    },
  },
};

export default function () {
  const { options, runs } = load;
  const results = Array.from({ length: runs }, () => loadgen.run(options));
  const total = (of) => results.reduce((sum, result) => sum + of(result), 0);
  const [{ tls, errorExample, latencyMs, sendDelayMs }] = results;
  console.log(
    `BENCH ${JSON.stringify({
      requests: total(({ requests }) => requests),
      rps: total(({ requests }) => requests) / total(({ seconds }) => seconds),
      errors: total(({ errors, responses }) => errors.total + responses['4xx'] + responses['5xx']),
      bodyBytes: total(({ bytes }) => bytes.body),
      cpuSeconds: total(({ cpuSeconds }) => cpuSeconds),
      minConnectionRps: Math.min(...results.map(({ perConnectionRps }) => perConnectionRps.min)),
      ...(options.rate === undefined
        ? {}
        : {
            atRate: {
              sendDelayP99Ms: sendDelayMs.p99,
              latencyP50Ms: latencyMs.p50,
              latencyP99Ms: latencyMs.p99,
            },
          }),
      ...(errorExample === '' ? {} : { errorExample }),
      ...(tls === null
        ? {}
        : { tls: `${tls.version} ${tls.cipher} ${tls.keyExchange} ${options.protocol}` }),
    })}`,
  );
}
