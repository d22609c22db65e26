// How long each server took to start before the load.
import { present } from '../../present.ts';
import type { Observer } from './observer.ts';

export const startup: Observer = {
  name: 'the start-up of servers',
  begin: ({ stages }) => ({
    end: () => stages.map(({ startupMs }) => present({ startupMs })),
  }),
};
