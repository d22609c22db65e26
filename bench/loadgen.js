// One load phase, as wrk and ab do it: the options of loadgen.run come in as JSON.
import loadgen from 'k6/x/loadgen';

export const options = { scenarios: { bench: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '10m' } } };

export default function () {
  const { requests, rps, responses, errors } = loadgen.run(JSON.parse(__ENV.LOAD));
  console.log(`BENCH ${JSON.stringify({ requests, rps, errors: errors.total + responses['4xx'] + responses['5xx'] })}`);
}
