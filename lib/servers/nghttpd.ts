// nghttpd has flags only: a config of ours is a file with one of them a line, and the composed one is its command line.
import { UserError } from '../errors.ts';
import { composedOf, readLayers } from './config-layers.ts';
import { composeFlags, printFlags, wordOf } from './nghttpd-flags.ts';
import { adoptNghttpd } from './own/nghttpd.ts';
import type { ComposedConfig, Place, ServerKind } from './server.ts';

export const nghttpdKind: ServerKind = {
  http2Only: true,
  compose,
  adopt: adoptNghttpd,
  complaint: /nghttpd:|invalid|bad value|failed|could not|in use|error/i,
};

async function compose(names: readonly string[], place: Place): Promise<ComposedConfig> {
  const layers = await readLayers('nghttpd', names);
  const shipped = composeFlags(layers);
  if (shipped.some(({ name }) => name === 'daemon')) {
    throw new UserError(
      `nghttpd config ${names.join(' + ')}: leave out --daemon, it would go on when bakeoff has ended`,
    );
  }
  const tls = !shipped.some(({ name }) => name === 'no-tls');
  const machine = `--address=${place.address}\n--workers=${place.workers}\n--htdocs=${place.docroot}\n`;
  const flags = composeFlags([...layers, { origin: 'this machine', text: machine }]);
  const certificate = tls ? await place.certificateFile() : undefined;
  const words = [
    String(place.port),
    ...(certificate === undefined ? [] : [certificate, certificate]),
  ];
  return {
    text: `${composedOf(layers)}${printFlags(flags, layers[0]?.origin ?? '')}# Port, key and certificate.\n${words.join(' ')}\n`,
    tls,
    protocol: tls ? 'h2' : 'h2c',
    args: () => [...flags.map(wordOf), ...words],
  };
}
