// The person's main file with knobs in it, for them to read.
import { existsSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { diffLines, nearDifferences } from '../report/html/line-diff.ts';
import { checkWhole } from '../write-whole.ts';
import { edited, editSentence } from '../servers/own/edits.ts';
import type { Layable } from '../servers/own/own-config.ts';
import { textThen } from '../servers/own/read-text.ts';

/** @throws UserError (exit code 2) where a new file cannot be written there */
export async function requireNew(file: string, config: string): Promise<void> {
  if (!existsSync(path.dirname(file))) throw new UserError(`--write ${file}: the folder ${path.dirname(file)} is not there`, 2);
  if (!existsSync(file)) {
    return checkWhole(file).catch((error: unknown) => {
      throw new UserError(`--write ${file}: ${(error as Error).message}`, 2);
    });
  }
  if (realpathSync(file) === realpathSync(config)) throw new UserError(`--write ${file}: is the config itself, which is not touched: name a new file beside it`, 2);
  throw new UserError(`--write ${file}: is there already, and is not overwritten: name a new file`, 2);
}

/**
 * Writes the new file, made of what the config said when it was measured. Returns what to show: the difference, and what has to
 * change in other files, which includes are; or that nothing is written, since the file would not say what was laid over it.
 * @throws UserError where the file is there by now, or cannot be written
 */
export async function writeWith({ edits, isSaidBy }: ReturnType<Layable['lay']>, config: string, file: string): Promise<string[]> {
  const before = textThen(config);
  const after = edited(before, edits.filter((edit) => edit.file === config));
  const others = edits.filter((edit) => edit.file !== config);
  if (others.length === 0 && !await isSaidBy(after).catch(() => false)) {
    return [`${file} is not written: as ${path.basename(config)} is written, more than these lines would have to change. Put what helps into a copy by hand.`];
  }
  try {
    writeFileSync(file, after, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    // A part of it would be taken for the whole.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(file, { force: true });
    throw new UserError(`--write ${file}: ${(error as Error).message}`);
  }
  return [
    ...(readFileSync(config, 'utf8') === before ? [] : [`${config} has changed since it was measured: ${file} is made of what it was.`]),
    ...(after === before ? [`${file} is a copy: nothing of the main file changes.`] : [`--- ${config}`, `+++ ${file}`, ...diff(before, after)]),
    ...(others.length === 0 ? [] : ['In files that it includes, change by hand:', ...others.map((edit) => `  ${editSentence(textThen(edit.file), edit)}`)]),
    ...(path.dirname(file) === path.dirname(config) ? [] : [`Relative names in it begin at the folder of the config: put it into ${path.dirname(config)} before you use it.`]),
  ];
}

function diff(before: string, after: string): string[] {
  const marks = { same: ' ', added: '+', removed: '-' };
  return nearDifferences(diffLines(before.split('\n'), after.split('\n'))).map((line) => (line === 'gap' ? '  …' : `${marks[line.kind]}${line.text}`));
}
