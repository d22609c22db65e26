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
/** min, max, mean, sd and percent within one sd, as h2load prints them; wrk prints no min. */
export interface PublishedDistribution extends Of<typeof distributionFields> {}

/** TCP segments: `data` has a payload, `dataFin` a payload and FIN, `fin` no payload, `ack` neither. */
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
    /** All bytes that the generator read, with headers and without TLS records. */
    receivedBytes: orAbsent(nonNegative),
    /** Bytes as sent, so compressed with HTTP/2. */
    headerBytes: orAbsent(nonNegative),
    /** Share of the headers' size that HPACK saved. */
    headerSavingsPercent: orAbsent(signed),
    /** Packets in both directions, from a packet dump. */
    packetsPerRequest: orAbsent(nonNegative),
    /** Packets per request by direction and kind; kinds without a packet are left out. */
    packets: orAbsent(
      object(each(['toServer', 'toClient'], object(each(packetKinds, orAbsent(nonNegative))))),
    ),
    /** The least unused part of the server's cores, 0 to 1. */
    serverIdleShare: orAbsent(nonNegative),
    /** Kinds of trouble with clients of which the article shows lines of nginx's log. */
    clientErrors: orAbsent(texts),
    /** Whether the article counts its difference as an effect. */
    effect: orAbsent(oneOf(['yes', 'none'])),
    /** h2load's and weighttp's line "requests"; weighttp counts no timeouts. */
    outcomes: orAbsent(
      object({
        ...each(['total', 'started', 'done', 'succeeded', 'failed', 'errored'], count),
        timeout: orAbsent(count),
      }),
    ),
    /** 2xx and 3xx per request, 0 to 1. */
    successRatio: orAbsent(nonNegative),
    /** h2load's "status codes"; classes without a response are left out. */
    responses: orAbsent(object(each(['2xx', '3xx', '4xx', '5xx'], orAbsent(count)))),
    /** The negotiated parameters, such as TLSv1.2, ECDHE-RSA-AES128-GCM-SHA256, P-384. */
    tls: orAbsent(object(each(['version', 'cipher', 'keyExchange'], text))),
    /** Responses per latency bucket. toSeconds null: the last bucket. */
    buckets: orAbsent(
      list(object({ fromSeconds: nonNegative, toSeconds: orNull(nonNegative), count })),
    ),
  };
};
type Figures = Of<ReturnType<typeof figureFields>>;
/** An article's figures for one variant, with units in their names. Figures that it does not print are absent. */
export interface Published extends Figures {
  /** An entry per phase if the article ran several on a running server; the fields above are then those of the first phase. */
  phases?: readonly Figures[];
}

/** @param object `open` for a result, which a newer bakeoff may have written */
export function publishedForm(object: ObjectForm): Form<Published> {
  const fields = figureFields(object);
  return given({ ...fields, phases: orAbsent(list(given(fields, object))) }, object);
}
