// Latency of a queue by arithmetic: requests of a Poisson process that each take one of some workers for the same time (M/D/c).
import { total } from '../../lib/analysis/statistics.ts';
import { uniform } from '../../test/fixtures/random.ts';

/** Requests/s of all workers together are workers / serviceMs. */
export interface PoissonQueue {
  workers: number;
  serviceMs: number;
  /** Requests/s. */
  rate: number;
}

/** Share of the capacity, 0 to 1, that the rate is. */
function loadOf({ workers, serviceMs, rate }: PoissonQueue): number {
  return (rate * serviceMs) / 1000 / workers;
}

/** P(n) of Poisson's distribution, up to where it no longer matters. */
function poisson(mean: number): number[] {
  const shares = [Math.exp(-mean)];
  for (let n = 1; n < mean || (shares[n - 1] as number) > 1e-18; n++)
    shares.push(((shares[n - 1] as number) * mean) / n);
  return shares;
}

/**
 * Shares of the time in which so many requests are in the system, waiting or with a worker. After a service time, those that
 * had a worker have left, and only what came meanwhile is new (Crommelin, P.O. Elec. Eng. J. 25, 1932): that step, from an empty
 * system until nothing changes.
 */
function inSystem(queue: PoissonQueue): number[] {
  const { workers } = queue;
  const coming = poisson(loadOf(queue) * workers);
  let shares = [1];
  for (;;) {
    const next = Array<number>(shares.length + coming.length).fill(0);
    for (const [here, share] of shares.entries()) {
      const left = Math.max(0, here - workers);
      for (const [came, chance] of coming.entries())
        next[left + came] = (next[left + came] as number) + share * chance;
    }
    while ((next.at(-1) as number) < 1e-15) next.pop();
    const changed = total(
      next.map((share, n) => Math.abs(share - (shares[n] ?? 0))),
      (by) => by,
    );
    shares = next;
    if (changed < 1e-9) return shares;
  }
}

/**
 * Latency in ms, from a request's arrival to its answer, that this share of requests (0 to 1) keeps, when the queue has been under
 * load for long. For k = 1 + ⌊x / D⌋ P(wait ≤ x) = Σ Q(kc − 1 − j) · Poisson(j; λ(kD − x)), j from 0 to kc − 1, with Q(m) the
 * chance that at most m requests wait (Franx, Oper. Res. Lett. 29, 2001; for one worker it is Erlang's formula of 1909, without
 * its terms of both signs). @throws Error where the rate is not below the capacity
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

/** Latencies in ms of so many requests in the order in which they come, the first to an idle system. The same ones for a seed. */
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
    // All requests take equally long, so the workers are free in the order in which they took the last ones.
    const done = Math.max(now, free.shift() as number) + serviceMs;
    free.push(done);
    return done - now;
  });
}

const windows = 60;

/**
 * By how many ms a load of so many seconds is off the quantile by chance: the root of the mean square. Neighbours wait for the
 * same queue, so this is far more than for as many independent requests.
 */
export function chanceMs(queue: PoissonQueue, seconds: number, quantile: number): number {
  const truth = latencyMs(queue, quantile);
  const each = Math.round(queue.rate * seconds);
  const all = simulated(queue, (windows + 1) * each, 1).slice(each);
  const squares = total(
    Array.from({ length: windows }, (_, window) => window),
    (window) => {
      const sorted = all.slice(window * each, (window + 1) * each).sort((a, b) => a - b);
      return ((sorted[Math.floor(quantile * each)] as number) - truth) ** 2;
    },
  );
  return Math.sqrt(squares / windows);
}
