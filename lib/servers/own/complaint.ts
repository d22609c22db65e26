// A server's error about a person's own config, with the place in their file.
import { toolVariable } from '../../setup/tools.ts';
import type { ConfiguredServer } from '../../scenario/model.ts';
import type { Build, ServerKind } from '../server.ts';
import { originOfLine, originOfWords } from './origin.ts';

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
