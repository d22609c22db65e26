// YAML as its text stands, bounded: who wrote it may mean to have it read for ever.
import { isCollection, isPair, LineCounter, parseDocument, type Document } from 'yaml';
import { UserError } from '../errors.ts';

/** Some fifty times what a config has; the parser takes seconds for it at worst. */
const mostBytes = 256_000;
/** What is nested deeper than any config is. */
const mostNested = 100;

/**
 * Throws UserError with file and line when it is too long, nested too deeply, or not YAML.
 * @param schema as parseDocument's: failsafe leaves all scalars text
 */
export function parseYaml(file: string, text: string, schema: 'core' | 'failsafe', lineCounter = new LineCounter()): Document.Parsed {
  if (text.length > mostBytes) throw new UserError(`h2o config ${file} has more than ${mostBytes / 1000} kB, and bakeoff reads no longer ones`);
  const document = mayBeEndless(text) ? undefined : parsed(text, schema, lineCounter);
  if (document === undefined || isTooDeep(document.contents)) throw new UserError(`h2o config ${file} is nested more than ${mostNested} deep, and bakeoff reads no deeper ones`);
  const [error] = document.errors;
  if (error !== undefined) {
    throw new UserError(`h2o config ${file}:${error.linePos?.[0].line ?? 1}: ${error.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '')}`);
  }
  return document;
}

/** In so many levels the parser's calls would near the end of the stack, where Node may break off instead of throwing. */
const mostOpen = 1000;

/** Whether there may be as many: brackets that do not close, in quotes or not, or lists in lists, or keys in keys, on one line. */
function mayBeEndless(text: string): boolean {
  let [open, lists] = [0, 0];
  for (const [sign] of text.matchAll(/[[\]{}\n]|[-?] (?=[-?] )/g)) {
    if (sign === '\n') lists = 0;
    else if (sign === '- ' || sign === '? ') lists++;
    else open = sign === '[' || sign === '{' ? open + 1 : Math.max(0, open - 1);
    if (open > mostOpen || lists > mostOpen) return true;
  }
  return false;
}

/** undefined where the parser's calls are too deep for the stack, which it throws or says as an error of the text. */
function parsed(text: string, schema: 'core' | 'failsafe', lineCounter: LineCounter): Document.Parsed | undefined {
  try {
    const document = parseDocument(text, { schema, uniqueKeys: schema === 'core', logLevel: 'silent', lineCounter });
    return document.errors.some(({ message }) => message.startsWith('Maximum call stack')) ? undefined : document;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function isTooDeep(contents: unknown): boolean {
  let level: unknown[] = [contents];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > mostNested) return true;
    level = level.flatMap((node) => (isCollection(node) ? node.items as unknown[] : [])).flatMap((item) => (isPair(item) ? [item.key, item.value] : [item])).filter(isCollection);
  }
  return false;
}
