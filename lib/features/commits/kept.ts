import type { KeptFolder } from '../../cli/feature.ts';

/** Where built commits are kept. */
export const kept = {
  folder: 'commits',
  what: 'built commits',
  lock: 'lock',
} as const satisfies KeptFolder;
