// Keeps the cores awake for a load that leaves them idle in between.
import { keepCoresAwake } from '../../machine/usage.ts';
import { isAtRate } from '../../scenario/load.ts';
import type { Observer } from './observer.ts';

export const wakefulness: Observer = {
  name: 'the sleep of cores',
  begin({ stages }) {
    // Without a rate, sleeping cores are the server's own property.
    const letSleep = stages.some(({ planned }) => isAtRate(planned.load))
      ? keepCoresAwake()
      : () => undefined;
    return {
      end() {
        letSleep();
        return [];
      },
    };
  },
};
