// npm run k6: says where the k6 with k6/x/loadgen is, for scripts of a person's own: $(npx bakeoff k6) run script.ts
import { UserError } from '../errors.ts';
import { underSignals } from '../interrupt.ts';
import { thisMachine } from '../setup/machine.ts';
import { ensureTools } from '../setup/tools.ts';

/** Prints its path, built first if need be. Returns 0; throws UserError, and Interrupted on Ctrl-C. */
export async function k6Command(args: readonly string[]): Promise<number> {
  if (args.length > 0)
    throw new UserError(
      `k6 prints where k6 is and takes no words, not "${args.join(' ')}": $(npx bakeoff k6) ${args.join(' ')}`,
      2,
    );
  const { k6 } = await underSignals('ending the build; again to end it at once', ({ signal }) =>
    ensureTools(['k6'], thisMachine(), signal),
  );
  console.log(k6);
  return 0;
}
