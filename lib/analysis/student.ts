// Student's t distribution for whole degrees of freedom, as the interval of a mean over rounds needs it.

/**
 * P(|T| < t) with t = √df · tan θ, for 0 ≤ θ < π/2: the finite series of Abramowitz & Stegun, Handbook of Mathematical
 * Functions (1964), 26.7.3 (odd df) and 26.7.4 (even df). Exact but for rounding.
 */
function centralProbability(theta: number, df: number): number {
  const sin = Math.sin(theta);
  const cosSquared = Math.cos(theta) ** 2;
  const odd = df % 2 === 1;
  let term = odd ? Math.cos(theta) : 1;
  let sum = 0;
  for (let k = odd ? 1 : 0; k <= df - 2; k += 2) {
    sum += term;
    term *= ((k + 1) / (k + 2)) * cosSquared;
  }
  return odd ? (2 / Math.PI) * (theta + sin * sum) : sin * sum;
}

/**
 * The t that a Student-t variable stays below with probability p.
 * @param p 0 < p < 1
 * @param df degrees of freedom, a whole number ≥ 1
 * @throws RangeError outside of these
 */
export function studentQuantile(p: number, df: number): number {
  if (!(p > 0 && p < 1)) throw new RangeError(`p must be between 0 and 1, is ${p}`);
  if (!Number.isInteger(df) || df < 1) throw new RangeError(`df must be a whole number from 1 on, is ${df}`);
  if (p < 0.5) return -studentQuantile(1 - p, df);
  const key = `${p} ${df}`;
  const known = quantiles.get(key) ?? quantileFrom(p, df);
  quantiles.set(key, known);
  return known;
}

/** A run asks for the same few again and again. */
const quantiles = new Map<string, number>();

/** @param p from 0.5 on */
function quantileFrom(p: number, df: number): number {
  const wanted = 2 * p - 1;
  let low = 0;
  let high = Math.PI / 2;
  // Bisection over θ: the probability rises with it, and 60 halvings are below the precision of a double.
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (centralProbability(middle, df) < wanted) low = middle;
    else high = middle;
  }
  return Math.sqrt(df) * Math.tan((low + high) / 2);
}
