// Keeps the cores awake for a load that leaves them idle in between.
import { keepCoresAwake } from '../../machine/usage.ts';
import type { Observer } from './observer.ts';

export const wakefulness: Observer = {
  name: 'the sleep of cores',
  begin({ plan, stages }) {
    const isAtRate =
      plan.within !== undefined || stages.some(({ planned }) => planned.load.rate !== undefined);
    // Without a rate, sleeping cores are the server's own property.
    const letSleep = isAtRate ? keepCoresAwake() : () => undefined;
    return {
      end() {
        letSleep();
        return [];
      },
    };
  },
};
