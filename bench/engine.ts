// The load engine as the bench runs it, beside the generators of lib/features/calibrate/peers.ts.
import { loadgenWith, type Generator } from '../lib/features/calibrate/peers.ts';
import type { CallOptions, LoadOptions } from '../lib/k6/load-plan.ts';
import { instanceArguments } from '../lib/features/kubernetes/generators.ts';

/** Two k6 processes start on one core within this time. */
const startMs = 2000;

/** k6 with the load engine. */
export const loadgen = loadgenWith('loadgen');

/** A few connections: the peer of many. */
export const loadgenOfTen: Generator = {
  ...loadgen,
  name: 'loadgen, 10 at a time',
  command: (url, load) => loadgen.command(url, { ...load, connections: 10 }),
};

/** Excludes the CPU time of the start. */
export const loadgenWithoutStart: Generator = {
  ...loadgen,
  name: 'loadgen, one k6',
  withoutStart: true,
};

/** Two k6 processes share the load and start together. */
export const twoLoadgens: Generator = {
  ...loadgenWithoutStart,
  name: 'loadgen, two k6',
  command(url, load) {
    const { args, env } = loadgen.command(url, load);
    const plan = JSON.parse(env?.['LOAD'] as string) as { options: LoadOptions };
    const options: LoadOptions & CallOptions = {
      ...plan.options,
      segmented: true,
      startAt: Date.now() + startMs,
    };
    const [first = [], ...beside] = [1, 2].map((instance) => [
      ...args,
      ...instanceArguments(instance, 2),
    ]);
    return {
      args: first,
      beside,
      env: { ...env, LOAD: JSON.stringify({ ...plan, options, instances: 2 }) },
    };
  },
};

export const streamingLoadgen: Generator = {
  ...loadgen,
  name: 'loadgen, streaming',
  streaming: true,
};
