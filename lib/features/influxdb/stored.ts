// What a run says of the database.
import { counts, whole } from '../../format.ts';
import type { Stored } from '../../report/contribution.ts';
import type { PointIntegrity, Result } from '../../result/result.ts';

/** Says how much of the run the database holds. It says "0 lost" only if the points of all measurements were counted. */
export function storedIn({
  integrity,
  environment,
}: Pick<Result, 'integrity' | 'environment'>): Stored {
  if (integrity === null && environment.versions['influxdb'] !== undefined)
    return { line: 'Not counted in InfluxDB: the run was ended' };
  if (integrity === null) return { line: 'Not stored in InfluxDB (--store none)' };
  const { requests, stored, backfilled, lost, points } = integrity;
  const parts = [
    `Stored ${whole(stored)} of ${whole(requests)} requests${pointsText(points)} in InfluxDB${failedText(points)}`,
  ];
  const again = countsText(backfilled, points?.backfilled);
  if (again !== '') parts.push(`${again} written again`);
  const lack = countsText(lost, points?.lost);
  const more = countsText(stored - requests);
  if (lack !== '') parts.push(`${lack} lost${causeText(points)}`);
  else if (more !== '') parts.push(`${more} too many`);
  else if (points !== undefined) parts.push('0 lost');
  const line = parts.join(', ');
  if (lack !== '') return { line, lack: `InfluxDB lacks ${lack}` };
  // Another machine may have begun a run of the same name in the same second.
  if (more === '') return { line };
  return { line, lack: `InfluxDB has ${more} that this run did not make` };
}

type Points = PointIntegrity | undefined;

function pointsText(points: Points): string {
  if (points === undefined) return '';
  return ` and ${whole(points.stored)} of ${whole(points.written)} points`;
}

function failedText({ failedWrites = 0 }: Partial<PointIntegrity> = {}): string {
  if (failedWrites === 0) return '';
  return ` (k6 failed to write ${counts(failedWrites, 'time')})`;
}

/** "10 requests and 134 points"; '' if both are 0. */
function countsText(requests: number, points = 0): string {
  const texts: string[] = [];
  if (requests > 0) texts.push(counts(requests, 'request'));
  if (points > 0) texts.push(counts(points, 'point'));
  return texts.join(' and ');
}

const mostNames = 3;

/** The measurements that lack points, and why. */
function causeText({ lacking = [], reason }: Partial<PointIntegrity> = {}): string {
  const shown = lacking.length > mostNames ? `${lacking.length} measurements` : lacking.join(', ');
  return `${shown === '' ? '' : ` (${shown})`}${reason === undefined ? '' : `: ${reason}`}`;
}
