// Credentials in a load: they are sent, and neither shown nor kept.
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { shellWord, type ShellWord } from './shell-words.ts';

export type FlagOptions = NonNullable<ParseArgsConfig['options']>;

/** What stands in their places. */
const hidden = '***';

/** Headers that may let somebody in who reads them. */
const secretName = /^cookie$|auth|token|secret|passw|credential|session|signature|api-?key|access-?key/i;

/** The headers of a load as they may be shown: the values of credentials are left out. */
export function shownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, secretName.test(name) ? hidden : value]));
}

/**
 * The words of a command line as they may be shown.
 * @param options as parseArgs has them
 * @param args the same words, as parseArgs is given them
 * @param secret options whose values are credentials whatever they say; of `header` and `H` it depends on the header
 */
export function shownWords(words: readonly ShellWord[], args: readonly string[], options: FlagOptions, secret: readonly string[]): string[] {
  const shown = words.map(({ written }) => written);
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens) {
    if (token.kind !== 'option' || token.value === undefined) continue;
    const instead = secret.includes(token.name) ? hidden : ['header', 'H'].includes(token.name) ? shownHeader(token.value) : token.value;
    if (instead === token.value) continue;
    const at = token.inlineValue ? token.index : token.index + 1;
    const text = words[at]?.text ?? '';
    shown[at] = shellWord(text.slice(0, text.length - token.value.length) + instead);
  }
  return shown;
}

function shownHeader(line: string): string {
  const [, name = line] = /^([^:]*):/.exec(line) ?? [];
  return secretName.test(name) ? `${name}: ${hidden}` : line;
}
