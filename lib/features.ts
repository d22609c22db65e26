// The features, in the order in which the help lists their commands. To take one out, delete its line here, its folder, and its exports in
// lib/index.ts.
import type { Feature } from './cli/feature.ts';
import { calibrate } from './features/calibrate/feature.ts';
import { hosts } from './features/hosts/feature.ts';
import { influxdb } from './features/influxdb/feature.ts';
import { k6Scripts } from './features/k6-scripts/feature.ts';
import { knobs } from './features/knobs/feature.ts';
import { kubernetes } from './features/kubernetes/feature.ts';
import { network } from './features/network/feature.ts';
import { report } from './features/report/feature.ts';
import { search } from './features/search/feature.ts';
import { traffic } from './features/traffic/feature.ts';
import { why } from './features/why/feature.ts';

export const features: readonly Feature[] = [
  knobs,
  k6Scripts,
  kubernetes,
  calibrate,
  report,
  hosts,
  network,
  influxdb,
  search,
  traffic,
  why,
];
