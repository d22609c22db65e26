import type { Feature } from '../../feature.ts';
import { hostFlags, plannedHosts } from './flags.ts';

/** Servers and load on other hosts, over ssh: docs/machines.md. */
export const hosts: Feature = { flags: hostFlags, machines: plannedHosts };
