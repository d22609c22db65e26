// The text of result.json, written and read.
import { UserError } from '../errors.ts';
import { check, isObject } from '../form.ts';
import { resultForm, schema, type Result } from './result.ts';

/** The run of a text that begins as those of resultJson; undefined for others. */
export const runOfJson = (text: string): string | undefined =>
  /^\{\n {2}"schema": \d+,\n {2}"run": "([^"]+)"/.exec(text)?.[1];

/** result.json's text: indented, with each histogram on one line. */
export function resultJson(content: Result): string {
  const json = JSON.stringify(
    content,
    (key, value: unknown) => (key === 'histogram' ? JSON.stringify(value) : value),
    2,
  );
  // A text in JSON has no line end or bare quote, so only keys match.
  return `${json.replaceAll(/(\n *"histogram": )("[^\n]*")(?=,?\n)/g, (_, key: string, text: string) => key + String(JSON.parse(text)))}\n`;
}

/**
 * Reads a result, with defaults for the fields that an older bakeoff did not write.
 * @throws UserError that names `file` if it is not a result of this schema
 */
export function checkResult(json: string, file: string): Result {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new UserError(`${file} is not whole JSON: name a run that ended, or run it again`);
  }
  if (!isObject(value) || typeof value['schema'] !== 'number' || !('variants' in value))
    throw new UserError(
      `${file} is not a result of bakeoff: name a run's folder or its result.json`,
    );
  if (value['schema'] > schema)
    throw new UserError(
      `${file}: schema ${value['schema']} is of a newer bakeoff, this one reads ${schema}: make its report with that one`,
    );
  const outcome = check(resultForm, value);
  if ('value' in outcome) return outcome.value;
  throw new UserError(
    `${file} is of an earlier bakeoff, or was changed: ${outcome.problem}: run it again with this one`,
  );
}
