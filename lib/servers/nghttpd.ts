// nghttpd has flags only: a config of ours is a file with one of them a line, and the composed one is its command line.
import { UserError } from '../errors.ts';
import { composedOf, readLayers, type ConfigLayer } from './config-layers.ts';
import { adoptNghttpd } from './own/nghttpd.ts';
import type { ComposedConfig, Place, ServerKind } from './server.ts';

export const nghttpdKind: ServerKind = {
  question: {
    name: 'nghttpd',
    args: ['--version'],
    pattern: /^nghttpd nghttp2\/(\S+)/m,
    oldest: { version: '1.0.0', why: 'speak HTTP/2 as it was finished (RFC 7540)' },
  },
  configFileName: 'nghttpd.conf',
  http2Only: true,
  compose,
  adopt: adoptNghttpd,
  complaint: /nghttpd:|invalid|bad value|failed|could not|in use|error/i,
  complaintLine: /(?!)/,
};

/** One flag with its place of origin. */
interface Flag {
  /** The long form, since a knob may say -m where its base says --max-concurrent-streams. */
  name: string;
  value?: string;
  /** Comment lines about it, `#` included. */
  comments: readonly string[];
  origin: string;
}

/** The short forms of nghttpd 1.52, of which none has changed its meaning since 1.0. */
const longForms: Record<string, string> = {
  a: 'address', D: 'daemon', V: 'verify-client', d: 'htdocs', v: 'verbose', c: 'header-table-size', p: 'push', b: 'padding',
  m: 'max-concurrent-streams', n: 'workers', e: 'error-gzip', w: 'window-bits', W: 'connection-window-bits',
};

async function compose(names: readonly string[], place: Place): Promise<ComposedConfig> {
  if (place.accessLogFile !== undefined) throw new UserError('nghttpd has no access log: count requests at nginx or h2o');
  const layers = await readLayers('nghttpd', names);
  const shipped = composeFlags(layers);
  if (shipped.some(({ name }) => name === 'daemon')) {
    throw new UserError(`nghttpd config ${names.join(' + ')}: leave out --daemon, it would go on when bakeoff has ended`);
  }
  const tls = !shipped.some(({ name }) => name === 'no-tls');
  const machine = `--address=127.0.0.1\n--workers=${place.workers}\n--htdocs=${place.docroot}\n`;
  const flags = composeFlags([...layers, { origin: 'this machine', text: machine }]);
  const certificate = tls ? await place.certificateFile() : undefined;
  const words = [String(place.port), ...(certificate === undefined ? [] : [certificate, certificate])];
  return {
    text: `${composedOf(layers)}${printFlags(flags, layers[0]?.origin ?? '')}# Port, key and certificate.\n${words.join(' ')}\n`,
    tls,
    protocol: tls ? 'h2' : 'h2c',
    args: () => [...flags.map(wordOf), ...words],
  };
}

/** Lays the layers over each other, the first is the base: flags of a knob take the place of all earlier ones of their name. */
export function composeFlags(layers: readonly ConfigLayer[]): Flag[] {
  return layers.map(parse).reduce((base, layer) => {
    const replaced = new Set(layer.map(({ name }) => name));
    return [...base.filter(({ name }) => !replaced.has(name)), ...layer];
  }, []);
}

/** The composed file's text. A line that is not the base's says whose it is. */
function printFlags(flags: readonly Flag[], base: string): string {
  return flags.map((flag) => {
    const comments = flag.comments.map((comment) => `${comment}\n`).join('');
    return `${comments}${wordOf(flag)}${flag.origin === base ? '' : `  # ${flag.origin}`}\n`;
  }).join('');
}

function wordOf({ name, value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name}=${value}`;
}

function parse({ origin, text }: ConfigLayer): Flag[] {
  const flags: Flag[] = [];
  let comments: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const words = line.replace(/(^|\s)#.*/, '').trim();
    if (words !== '') {
      const { short, long, value } = /^(?:-(?<short>\w)|--(?<long>[\w-]+))(?:(?:=|\s*)(?<value>\S.*))?$/.exec(words)?.groups ?? {};
      const name = long ?? longForms[short ?? ''];
      if (name === undefined) throw new UserError(`nghttpd config ${origin}:${index + 1}: "${words}" is not a flag of nghttpd; write one a line, e.g. --max-concurrent-streams=100`);
      flags.push({ name, ...(value === undefined ? {} : { value }), comments, origin });
      comments = [];
    } else if (line.trim() === '') {
      // A blank line parts what is said about the file from what is said about the next flag.
      comments = [];
    } else {
      comments.push(line.trim());
    }
  }
  return flags;
}
