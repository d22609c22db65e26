// The commands of a checkout: those of the package, and its benchmarks.
import { main as mainOf } from '../lib/cli/main.ts';
import type { Command } from '../lib/feature.ts';

const ofCheckout: Readonly<Record<string, Command>> = {
  bench: {
    help: 'measure the load generator itself',
    run: async (args) => (await import('./bench.ts')).benchCommand(args),
  },
};

export function main(argv: readonly string[]): Promise<number> {
  return mainOf(argv, ofCheckout);
}
