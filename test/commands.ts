// The commands of a checkout: those of the package, its tests and its benchmarks. bin/bakeoff.mjs starts it for the last two.
import { main as mainOf, type Command } from '../lib/cli/main.ts';

const ofCheckout: Readonly<Record<string, Command>> = {
  test: {
    help: "run the project's tests",
    run: async (args) => (await import('./run.ts')).testCommand(args),
  },
  bench: {
    help: 'measure the load generator itself',
    run: async (args) => (await import('../bench/bench.ts')).benchCommand(args),
  },
};

/** As lib/cli/main.ts's. */
export function main(argv: readonly string[]): Promise<number> {
  return mainOf(argv, ofCheckout);
}
