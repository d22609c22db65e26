// h2o: its YAML as it runs is the scenario's config files, then the lines that depend on the machine.
import { Document, isMap, isScalar, isSeq, stringify, visit, type Pair, type YAMLMap } from 'yaml';
import { UserError } from '../errors.ts';
import { composedOf, readLayers, type ConfigLayer } from './config-files.ts';
import { adoptH2o } from './own/h2o.ts';
import { parseYaml } from './own/yaml.ts';
import type { ComposedConfig, Place, ServerKind } from './server.ts';

export const h2oKind: ServerKind = {
  compose,
  adopt: adoptH2o,
  checkArgs: ['-t'],
  complaint: /^\[[^\]]+:\d+\]|failed|refusing/i,
  complaintLine: /(?:^\[[^\]]+:|line )(\d+)/,
};

async function compose(names: readonly string[], place: Place): Promise<ComposedConfig> {
  const layers = await readLayers('h2o', names);
  const [base, ...knobs] = layers;
  const config = base === undefined ? undefined : parse(base);
  if (config === undefined)
    throw new UserError(
      `h2o config ${base?.origin ?? ''}: is empty; the first one has to have hosts`,
    );
  for (const knob of knobs) mergeLayer(config, knob);
  const { host, owner, listen } = oneAddress(config, names);
  owner.set('listen', listen);
  const tls = isMap(listen) && isMap(listen.get('ssl', true));
  // bakeoff chooses the user and the log, and needs no pid file.
  for (const name of ['pid-file', 'user', 'error-log']) config.delete(name);
  const text = await machineLines(host, owner === config, tls, place);
  mergeLayer(config, { origin: 'this machine', text });
  return {
    text: composedOf(layers) + new Document(config).toString({ lineWidth: 0 }),
    tls,
    protocol: tls ? 'h2' : 'http/1.1',
    args: (configFile) => ['-c', configFile],
  };
}

/** Lays a layer over the config: mappings are merged, any other value replaces the earlier value. Comments name the layer. */
function mergeLayer(config: YAMLMap, layer: ConfigLayer): void {
  const knob = parse(layer);
  if (knob === undefined) return;
  visit(knob, {
    Pair: (_, pair) => {
      if (isScalar(pair.value)) pair.value.comment = ` ${layer.origin}`;
    },
  });
  mergeMap(config, knob);
}

function mergeMap(base: YAMLMap, layer: YAMLMap): void {
  for (const pair of layer.items) {
    const earlier = base.items.findIndex((one) => keyOf(one) === keyOf(pair));
    const value = base.items[earlier]?.value;
    if (isMap(value) && isMap(pair.value)) mergeMap(value, pair.value);
    else if (earlier >= 0) base.items[earlier] = pair;
    else base.items.push(pair);
  }
}

function keyOf({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}

/** Returns undefined for nothing but comments. Throws UserError with file and line for anything but a mapping. */
function parse({ origin, text }: ConfigLayer): YAMLMap | undefined {
  const { contents } = parseYaml(origin, text, 'core');
  if (contents === null) return undefined;
  if (!isMap(contents))
    throw new UserError(`h2o config ${origin}:1: is not a YAML mapping, as h2o's configs are`);
  visit(contents, {
    Pair: (_, { key }) => {
      // Comments above a blank line are about the file or the block.
      if (isScalar(key) && key.commentBefore != null)
        key.commentBefore = key.commentBefore.split('\n\n').at(-1) as string;
    },
  });
  return contents;
}

/** The only host, and the only `listen` with its owner: that host, or the config for all hosts. Others would serve the network. */
function oneAddress(
  config: YAMLMap,
  names: readonly string[],
): { host: string; owner: YAMLMap; listen: unknown } {
  const hosts = config.get('hosts', true);
  const pairs = isMap(hosts) ? hosts.items : [];
  const listens = [config, ...pairs.map(({ value }) => value)].filter(isMap).flatMap((owner) => {
    const listen = owner.get('listen', true);
    const all = isSeq(listen) ? listen.items : listen === undefined ? [] : [listen];
    return all.map((one) => ({ owner, listen: one }));
  });
  const [pair, address] = [pairs[0], listens[0]];
  if (pair !== undefined && address !== undefined && pairs.length === 1 && listens.length === 1)
    return { host: keyOf(pair), ...address };
  throw new UserError(
    `h2o config ${names.join(' + ')}: has ${pairs.length} hosts and ${listens.length} listen entries; keep one of each, bakeoff gives it its address`,
  );
}

/** @param shared whether `listen` is for all hosts */
async function machineLines(
  host: string,
  shared: boolean,
  tls: boolean,
  place: Place,
): Promise<string> {
  const certificate = tls ? await place.certificateFile() : undefined;
  // No server can say whether this machine's certificate was revoked.
  const ssl = {
    'certificate-file': certificate,
    'key-file': certificate,
    'ocsp-update-interval': 0,
  };
  const listen = { listen: { host: place.address, port: place.port, ...(tls ? { ssl } : {}) } };
  return stringify({
    // h2o's own default is a thread for each core of the machine, allowed or not.
    'num-threads': place.workers,
    ...(shared ? listen : {}),
    hosts: { [host]: { ...(shared ? {} : listen), paths: { '/': { 'file.dir': place.docroot } } } },
  });
}
