// YAML with bounds: a stranger's may be made to be read for ever.
import { CST, Lexer, LineCounter, parseDocument, Parser, type Document } from 'yaml';
import { UserError } from '../errors.ts';

/** Some fifty times as long as a config; the parser takes seconds for it at worst. */
const mostBytes = 256_000;
const mostNested = 100;

/**
 * Throws UserError with file and line when it is too long, nested too deeply, or not YAML.
 * @param schema as parseDocument's: failsafe leaves all scalars text
 */
export function parseYaml(
  file: string,
  text: string,
  schema: 'core' | 'failsafe',
  lineCounter = new LineCounter(),
): Document.Parsed {
  if (text.length > mostBytes)
    throw new UserError(
      `h2o config ${file} has more than ${mostBytes / 1000} kB, and bakeoff reads no longer ones`,
    );
  if (isTooDeep(text))
    throw new UserError(
      `h2o config ${file} is nested more than ${mostNested} deep, and bakeoff reads no deeper ones`,
    );
  const document = parseDocument(text, {
    schema,
    uniqueKeys: schema === 'core',
    logLevel: 'silent',
    lineCounter,
  });
  const [error] = document.errors;
  if (error !== undefined) {
    throw new UserError(
      `h2o config ${file}:${error.linePos?.[0].line ?? 1}: ${error.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '')}`,
    );
  }
  return document;
}

/** parseDocument calls itself for each level, which Node may break off instead of throwing. */
function isTooDeep(text: string): boolean {
  const parser = new Parser();
  let unended = 0;
  for (const word of new Lexer().lex(text)) {
    Array.from(parser.next(word));
    // Brackets that indentation ends, though it may not.
    if (word === CST.FLOW_END) unended++;
    if (unended + parser.stack.filter((token) => 'items' in token).length > mostNested + 1)
      return true;
  }
  return false;
}
