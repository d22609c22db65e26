// Files with flags of nghttpd, one a line.
import { UserError } from '../errors.ts';
import type { ConfigLayer } from './config-layers.ts';

/** One flag with its place of origin. */
export interface Flag {
  /** The long form, since a knob may say -m where its base says --max-concurrent-streams. */
  name: string;
  value?: string;
  /** Comment lines about it, `#` included. */
  comments: readonly string[];
  origin: string;
  /** In its origin. */
  line: number;
}

/** The short forms of nghttpd 1.0 to 1.52. */
const longForms: Record<string, string> = {
  a: 'address',
  D: 'daemon',
  V: 'verify-client',
  d: 'htdocs',
  v: 'verbose',
  c: 'header-table-size',
  p: 'push',
  b: 'padding',
  m: 'max-concurrent-streams',
  n: 'workers',
  e: 'error-gzip',
  w: 'window-bits',
  W: 'connection-window-bits',
};

/** Lays the layers over each other, the first is the base: flags of a knob take the place of all earlier ones of their name. */
export function composeFlags(layers: readonly ConfigLayer[]): Flag[] {
  return layers.map(parse).reduce((base, layer) => {
    const replaced = new Set(layer.map(({ name }) => name));
    return [...base.filter(({ name }) => !replaced.has(name)), ...layer];
  }, []);
}

/** The composed file's text. A line that is not the base's names its file. */
export function printFlags(flags: readonly Flag[], base: string): string {
  return flags
    .map((flag) => {
      const comments = flag.comments.map((comment) => `${comment}\n`).join('');
      return `${comments}${wordOf(flag)}${flag.origin === base ? '' : `  # ${flag.origin}`}\n`;
    })
    .join('');
}

export function wordOf({ name, value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name}=${value}`;
}

function parse({ origin, text }: ConfigLayer): Flag[] {
  const flags: Flag[] = [];
  let comments: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const words = line.replace(/(^|\s)#.*/, '').trim();
    if (words !== '') {
      const { short, long, value } =
        /^(?:-(?<short>\w)|--(?<long>[\w-]+))(?:(?:=|\s*)(?<value>\S.*))?$/.exec(words)?.groups ??
        {};
      const name = long ?? longForms[short ?? ''];
      if (name === undefined)
        throw new UserError(
          `nghttpd config ${origin}:${index + 1}: "${words}" is not a flag of nghttpd; write one a line, e.g. --max-concurrent-streams=100`,
        );
      flags.push({
        name,
        ...(value === undefined ? {} : { value }),
        comments,
        origin,
        line: index + 1,
      });
      comments = [];
    } else if (line.trim() === '') {
      // Comments above a blank line are about the file.
      comments = [];
    } else {
      comments.push(line.trim());
    }
  }
  return flags;
}
