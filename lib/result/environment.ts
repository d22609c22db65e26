// Where a run was made: machine, hosts, cluster, versions.
import * as v from 'valibot';
import {
  count,
  each,
  nonNegative,
  instant,
  list,
  open,
  optional,
  orNull,
  text,
  integer,
} from '../form.ts';

const machineFields = {
  ...each(['cpuModel', 'kernel', 'os', 'bootId'], text),
  cores: count,
  memoryBytes: count,
  governor: orNull(text),
  bootedAt: instant,
};
const roundTripMs = open(each(['p50', 'p99'], nonNegative));
/** `roundTripMs` of one byte on a TCP connection; `bytesPerSecond` through it, both ways. */
const serverHost = open({
  ...machineFields,
  name: text,
  address: text,
  roundTripMs,
  bytesPerSecond: nonNegative,
});
export type ServerHostFacts = v.InferOutput<typeof serverHost>;
export type LinkFigures = Pick<ServerHostFacts, 'roundTripMs' | 'bytesPerSecond'>;

const cluster = open({
  /** `name` is kubectl's context; the server's node and its system in round 1 are '' if unknown. */
  ...each(['name', 'serverNode', 'serverSystem'], text),
  /** Generators of each load, each on a node of its own, and the cores of each. */
  ...each(['generators', 'generatorCores'], count),
});
export type ClusterFacts = v.InferOutput<typeof cluster>;

const cpus = list(integer(0, 9999));
export const environmentForm = open({
  ...machineFields,
  bakeoff: text,
  loadAverage: v.strictTuple(
    [nonNegative, nonNegative, nonNegative],
    'has to be a list of three numbers',
  ),
  serverCpus: cpus,
  generatorCpus: cpus,
  /** CPU seconds per second that a quota allows. */
  cpuQuota: optional(nonNegative),
  versions: v.record(text, text, 'has to be an object'),
  /** The host of the servers, if not this machine. */
  serverHost: optional(serverHost),
  /** The hosts of the generators, if not this machine: no run of this bakeoff has them. */
  generatorHosts: optional(list(open({ name: text, cores: count }))),
  /** Where both are, if in a cluster: `serverCpus` then are the cores of each server. */
  cluster: optional(cluster),
});
export type Environment = v.InferOutput<typeof environmentForm>;
