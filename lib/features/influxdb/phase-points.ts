// The points that bakeoff writes to InfluxDB for each load phase of a run, published beside measured.
import type { PhasePair } from '../../analysis/phases.ts';
import type { StatusClass } from '../../result/load-result.ts';
import type { BucketShare } from '../../result/result.ts';
import type { Published } from '../../scenario/published.ts';
import { fieldsOf, written, type Field, type Unit } from './fields.ts';
import { asShare } from './shared-fields.ts';

interface PhaseRow extends Omit<PhasePair, 'phase'> {
  position: number;
}

/** The parts of a distribution in h2load's table. */
export type DistributionPart = 'min' | 'max' | 'mean' | 'sd' | 'within_sd';

/** The fields of a line of h2load's table, such as connect_ms_mean. */
function distributionFields<Prefix extends string>(
  prefix: Prefix,
  unit: Unit,
  figures: 'latencyMs' | 'connectMs' | 'firstByteMs' | 'perConnectionRps' | 'perThreadRps',
) {
  const fields = (['min', 'max', 'mean', 'sd'] as const).map((part) => [
    `${prefix}_${part}`,
    { unit, of: (load: Published) => load[figures]?.[part] },
  ]);
  const of = (load: Published) => asShare(load[figures]?.withinSdPercent);
  return Object.fromEntries([...fields, [`${prefix}_within_sd`, { unit: 'ratio', of }]]) as Record<
    `${Prefix}_${DistributionPart}`,
    Field<Published>
  >;
}

/** Each field twice: NAME as measured here, and published_NAME. */
function besidePublished<Name extends string>(fields: Record<Name, Field<Published>>) {
  return Object.fromEntries(
    Object.entries<Field<Published>>(fields).flatMap(([name, { unit, of }]) => [
      [name, { unit, of: ({ asPublished }: PhaseRow) => asPublished && of(asPublished) }],
      [`published_${name}`, { unit, of: ({ published }: PhaseRow) => published && of(published) }],
    ]),
  ) as Record<Name | `published_${Name}`, Field<PhaseRow>>;
}

/** A class that is not printed had no responses. */
const answersOf =
  (name: StatusClass) =>
  ({ responses }: Published): number | undefined =>
    responses && (responses[name] ?? 0);

/** A point per load phase of a run: the figures that h2load and wrk print, published beside measured. */
export const benchPhase = written<PhaseRow>()({
  measurement: 'bench_phase',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'protocol'],
  fields: {
    number: { position: ({ position }) => position },
    'requests/s': {
      published_rps: ({ published }) => published?.rps,
      measured_rps: ({ asPublished }) => asPublished?.rps,
    },
    requests: {
      requests: ({ measured }) => measured?.requests,
      unsent: ({ measured }) => measured?.unsent,
    },
    errors: { errors: ({ measured }) => measured?.errors.total },
    ms: {
      p50_ms: ({ measured }) => measured?.latencyMs.p50,
      p99_ms: ({ measured }) => measured?.latencyMs.p99,
      send_delay_p99_ms: ({ measured }) => measured?.sendDelayMs.p99,
    },
  },
  shared: besidePublished({
    ...fieldsOf<Published>()({
      s: { seconds: ({ seconds }) => seconds },
      ratio: {
        success_ratio: ({ successRatio }) => successRatio,
        header_savings: ({ headerSavingsPercent: percent }) => asShare(percent),
      },
      // h2load's line "requests".
      requests: {
        requests_total: ({ outcomes }) => outcomes?.total,
        requests_started: ({ outcomes }) => outcomes?.started,
        requests_done: ({ outcomes }) => outcomes?.done,
        requests_succeeded: ({ outcomes }) => outcomes?.succeeded,
        requests_failed: ({ outcomes }) => outcomes?.failed,
        requests_errored: ({ outcomes }) => outcomes?.errored,
        requests_timeout: ({ outcomes }) => outcomes?.timeout,
      },
      responses: {
        responses_2xx: answersOf('2xx'),
        responses_3xx: answersOf('3xx'),
        responses_4xx: answersOf('4xx'),
        responses_5xx: answersOf('5xx'),
      },
      'bytes/s': { bytes_per_second: ({ transferBytesPerSecond }) => transferBytesPerSecond },
      bytes: {
        total_bytes: ({ receivedBytes }) => receivedBytes,
        header_bytes: ({ headerBytes }) => headerBytes,
        body_bytes: ({ bodyBytes }) => bodyBytes,
      },
      text: { tls: ({ tls }) => tls && `${tls.version} ${tls.cipher} ${tls.keyExchange}` },
    }),
    ...distributionFields('request_ms', 'ms', 'latencyMs'),
    ...distributionFields('connect_ms', 'ms', 'connectMs'),
    ...distributionFields('first_byte_ms', 'ms', 'firstByteMs'),
    ...distributionFields('client_rps', 'requests/s', 'perConnectionRps'),
    ...distributionFields('thread_rps', 'requests/s', 'perThreadRps'),
  }),
});

interface BucketRow {
  position: number;
  bucket: BucketShare;
  published: BucketShare | undefined;
  measured: BucketShare | undefined;
}

/** A point per load phase and latency bucket, in the buckets' order, if the load asks for buckets. */
export const benchBucket = written<BucketRow>()({
  measurement: 'bench_bucket',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'bucket'],
  fields: {
    number: { position: ({ position }) => position },
    ms: {
      from_ms: ({ bucket }) => bucket.fromMs,
      to_ms: ({ bucket }) => bucket.toMs,
    },
    responses: {
      published_count: ({ published }) => published?.count,
      count: ({ measured }) => measured?.count,
    },
    ratio: {
      published_share: ({ published }) => published?.share,
      share: ({ measured }) => measured?.share,
    },
  },
});
