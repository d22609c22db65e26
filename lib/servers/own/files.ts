// The files of a user's own config, and the place in them that a server's error is about.
import { readFile, stat } from 'node:fs/promises';
import { UserError } from '../../errors.ts';
import { requirePlainPath } from '../../files.ts';
import type { ConfiguredServer } from '../../scenario/model.ts';
import { toolVariable } from '../../setup/tools.ts';
import { mostMegabytes } from '../config-layers.ts';
import { isIn, isOpenToAll } from '../scratch.ts';
import type { Build, ServerKind } from '../server.ts';

const why: Record<string, string> = {
  ENOENT: 'is not there',
  EISDIR: 'is a folder: name a file in it',
  EACCES: 'is closed to this user',
  ELOOP: 'is a link to itself',
  ENOTDIR: 'is not there',
};

/** By file. All rounds of a run measure the configs as they were at its start. */
const known = new Map<string, string>();

/**
 * The text of a config or of a file that it includes, as it was when it was read for the first time.
 * @param by absent for the config itself
 * @throws UserError when it cannot be read or is not text
 */
export async function readText(file: string, by?: Inclusion): Promise<string> {
  const text = known.get(file) ?? (await readNow(file, by));
  known.set(file, text);
  return text;
}

/** An include. `folder`: the config's; `from`: FILE:LINE; `name`: the included file as it is written there. */
export interface Inclusion {
  folder: string;
  from: string;
  name: string;
}

async function readNow(file: string, by: Inclusion | undefined): Promise<string> {
  requirePlainPath(file, by === undefined ? 'cannot use the config' : `${by.from}: includes`);
  const begin = by === undefined ? `the config ${file}` : `${by.from}: includes ${file}, which`;
  try {
    const found = await stat(file);
    // A pipe could be read once, or never.
    if (!found.isFile() && !found.isDirectory() && file !== '/dev/null')
      throw new UserError(`${begin} is a pipe or device: save it to a file`);
    requireReadable(file, by);
    if (found.size > mostMegabytes * 1e6)
      throw new UserError(
        `${begin} has more than ${mostMegabytes} MB, and bakeoff reads no longer ones`,
      );
    const bytes = await readFile(file);
    if (bytes.includes(0)) throw new UserError(`${begin} is not text`);
    return bytes.toString('utf8');
  } catch (error) {
    if (error instanceof UserError) throw error;
    const { code = '', message } = error as NodeJS.ErrnoException;
    const hint =
      code === 'ENOENT' && by !== undefined && !by.name.startsWith('/')
        ? ': what it names begins at its own folder, so keep a copy beside the original'
        : '';
    throw new UserError(`${begin} ${why[code] ?? `cannot be read: ${message}`}${hint}`);
  }
}

/** Throws UserError for an included file that only root may read and that is not beside or below the config: h2o could serve it. */
function requireReadable(file: string, by: Inclusion | undefined): void {
  if (by === undefined || process.geteuid?.() !== 0 || isOpenToAll(file) || isIn(by.folder, file))
    return;
  throw new UserError(
    `${by.from}: includes ${file}, which is closed to others, and not beside the config: put a copy beside it, or open it to others`,
  );
}

/** The origin of bakeoff's own lines. */
export const ours = 'this machine';

/** The comment at the end of a line. */
export function fromLine(file: string, line: number): string {
  return `from ${file}:${line}`;
}

/** FILE:LINE again. */
export function placeOf({ origin }: { origin: string }): string {
  return origin.replace(/^from /, '');
}

const pattern = /# from (\/.*:\d+)$/;

/** FILE:LINE from which this line of the text comes; for a value of several lines, from its last one. */
export function originOfLine(text: string, line: number): string | undefined {
  return text
    .split('\n')
    .slice(line - 1)
    .map((one) => pattern.exec(one)?.[1])
    .find((origin) => origin !== undefined);
}

/** FILE:LINE of the first line that has these words. */
export function originOfWords(text: string, words: string): string | undefined {
  return text
    .split('\n')
    .find((line) => line.includes(words) && pattern.test(line))
    ?.match(pattern)?.[1];
}

/**
 * The error in one line that begins with the person's file, and the line in it where it can be told.
 * @param said by the server about `text`, which it was given
 * @param user of the server, where root started it
 */
export function ownComplaint(
  kind: ServerKind,
  said: string,
  text: string,
  { version }: Build,
  { name, config }: ConfiguredServer,
  user?: string,
): string {
  const line = kind.complaintLine?.exec(said)?.[1];
  const quoted = [...said.matchAll(/(["'])(.+?)\1/g)]
    .map(([, , words]) => originOfWords(text, words as string))
    .find((found) => found !== undefined);
  const origin =
    (line === undefined ? undefined : originOfLine(text, Number(line))) ?? quoted ?? config[0];
  const words = said
    .replace(/^(?:nginx|nghttpd): |^\d{4}\/\d\d\/\d\d [\d:]+ (?=\[)/, '')
    .replace(/^\[(?:emerg|alert|crit|error|[^\]]+:\d+)\] (?:\d+#\d+: )?/, '')
    .replace(/ in \S+:\d+$/, '')
    .trim();
  const unknown = /(?:unknown (?:directive|command):?|unrecognized option) ["']?([^"']+)["']?/.exec(
    words,
  )?.[1];
  if (unknown !== undefined)
    return `${origin}: ${name} ${version} does not know "${unknown}": this build lacks its module, or it is misspelt; ${toolVariable(name)} names another build`;
  const [, short = words] = /^(.*?)(?:: BIO_new_file\(\) failed)? \(SSL: .*\)$/.exec(words) ?? [];
  if (/private.?key/i.test(short) && !/no such file|permission denied/i.test(said))
    return `${origin}: ${name} ${version} does not accept it: ${short}; where the key has a password, ${name === 'nginx' ? 'name a file with it by ssl_password_file' : `give it one without: ${name} takes no password`}`;
  if (short !== words && /no such file/i.test(said))
    return `${origin}: ${name} ${version} does not accept it: ${short}: there is no such file`;
  const closed =
    user === undefined
      ? 'this user: start bakeoff as one who may use it'
      : `the user ${user}, whom it runs as here: open it to others`;
  const hint = /permission denied/i.test(said) ? `; it is closed to ${closed}` : '';
  return `${origin}: ${name} ${version} does not accept it: ${words}${hint}`;
}
