import { join } from 'node:path';
import type { KeptFolder } from '../../cli/feature.ts';
import { sourcesFolder } from '../../setup/paths.ts';

/** Where built commits are kept. */
export const kept = {
  folder: join(sourcesFolder, 'commits'),
  what: 'built commits',
  lock: 'lock',
} as const satisfies KeptFolder;
