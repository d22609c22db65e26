// The files of composed configs and user configs, and the line to which a server's error refers.
import { readdir, readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  addressIn,
  prefixed,
  unknownWord,
  UserError,
  withShortQuotes,
  wordIn,
  messageOf,
} from '../errors.ts';
import { missing, namesIn, namesOpenToAll, readBytes, requirePlainPath } from '../files.ts';
import type { ConfiguredServer } from '../scenario/model.ts';
import type { ServerName } from '../setup/servers.ts';
import type { ServerKind } from './kind.ts';
import type { Build } from './server.ts';
import { toolVariable } from '../setup/tools.ts';

export const configsFolder = fileURLToPath(new URL('../../server-configs', import.meta.url));

/** The text of a config. `origin` marks its lines when the config is printed; absent: FILE:LINE. */
export interface Layer {
  file: string;
  text: string;
  origin?: string;
}

/** The limit for a config with its includes. It is high because lists of addresses are long. */
export const mostConfigBytes = 16e6;

/**
 * Reads files of `server-configs/<of>/`, named without `.conf`, or at absolute paths. Throws UserError if one cannot be read.
 * @param of `sysctl` for settings of the kernel
 */
export function readLayers(of: ServerName | 'sysctl', names: readonly string[]): Promise<Layer[]> {
  return Promise.all(names.map(read));

  async function read(name: string): Promise<Layer> {
    if (path.isAbsolute(name))
      return { file: name, text: await readText(name, undefined, `${of} config`) };
    if (name.includes('/'))
      throw new UserError(`${of} config ${name}: give a config of your own as an absolute path`);
    const folder = path.join(configsFolder, of);
    const shipped = (await readdir(folder)).map((file) => path.basename(file, '.conf'));
    if (!shipped.includes(name)) throw unknownWord(`${of} config`, name, shipped);
    const origin = `${name}.conf`;
    const file = path.join(folder, origin);
    return { file, origin, text: await readFile(file, 'utf8') };
  }
}

/** `from`: FILE:LINE; `name`: the included file, as written. */
export interface Inclusion {
  from: string;
  name: string;
}

/** Returns whether files that a config names must be readable for every user: root starts servers as a user without rights. */
function forAll(): boolean {
  return process.geteuid?.() === 0;
}

/** Kept, so that all rounds of a run measure the configs as they were at its start. */
const known = new Map<string, string>();

/**
 * Returns the text of a config, or of a file that `by` includes, as it was when first read. Throws UserError if it cannot be read or is not
 * text.
 */
export async function readText(file: string, by?: Inclusion, kind = 'config'): Promise<string> {
  // A person may name a config that is closed to other users; a config may not include one.
  const asked = `${by === undefined ? 'named' : 'included'} ${file}`;
  const before = known.get(asked);
  if (before !== undefined) return before;
  requirePlainPath(file, by === undefined ? `cannot use the ${kind}` : `${by.from}: includes`);
  // nginx reads /dev/null as an empty file.
  if (file === '/dev/null') return '';
  const fail = (problem: string) => {
    const what = by === undefined ? `the ${kind} ${file}` : `${file}, which ${by.from} includes`;
    throw new UserError(`cannot read ${what}: ${problem}`);
  };
  const beside =
    by === undefined || by.name.startsWith('/')
      ? ''
      : ' (relative names begin at the folder of the config: keep a copy beside the original)';
  let bytes: Buffer;
  try {
    bytes = readBytes(file, mostConfigBytes, { forAll: by !== undefined && forAll() });
  } catch (error) {
    const problem = messageOf(error);
    return fail(problem === missing ? problem + beside : problem);
  }
  if (bytes.includes(0)) fail('it is not text');
  const text = bytes.toString('utf8');
  known.set(asked, text);
  return text;
}

const places = new Map<string, string>();

/** Returns a config's path without links, as first found, so that a config which is removed meanwhile is still known. */
export async function realPathOf(file: string): Promise<string> {
  const place = places.get(file) ?? (await realpath(file).catch(() => file));
  places.set(file, place);
  return place;
}

/**
 * Reads an included file.
 * @param open files that include each other, from the config on
 * @throws UserError if it cannot be read, or is one of `open`
 */
export async function readIncluded(file: string, by: Inclusion, open: readonly string[]) {
  const text = await readText(file, by);
  const real = await realPathOf(file);
  if (open.includes(real))
    throw new UserError(`${by.from}: includes ${file}, which includes this file again`);
  return { text, open: [...open, real] };
}

/** The sorted names in a folder that an include lists. Throws UserError if the server's user may not list it. */
export function namesToInclude(folder: string, { from, name }: Inclusion): string[] {
  if (!forAll()) return namesIn(folder).sort();
  return prefixed(
    () => namesOpenToAll(folder),
    `${from}: includes ${name}, but cannot list ${folder}: `,
    1,
  );
}

/** Returns whether the server may read a file that its config names. */
export function isThereForServer(file: string): boolean {
  try {
    readBytes(file, mostConfigBytes, { forAll: forAll() });
    return true;
  } catch {
    return false;
  }
}

/** The origin of bakeoff's own lines. */
export const ours = 'this machine';

export const ourLines = (text: string): Required<Layer> => ({ file: ours, origin: ours, text });

/** Returns the origin of the first value in these printed lines. It is a comment on the value's last line. */
function firstOrigin(lines: readonly string[]): string | undefined {
  return / {2}# (.+)$/m.exec(lines.join('\n'))?.[1];
}

/** A server's message may end with a colon and text from the config. Shortens that text to its first word. */
function withShortEnd(message: string, config: string): string {
  const lettersOf = (text: string) => text.replace(/[^\p{L}\p{N}]/gu, '');
  const letters = lettersOf(config);
  const ends = [...message.slice(0, mostSaid).matchAll(/(?<=: ?)\S/g)].map(({ index }) => index);
  const end = ends.find((at) => letters.includes(lettersOf(message.slice(at, mostSaid))));
  return end === undefined ? message : message.slice(0, end) + addressIn(message.slice(end));
}

/** nginx cuts its messages at this length. */
const mostSaid = 2048;

/**
 * Returns a server's error in one line that begins with the config's file and, if known, the line in it.
 * @param complaint the server's message about `text`, the config that runs
 * @param user the server's user, if root started it
 */
export function complaintOf(
  kind: ServerKind,
  complaint: string,
  text: string,
  { version }: Build,
  { name, config }: ConfiguredServer,
  user?: string,
): string {
  const lines = text.split('\n');
  const lineNumber = kind.complaintLine?.exec(complaint)?.[1];
  const quoted = [...complaint.matchAll(/(["'])(.+?)\1/g)]
    .map(([, , quote = '']) => firstOrigin(lines.filter((line) => line.includes(quote))))
    .find((place) => place !== undefined);
  const origin =
    (lineNumber && firstOrigin(lines.slice(Number(lineNumber) - 1))) ??
    quoted ??
    config.join(' + ');
  const message = withShortQuotes(complaint)
    .replace(/^(?:nginx|nghttpd): |^\d{4}\/\d\d\/\d\d [\d:]+ (?=\[)/, '')
    .replace(/^\[(?:emerg|alert|crit|error|[^\]]+:\d+)\] (?:\d+#\d+: )?/, '')
    .replace(/ in \S+:\d+$/, '')
    // OpenSSL's own message repeats the reason.
    .replace(/ \(SSL: (?:.*?(: ?No such file|: ?Permission denied))?.*\)$/i, '$1')
    .replace(/": BIO_new_file\(\) failed: ?No such file$/i, '": it is not there')
    .trim();
  const [, unknown] =
    /(?:unknown (?:directive|command):?|unrecognized option|(?:invalid parameter|^the)(?= "quic")) ["']?([^"']+)["']?/.exec(
      message,
    ) ?? [];
  if (unknown !== undefined)
    return `${origin}: ${name} ${version} does not know "${wordIn(unknown)}": this build lacks its module, or it is misspelt; ${toolVariable(name)} names another build`;
  const remedies: [RegExp, string][] = [
    [
      /permission denied/i,
      `the server runs as ${user ?? 'the current user'}, who may not use it: give it a copy that this user may read, or start bakeoff as another user`,
    ],
    [
      /cannot load certificate.*No such file/i,
      'copy it here, or name another in a copy of the config',
    ],
    [
      /dlopen\(\)/,
      'install the module (libnginx-mod-…), or take its load_module line out of a copy of the config',
    ],
    [
      /private.?key/i,
      'if the key has a password, give one without, or to nginx its ssl_password_file',
    ],
  ];
  const remedy = remedies.find(([sign]) => sign.test(complaint))?.[1];
  return `${origin}: ${name} ${version} does not accept it: ${withShortEnd(message, text)}${remedy ? `; ${remedy}` : ''}`;
}
