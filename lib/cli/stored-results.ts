// The runs in a results folder.
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { asWords } from '../errors.ts';
import { readBytes } from '../files.ts';
import { checkResult, type Result } from '../result/result.ts';

/** Names of the runs, oldest first; none if the folder cannot be read. */
export async function runsIn(results: string): Promise<string[]> {
  const names = await readdir(results).catch((): string[] => []);
  return names.filter((name) => existsSync(path.join(results, name, 'result.json'))).sort();
}

/** Four times a run of 80 rounds and 16 variants; a variant has up to 0.05 MB in a round, most of it its histogram. */
const mostBytes = 256e6;

/** @param file path of result.json @throws UserError if it cannot be read, or is no result */
export function readResult(file: string): Result {
  const bytes = asWords(() => readBytes(file, mostBytes), `cannot read ${file}: `, 1);
  return checkResult(bytes.toString('utf8'), file);
}
