// What is not in the database as it was measured.
import { whole } from '../../format.ts';
import type { Templates } from '../../report/finding-words.ts';

/** `reason`: the database's error, or that of reading a record. */
export type StoreFinding =
  | { code: 'not-stored' | 'not-deleted' | 'not-counted' | 'record-unread'; reason: string }
  /** More or fewer are stored than were made; `reason`: why writing them again failed. */
  | {
      code: 'other-requests';
      variant: string;
      round: number;
      stored: number;
      requests: number;
      reason?: string;
    };

const errorOf = ({ reason }: { reason: string }) => reason;

export const storeTemplates: Templates<StoreFinding> = {
  'not-stored': errorOf,
  'not-deleted': errorOf,
  'not-counted': errorOf,
  'record-unread': ({ reason }) => `the record of k6 cannot be read: ${reason}`,
  'other-requests': ({ variant, round, stored, requests, reason }) => {
    const of = `requests of ${variant}, round ${round}`;
    if (stored > requests)
      return `InfluxDB holds ${whole(stored)} ${of}, more than the ${whole(requests)} that were made; the figures in result.json are right, those in InfluxDB are not`;
    const why = reason === undefined ? '' : `: ${reason}`;
    return `InfluxDB lacks ${whole(requests - stored)} of ${whole(requests)} ${of}${why}`;
  },
};
