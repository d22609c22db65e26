// What a run says of the database.
import { counts, whole } from '../../format.ts';
import type { Stored } from '../../feature.ts';
import type { Result } from '../../result/result.ts';

/** Says how many of the run's requests the database holds. */
export function storedIn({ integrity }: Pick<Result, 'integrity'>): Stored {
  if (integrity === null) return { line: 'Not stored in InfluxDB (--store none)' };
  const { requests, stored, backfilled, lost } = integrity;
  const again = backfilled > 0 ? `, ${whole(backfilled)} of them written again` : '';
  const line = `Stored ${whole(stored)} of ${whole(requests)} requests in InfluxDB${again}, ${whole(lost)} lost`;
  return lost === 0 ? { line } : { line, lack: `InfluxDB lacks ${counts(lost, 'request')}` };
}
