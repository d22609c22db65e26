// What each request cost: the kernel's counters of the server, and the traffic on the wire.
import { total } from '../../analysis/statistics.ts';
import { byName } from '../../present.ts';
import { wireNames, type LoadResult } from '../../result/load-result.ts';
import { counterNames, type Phase } from '../../result/result.ts';
import { isStarted } from '../../servers/index.ts';
import { countersOf, type Counters } from '../../servers/usage.ts';
import type { Observer } from './observer.ts';

export const perRequest: Observer = {
  name: 'the use per request',
  begin({ stages }) {
    const countersNow = () =>
      stages.map(({ server }) => (isStarted(server) ? countersOf(server.processes()) : undefined));
    const countersBefore = countersNow();
    return {
      end(outcomes) {
        if (outcomes === undefined) return [];
        return countersNow().map((now, side) => {
          const before = countersBefore[side];
          const results = outcomes.flatMap((outcome) => outcome.results[side] ?? []);
          return { perRequest: perRequestFigures(results, before && now && { before, now }) };
        });
      },
    };
  },
};

/** The figures of a request on the wire and, with counters, in the server. */
export function perRequestFigures(
  results: readonly LoadResult[],
  counters?: { before: Counters; now: Counters },
): NonNullable<Phase['perRequest']> {
  const requests = total(results, (result) => result.requests + result.warmupRequests);
  const each = (count: number): number =>
    Number((Math.max(0, count) / Math.max(1, requests)).toPrecision(4));
  const onWire = byName(wireNames, (name) => each(total(results, ({ wire }) => wire?.[name] ?? 0)));
  if (counters === undefined) return onWire;
  const { before, now } = counters;
  return { ...byName(counterNames, (name) => each(now[name] - before[name])), ...onWire };
}
