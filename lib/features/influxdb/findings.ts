// What is not in the database as it was measured.
import { whole } from '../../format.ts';
import type { Templates } from '../../report/finding-words.ts';

/** `reason`: the database's error, or that of reading a record. */
export type StoreFinding =
  | { code: 'not-stored' | 'not-deleted' | 'not-counted' | 'record-unread'; reason: string }
  | {
      code: 'requests-lacking';
      variant: string;
      round: number;
      lacking: number;
      requests: number;
      /** Why writing them failed. */
      reason?: string;
    }
  | {
      code: 'requests-surplus';
      variant: string;
      round: number;
      stored: number;
      requests: number;
    };

const errorOf = ({ reason }: { reason: string }) => reason;

export const storeTemplates: Templates<StoreFinding> = {
  'not-stored': errorOf,
  'not-deleted': errorOf,
  'not-counted': errorOf,
  'record-unread': ({ reason }) => `the record of k6 cannot be read: ${reason}`,
  'requests-lacking': ({ variant, round, lacking, requests, reason }) =>
    `InfluxDB lacks ${whole(lacking)} of ${whole(requests)} requests of ${variant}, round ${round}${reason === undefined ? '' : `: ${reason}`}`,
  'requests-surplus': ({ variant, round, stored, requests }) =>
    `InfluxDB holds ${whole(stored)} requests of ${variant}, round ${round}, more than the ${whole(requests)} that were made; the figures in result.json are right, those in InfluxDB are not`,
};
