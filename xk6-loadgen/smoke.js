// The module works: a request to a port where nothing listens is counted as refused. Needs no server; `xk6 lint` runs it.
import loadgen from 'k6/x/loadgen';

export function setup() {
  const { requests, errorCauses } = loadgen.run({ url: 'http://127.0.0.1:1/', requests: 1 });
  if (requests !== 1 || errorCauses.refused !== 1)
    throw new Error(`${requests} requests, ${JSON.stringify(errorCauses)}`);
}

export default function () {}
