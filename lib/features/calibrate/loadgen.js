// The same load as wrk, ab and h2load send, by loadgen.run. Input: its options as JSON.
import loadgen from 'k6/x/loadgen';

const load = JSON.parse(__ENV.LOAD);

export const options = {
  scenarios: {
    load: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '10m' },
  },
};

export default function () {
  const { requests, seconds, errors, responses, bytes, tls, errorExample } = loadgen.run(load);
  console.log(
    `FIGURES ${JSON.stringify({
      requests,
      rps: requests / seconds,
      errors: errors.total + responses['4xx'] + responses['5xx'],
      bodyBytes: bytes.body,
      ...(errorExample === '' ? {} : { errorExample }),
      ...(tls === null
        ? {}
        : { tls: `${tls.version} ${tls.cipher} ${tls.keyExchange} ${load.protocol}` }),
    })}`,
  );
}
