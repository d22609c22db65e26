// Fields that several measurements have.
import { total } from '../../analysis/statistics.ts';
import { delayText } from '../../report/verdict-words.ts';
import type { ErrorCause, LoadResult } from '../../result/load-result.ts';
import type { NetworkResult } from '../../result/network-use.ts';
import type { Comparison } from '../../result/result.ts';
import { fieldsOf } from './fields.ts';

/** Figures of a round, or medians over the rounds. Absent on loopback. */
export const networkFields = fieldsOf<{ network?: NetworkResult | null | undefined }>()({
  packets: {
    packets_to_server_per_request: ({ network }) => network?.packetsPerRequest.toServer,
    packets_to_client_per_request: ({ network }) => network?.packetsPerRequest.toClient,
    retransmits_per_request: ({ network }) => network?.retransmitsPerRequest,
  },
  ratio: {
    // Share of the packets at the link that the queue's limit dropped.
    dropped_to_server_share: ({ network }) => network?.droppedShare.toServer,
    dropped_to_client_share: ({ network }) => network?.droppedShare.toClient,
    server_idle_share: ({ network }) => network?.serverIdleShare,
  },
  ms: {
    // How late packets left the link, in the worse direction.
    lateness_p50_ms: ({ network }) => network?.latenessMs.p50,
    lateness_p99_ms: ({ network }) => network?.latenessMs.p99,
  },
  connections: { listen_overflows: ({ network }) => network?.listenOverflows },
  text: { delay: ({ network }) => network && (delayText(network) || null) },
});

interface Loads {
  phases: readonly Pick<LoadResult, 'errorCauses'>[];
}

/** Failed attempts of all phases; without a phase nothing was counted. */
const errorsBy =
  (cause: ErrorCause) =>
  ({ phases }: Loads): number | null =>
    phases.length === 0 ? null : total(phases, ({ errorCauses }) => errorCauses[cause]);

export const errorCauseFields = fieldsOf<Loads>()({
  errors: {
    errors_address_not_available: errorsBy('addressNotAvailable'),
    errors_refused: errorsBy('refused'),
    errors_reset: errorsBy('reset'),
    errors_timed_out: errorsBy('timedOut'),
    errors_short: errorsBy('short'),
    errors_other: errorsBy('other'),
  },
});

/** The interval of a ratio; undefined after the first round. */
export function intervalOf({
  roundRatios,
  ci95,
}: Pick<Comparison, 'roundRatios' | 'ci95'>): [number, number] | undefined {
  return roundRatios.length > 1 ? ci95 : undefined;
}

export function asShare(percent: number | null | undefined): number | null {
  return percent === null || percent === undefined ? null : percent / 100;
}
