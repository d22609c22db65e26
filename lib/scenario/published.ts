// An article's figures for a variant, with units in their names.
import {
  count,
  each,
  nonNegative,
  given,
  list,
  oneOf,
  orAbsent,
  orNull,
  signed,
  text,
  texts,
  type Form,
  type ObjectForm,
  type Of,
} from '../form.ts';

const distributionFields = {
  min: orAbsent(nonNegative),
  ...each(['mean', 'sd', 'max', 'withinSdPercent'], nonNegative),
};
/** As h2load prints it; wrk prints no min. */
export interface PublishedDistribution extends Of<typeof distributionFields> {}

/** TCP segments: `data` has a payload, `dataFin` also FIN, `fin` no payload, `ack` neither. */
export const packetKinds = [
  'syn',
  'synAck',
  'ack',
  'data',
  'dataFin',
  'fin',
  'reset',
  'other',
] as const;

const figureFields = (object: ObjectForm) => {
  const distribution: Form<PublishedDistribution> = given(distributionFields, object);
  return {
    /** Absent if the load sets the rate and the article prints none. */
    rps: orAbsent(nonNegative),
    ...each(
      ['transferBytesPerSecond', 'requests', 'seconds', 'bodyBytes', 'errorsPerMillion'],
      orAbsent(nonNegative),
    ),
    ...each(['latencyMs', 'connectMs', 'firstByteMs', 'perThreadRps'], orAbsent(distribution)),
    /** h2load's "req/s (client)". */
    perConnectionRps: orAbsent(distribution),
    /** Counts headers, but no TLS records. */
    receivedBytes: orAbsent(nonNegative),
    /** HTTP/2's are compressed. */
    headerBytes: orAbsent(nonNegative),
    /** Share of the headers' size that HPACK saved. */
    headerSavingsPercent: orAbsent(signed),
    /** Packets in both directions, from a packet dump. */
    packetsPerRequest: orAbsent(nonNegative),
    packets: orAbsent(
      object(each(['toServer', 'toClient'], object(each(packetKinds, orAbsent(nonNegative))))),
    ),
    /** The least unused part of the server's cores, 0 to 1. */
    serverIdleShare: orAbsent(nonNegative),
    clientErrors: orAbsent(texts),
    /** Whether the article counts it as an effect. */
    effect: orAbsent(oneOf(['yes', 'none'])),
    /** h2load's and weighttp's "requests"; weighttp counts no timeouts. */
    outcomes: orAbsent(
      object({
        ...each(['total', 'started', 'done', 'succeeded', 'failed', 'errored'], count),
        timeout: orAbsent(count),
      }),
    ),
    /** 2xx and 3xx per request, 0 to 1. */
    successRatio: orAbsent(nonNegative),
    responses: orAbsent(object(each(['2xx', '3xx', '4xx', '5xx'], orAbsent(count)))),
    /** Such as TLSv1.2, ECDHE-RSA-AES128-GCM-SHA256, P-384. */
    tls: orAbsent(object(each(['version', 'cipher', 'keyExchange'], text))),
    /** toSeconds null: the last bucket. */
    buckets: orAbsent(
      list(object({ fromSeconds: nonNegative, toSeconds: orNull(nonNegative), count })),
    ),
  };
};
type Figures = Of<ReturnType<typeof figureFields>>;
/** An article's figures for a variant, as far as it prints them. */
export interface Published extends Figures {
  /** If the article ran several phases on a running server: the fields above are the first one's. */
  phases?: readonly Figures[];
}

/** @param object as in networkForm */
export function publishedForm(object: ObjectForm): Form<Published> {
  const fields = figureFields(object);
  return given({ ...fields, phases: orAbsent(list(given(fields, object))) }, object);
}
