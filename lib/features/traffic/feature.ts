import type { Feature } from '../../feature.ts';
import { trafficFlags } from './flags.ts';

/** Requests that were recorded: access logs, a browser's HAR, targets of vegeta (docs/traffic.md). */
export const traffic: Feature = {
  requestFlags: trafficFlags,
  requests: async (words, sides) => (await import('./asked.ts')).recordedRequests(words, sides),
};
