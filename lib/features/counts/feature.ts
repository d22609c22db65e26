import type { Feature } from '../../cli/feature.ts';
import { countsGivenWithout, readConditions } from './conditions.ts';
import { countsReport } from './report.ts';
import { counting } from './instead.ts';

/** Flags of runs that measure times, and where nothing is counted. */
const withTimes =
  'rounds precision quick max-time duration warmup arrivals metric same-within within rates why no-why no-look influx server-host'.split(
    ' ',
  );

/** Counts per request instead of times: system calls, bytes, segments, context switches and page faults (docs/ci.md). */
export const counts: Feature = {
  run: {
    sideFlags: {
      counts: {
        group: 'verdict',
        without: withTimes,
        help: "no times, but syscalls, bytes, segments, switches and faults per request, for --fail-if 'syscalls>0'",
      },
    },
    instead: ({ flags, read }, parts) => {
      if (!flags.has('counts')) {
        read('fail-if', countsGivenWithout);
        return undefined;
      }
      return counting(read('fail-if', readConditions), parts);
    },
  },
  report: countsReport,
};
