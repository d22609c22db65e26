// Latency of an M/D/c queue by formula: Poisson arrivals, constant service time, c workers.
import { total } from '../../analysis/statistics.ts';
import { uniform } from '../../random.ts';

/** The capacity of all workers together is workers / serviceMs. */
export interface PoissonQueue {
  workers: number;
  serviceMs: number;
  /** Requests/s. */
  rate: number;
}

/** Utilisation: the rate as a share of the capacity, 0 to 1. */
function loadOf({ workers, serviceMs, rate }: PoissonQueue): number {
  return (rate * serviceMs) / 1000 / workers;
}

/** The Poisson probabilities P(n), up to a negligible n. */
function poisson(mean: number): number[] {
  let share = Math.exp(-mean);
  const shares = [share];
  for (let n = 1; n < mean || share > 1e-18; n++) {
    share = (share * mean) / n;
    shares.push(share);
  }
  return shares;
}

/**
 * The stationary distribution of the number of requests in the system, waiting or in service. One service time later, all
 * requests that were in service have left, and only new arrivals have joined (Crommelin, P.O. Elec. Eng. J. 25, 1932). The step
 * is iterated from an empty system until the distribution converges.
 */
function inSystem(queue: PoissonQueue): number[] {
  const { workers } = queue;
  const coming = poisson(loadOf(queue) * workers);
  let shares = [1];
  for (;;) {
    const next = Array<number>(shares.length + coming.length).fill(0);
    for (const [requests, share] of shares.entries()) {
      const left = Math.max(0, requests - workers);
      for (const [came, chance] of coming.entries())
        next[left + came] = (next[left + came] ?? 0) + share * chance;
    }
    while ((next.at(-1) ?? 1) < 1e-15) next.pop();
    const changed = total(
      next.map((share, n) => Math.abs(share - (shares[n] ?? 0))),
      (by) => by,
    );
    shares = next;
    if (changed < 1e-9) return shares;
  }
}

/**
 * Returns the quantile of the latency in ms, from arrival to response, for this share of requests (0 to 1), in the stationary state.
 * With D = serviceMs, c workers and the rate λ, for k = 1 + ⌊x / D⌋: P(wait ≤ x) = Σ Q(kc − 1 − j) · Poisson(j; λ(kD − x)), j from 0 to
 * kc − 1, where Q(m) is the probability that at most m requests wait (Franx, Oper. Res. Lett. 29, 2001; for one worker this equals
 * Erlang's formula of 1909, but without terms of alternating sign).
 * @throws Error if the rate is not below the capacity
 */
export function latencyMs(queue: PoissonQueue, quantile: number): number {
  if (loadOf(queue) >= 1) throw new Error('a queue that grows has no latency of its own');
  const { workers, serviceMs, rate } = queue;
  let sum = 0;
  const atMostInSystem = inSystem(queue).map((share) => (sum += share));
  const atMostWaiting = (count: number): number => atMostInSystem[workers + count] ?? 1;
  const waitsAtMost = (ms: number): number => {
    const services = 1 + Math.floor(ms / serviceMs);
    const most = services * workers - 1;
    const coming = poisson((rate / 1000) * (services * serviceMs - ms));
    return coming
      .slice(0, most + 1)
      .reduce((share, chance, came) => share + chance * atMostWaiting(most - came), 0);
  };
  let [low, high] = [0, serviceMs];
  while (waitsAtMost(high) < quantile) high *= 2;
  if (waitsAtMost(0) >= quantile) return serviceMs;
  while (high - low > 1e-6 * serviceMs) {
    const middle = (low + high) / 2;
    if (waitsAtMost(middle) < quantile) low = middle;
    else high = middle;
  }
  return serviceMs + high;
}

/**
 * Simulates the requests, starting with an idle system. Returns latencies in ms in the order of arrival; they are the same for the same
 * seed.
 */
export function simulated(
  { workers, serviceMs, rate }: PoissonQueue,
  requests: number,
  seed: number,
): number[] {
  const random = uniform(seed);
  const free = Array<number>(workers).fill(0);
  let now = 0;
  return Array.from({ length: requests }, () => {
    now -= (1000 / rate) * Math.log(1 - random());
    // The service time is constant, so workers become free in the order in which they took their requests.
    const done = Math.max(now, free.shift() ?? 0) + serviceMs;
    free.push(done);
    return done - now;
  });
}

const windows = 60;

/**
 * Returns the random error of the quantile for a load of `seconds`: the root mean square in ms. Consecutive requests wait in the same
 * queue, so the error is much larger than for independent requests.
 */
export function chanceMs(queue: PoissonQueue, seconds: number, quantile: number): number {
  const truth = latencyMs(queue, quantile);
  const each = Math.round(queue.rate * seconds);
  const all = simulated(queue, (windows + 1) * each, 1).slice(each);
  const squares = total(
    Array.from({ length: windows }, (_, window) => window),
    (window) => {
      const sorted = all.slice(window * each, (window + 1) * each).sort((a, b) => a - b);
      return ((sorted[Math.floor(quantile * each)] ?? NaN) - truth) ** 2;
    },
  );
  return Math.sqrt(squares / windows);
}
