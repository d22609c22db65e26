// What a server says against a person's own config, told of their file instead of the one that runs.
import { toolVariable } from '../../setup/tools.ts';
import type { ServerSpec } from '../../scenario/model.ts';
import type { Build, ServerKind } from '../server.ts';
import { originOfLine, originOfWords } from './origin.ts';

/**
 * One line that begins with the person's file, and the line in it where it can be told.
 * @param said by the server about `text`, which it was given
 */
export function ownComplaint(kind: ServerKind, said: string, text: string, { version }: Build, { name, config }: ServerSpec): string {
  const line = kind.complaintLine.exec(said)?.[1];
  const quoted = [...said.matchAll(/(["'])(.+?)\1/g)].map(([, , words]) => originOfWords(text, words as string)).find((found) => found !== undefined);
  const origin = (line === undefined ? undefined : originOfLine(text, Number(line))) ?? quoted ?? config[0];
  const words = said.replace(/^(?:nginx|nghttpd): /, '').replace(/^\[(?:emerg|alert|crit|error|[^\]]+:\d+)\] /, '').replace(/ in \S+:\d+$/, '').trim();
  const unknown = /(?:unknown (?:directive|command):?|unrecognized option) ["']?([^"']+)["']?/.exec(words)?.[1];
  if (unknown !== undefined) return `${origin}: ${name} ${version} does not know "${unknown}": this build lacks its module, or it is misspelt; ${toolVariable(name)} names another build`;
  return `${origin}: ${name} ${version} does not accept it: ${words}`;
}
