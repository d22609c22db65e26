// nghttpd has flags only: its config is a file with a flag on each line.
import path from 'node:path';
import { UserError, wordIn } from '../errors.ts';
import { present, allNames } from '../present.ts';
import type { Overlay } from '../scenario/model.ts';
import { ours, ourLines, readLayers, readText, type Layer } from './config-files.ts';
import { overlayOrigin, type ReadConfig, type View } from './own/changes.ts';
import { chooseListen, type Listen } from './own/redirect.ts';
import type { ServerKind } from './kind.ts';
import type { AdoptPlace, AdoptedConfig, ComposedConfig, Place } from './server.ts';

interface Flag {
  /** The long form, since a knob may write -m for --max-concurrent-streams of its base. */
  name: string;
  value?: string;
  origin: string;
}

/** The short forms of nghttpd 1.0 to 1.52, and their long forms. */
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

/** Expands abbreviations like getopt_long(3): `daem` means `daemon`. No flag that bakeoff changes is a prefix of another. */
function unabbreviated(long: string): string {
  return (
    ['address', 'daemon', 'htdocs', 'no-tls', 'workers'].find(
      (name) => long.length > 1 && name.startsWith(long),
    ) ?? long
  );
}

/** Lays layers over the first. A layer's flags replace all earlier flags of the same names. */
function composeFlags(layers: readonly Layer[]): Flag[] {
  return layers.map(parseFlags).reduce((base, layer) => {
    const replaced = new Set(allNames(layer));
    return [...base.filter(({ name }) => !replaced.has(name)), ...layer];
  }, []);
}

function printFlags(flags: readonly Flag[], args: readonly string[]): string {
  const lines = flags.map((flag) => `${wordOf(flag)}  # ${flag.origin}\n`);
  return `${lines.join('')}# Port, key and certificate.\n${args.join(' ')}\n`;
}

function wordOf({ name, value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name}=${value}`;
}

function parseFlags({ file, text, origin }: Layer): Flag[] {
  return text.split('\n').flatMap((line, index) => {
    const flag = line.replace(/(^|\s)#.*/, '').trim();
    if (flag === '') return [];
    const place = `${file}:${index + 1}`;
    const [, short = '', long, value] =
      /^(?:-(\w)|--([\w-]+))(?:(?:=|\s*)(\S.*))?$/.exec(flag) ?? [];
    const name = long === undefined ? longForms[short] : unabbreviated(long);
    if (name === undefined)
      throw new UserError(
        `nghttpd config ${place}: "${wordIn(flag)}" is not a flag of nghttpd; write one a line, e.g. --max-concurrent-streams=100`,
      );
    if (/\s--[a-z]/.test(value ?? ''))
      throw new UserError(`nghttpd config ${place}: write one flag a line`);
    return [{ name, ...present({ value }), origin: origin ?? place }];
  });
}

export const nghttpdKind: ServerKind = {
  version: { argument: '--version', pattern: /^nghttpd nghttp2\/(\S+)/m, oldest: '1.0.0' },
  compose,
  adopt: adoptNghttpd,
  complaint: /nghttpd:|invalid|bad value|failed|could not|in use|error/i,
  log: { crash: /^terminate called|Assertion .* failed/ },
  isConfig: (text) => /^(?:(?:--?[A-Za-z].*|\d+(?:[ \t]+\S+[ \t]+\S+)?)(?:\n|$))+$/.test(text),
  read: readNghttpd,
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
  const flags = composeFlags([...layers, ourLines(machine)]);
  const certificate = tls ? await place.certificateFile() : '';
  const last = [String(place.port)];
  if (tls) last.push(certificate, certificate);
  return {
    text: printFlags(flags, last),
    tls,
    protocol: tls ? 'h2' : 'h2c',
    args: () => [...flags.map(wordOf), ...last],
  };
}

async function adoptNghttpd(file: string, place: AdoptPlace): Promise<AdoptedConfig> {
  const { flags, listen, port, pair } = parse(file, await readText(file), place.overlays);
  const { tls } = chooseListen(file, [listen], place.listen);
  const folder = path.dirname(file);
  const valueOf = (wanted: string) => flags.find(({ name }) => name === wanted)?.value;
  const address = valueOf('address');
  const shownPort = port ?? '(none there)';
  const was = address === undefined ? shownPort : `${address}:${shownPort}`;
  const redirections = [`port ${was} → ${place.address}:${place.port}`];
  const kept = flags.flatMap((flag): Flag[] => {
    const { name, value } = flag;
    if (name === 'daemon' || name === 'address') return [];
    const isPath = pathFlags.has(name) && value !== undefined;
    return [isPath ? { ...flag, value: path.resolve(folder, value) } : flag];
  });
  if (flags.some(({ name }) => name === 'daemon'))
    redirections.push('--daemon: left out, so that its end is seen');
  if (valueOf('htdocs') === undefined) {
    kept.push({ name: 'htdocs', value: folder, origin: ours });
    redirections.push(`htdocs (where it is started) → ${folder}`);
  }
  kept.push({ name: 'address', value: place.address, origin: ours });
  const last = [String(place.port)];
  if (tls && pair !== undefined) last.push(...pair.map((name) => path.resolve(folder, name)));
  else if (tls) {
    const certificate = await place.certificateFile();
    last.push(certificate, certificate);
    redirections.push('key and certificate (none there) → those of this machine');
  }
  return {
    text: `# ${file} as it runs here.\n${printFlags(kept, last)}`,
    tls,
    protocol: tls ? 'h2' : 'h2c',
    hosts: [],
    upstreams: [],
    runsCode: false,
    workers: workersOf(flags),
    redirections,
    args: () => [...kept.map(wordOf), ...last],
  };
}

/** Flags whose paths are relative to the config's folder. */
const pathFlags = new Set(['htdocs', 'dh-param-file', 'mime-types-file']);

const portLine = /^[ \t]*(\d+)(?:[ \t]+(\S+)[ \t]+(\S+))?[ \t]*(?:#.*)?\r?$/m;

/** `overlays` replace flags of the same names. Without a port, nghttpd listens on the protocol's default port. */
function parse(file: string, text: string, overlays: readonly Overlay[] = []) {
  const [, port, key, certificate] = portLine.exec(text) ?? [];
  const flags = composeFlags([
    { file, text: text.replace(portLine, '') },
    ...overlays.map(({ lines }) => ({ file: overlayOrigin, origin: overlayOrigin, text: lines })),
  ]);
  const tls = !flags.some(({ name }) => name === 'no-tls');
  const at = Number(port ?? (tls ? 443 : 80));
  const listen: Listen = { port: at, tls, http2: true, http2Only: true, hosts: [] };
  const pair = key === undefined || certificate === undefined ? undefined : [key, certificate];
  return { flags, listen, port, pair };
}

async function readNghttpd(file: string): Promise<ReadConfig> {
  const text = await readText(file);
  const { flags, listen } = parse(file, text);
  const settingOf = (flag: Flag) => ({
    block: file,
    name: flag.name,
    text: wordOf(flag),
    place: flag.origin,
  });
  const viewOf = (all: readonly Flag[]): View => ({
    workers: workersOf(all),
    settings: all.map(settingOf),
  });
  return {
    ...viewOf(flags),
    listens: [listen],
    facts: () => ({ proxied: false, logs: false, logLine: false }),
    overlay: (overlays) => viewOf(parse(file, text, overlays).flags),
  };
}

function workersOf(flags: readonly Flag[]): number {
  const workers = flags.findLast(({ name }) => name === 'workers');
  const count = Number(workers?.value ?? 1);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new UserError(
      `${workers?.origin}: ${wordIn(workers?.value ?? 'nothing')} is not a number of workers`,
    );
  return count;
}
