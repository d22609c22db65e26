// What a server says against a person's own config, told of their file instead of the one that runs.
import { toolVariable } from '../../setup/tools.ts';
import type { ServerSpec } from '../../scenario/model.ts';
import { originOfLine, originOfWords } from './origin.ts';

/**
 * One line that begins with the person's file and line, where it can be told.
 * @param said by the server
 * @param line that it is about, in `text`
 * @param version e.g. nginx 1.22.1
 */
export function ownComplaint(said: string, line: string | undefined, text: string, version: string, { name, config }: ServerSpec): string {
  const named = [...said.matchAll(/"([^"]+)"/g)].map(([, words]) => originOfWords(text, words as string)).find((found) => found !== undefined);
  const origin = (line === undefined ? undefined : originOfLine(text, Number(line))) ?? named ?? config[0];
  const words = said.replace(/^nginx: /, '').replace(/^\[(?:emerg|alert|crit|error|[^\]]+:\d+)\] /, '').replace(/ in \S+:\d+$/, '').trim();
  const unknown = /unknown (?:directive|command):? "?([^"]+)"?/.exec(words)?.[1];
  if (unknown !== undefined) return `${origin}: ${version} does not know "${unknown}": this build lacks its module, or it is misspelt; ${toolVariable(name)} names another build`;
  return `${origin}: ${version} does not accept it: ${words}`;
}
