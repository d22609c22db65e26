// h2o: the YAML that it runs is the scenario's config files, followed by the lines that depend on the machine.
import { UserError } from '../errors.ts';
import { readLayers } from './config-files.ts';
import { adoptH2o, readH2o } from './own/h2o.ts';
import {
  get,
  itemsOf,
  listensIn,
  yamlPairs,
  printYaml,
  readYaml,
  mapOf,
  type MapTree,
} from './own/yaml.ts';
import type { ServerKind } from './kind.ts';
import type { ComposedConfig, Place } from './server.ts';

export const h2oKind: ServerKind = {
  version: { argument: '--version', pattern: /^h2o version (\S+)/m, oldest: '2.2.0' },
  compose,
  adopt: adoptH2o,
  checkArgs: ['-t'],
  complaint: /^\[[^\]]+:\d+\]|failed|refusing/i,
  complaintLine: /(?:^\[[^\]]+:|line )(\d+)/,
  log: { crash: /^received fatal signal \d+/ },
  isConfig: (text) => /^[{ \t]*(["']?)(?:hosts|listen)\1\s*:/m.test(text),
  read: readH2o,
};

/** bakeoff chooses the user and the log, and needs no pid file. */
const leftOut = ['pid-file', 'user', 'error-log'];

async function compose(names: readonly string[], place: Place): Promise<ComposedConfig> {
  const layers = await Promise.all((await readLayers('h2o', names)).map(readYaml));
  const config = layers.reduce(merge);
  const { host, isShared, tls } = oneAddress(config, names);
  const listen: Record<string, unknown> = { host: place.address, port: place.port };
  if (tls) {
    const certificate = await place.certificateFile();
    listen['ssl'] = {
      'certificate-file': certificate,
      'key-file': certificate,
      // No OCSP server knows this machine's certificate.
      'ocsp-update-interval': 0,
    };
  }
  const paths = { '/': { 'file.dir': place.docroot } };
  const where = isShared
    ? { listen, hosts: { [host]: { paths } } }
    : { hosts: { [host]: { listen, paths } } };
  // h2o's default is a thread per core of the machine, allowed or not.
  const machine = mapOf({ 'num-threads': place.workers, ...where });
  const pairs = config.pairs.filter(({ key }) => !leftOut.includes(key));
  return {
    text: printYaml(merge({ ...config, pairs }, machine)),
    tls,
    protocol: tls ? 'h2' : 'http/1.1',
    args: (configFile) => ['-c', configFile],
  };
}

function merge(config: MapTree, layer: MapTree): MapTree {
  const pairs = [...config.pairs];
  for (const pair of layer.pairs) {
    const place = pairs.findIndex(({ key }) => key === pair.key);
    const earlier = pairs[place];
    // A list with one item counts as that item.
    const value = earlier && itemsOf(earlier.value)[0];
    if (earlier === undefined) pairs.push(pair);
    else if (value?.kind === 'map' && pair.value.kind === 'map')
      pairs[place] = { ...earlier, value: merge(value, pair.value) };
    else pairs[place] = pair;
  }
  return { ...config, pairs };
}

/**
 * Returns the only host, whether its `listen` is outside of the hosts, and whether it has TLS. Further hosts or ports would be open to the
 * network.
 */
function oneAddress(config: MapTree, names: readonly string[]) {
  const hosts = yamlPairs(get(config, 'hosts'));
  const shared = listensIn(config);
  const listens = [...shared, ...hosts.flatMap(({ value }) => listensIn(value))];
  const [host, listen] = [hosts[0]?.key, listens[0]];
  if (host !== undefined && listen !== undefined && hosts.length === 1 && listens.length === 1)
    return { host, isShared: shared.length > 0, tls: get(listen, 'ssl') !== undefined };
  throw new UserError(
    `h2o config ${names.join(' + ')}: has ${hosts.length} hosts and ${listens.length} listen entries; keep one of each, bakeoff gives it its address`,
  );
}
