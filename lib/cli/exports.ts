// --export-markdown, --export-json and --export-csv: a result in files that a person names, beside those in --out.
import { UserError } from '../errors.ts';
import { csvReport } from '../report/csv.ts';
import { markdownReport } from '../report/markdown.ts';
import { resultJson, type Result } from '../result/result.ts';
import { writeReasons } from '../runner/results-folder.ts';
import { checkWhole, whereItLeads, whyNoFile, writeWhole } from '../write-whole.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import type { Flag } from './words.ts';

export const exportFlags = {
  'export-markdown': { value: 'FILE', help: 'verdict and table, as a comment on a pull request' },
  'export-json': { value: 'FILE', help: 'the result, as result.json' },
  'export-csv': { value: 'FILE', help: 'a row per variant, with units in the titles' },
} as const satisfies Record<string, Flag>;

type ExportFlag = keyof typeof exportFlags;

const textOf: Readonly<Record<ExportFlag, (result: Result) => string>> = {
  'export-markdown': markdownReport,
  'export-json': resultJson,
  'export-csv': csvReport,
};

/** What is written where; `file` is absolute. */
export type Exports = readonly { flag: ExportFlag; file: string }[];

/** @throws UserError (exit code 2) for what is no file's name, and for one that is named twice */
export function readExports(flags: ReadonlyMap<string, string>): Exports {
  const exports = (Object.keys(exportFlags) as ExportFlag[]).flatMap((flag) => {
    const name = flags.get(flag);
    if (name === '-')
      throw new UserError(`--${flag} -: name a file; --json writes the result on stdout`, 2);
    if (name?.endsWith('/') === true)
      throw new UserError(`--${flag} ${name}: name a file in that folder`, 2);
    return name === undefined ? [] : [{ flag, file: fromCallersFolder(name) }];
  });
  const [one, other] = exports.filter(
    ({ file }, _, all) => all.filter((some) => some.file === file).length > 1,
  );
  if (one !== undefined && other !== undefined)
    throw new UserError(
      `--${one.flag} and --${other.flag} name the same file: give each its own`,
      2,
    );
  return exports;
}

/** @param configs files that are compared @throws UserError (exit code 2) for one of them, which an export would take the place of */
export function requireNone(exports: Exports, configs: readonly string[]): void {
  const taken = exports.find(({ file }) => configs.includes(file));
  if (taken !== undefined)
    throw new UserError(`--${taken.flag} ${taken.file} is what is compared: name another file`, 2);
}

/** Makes sure that they can be written, and leaves everything as it was. @throws UserError (exit code 2) */
export async function checkExports(exports: Exports): Promise<void> {
  for (const { flag, file } of exports) {
    const why = await whyNoFile(file);
    if (why !== undefined) throw new UserError(`--${flag} ${file}: ${why}`, 2);
    await explained(flag, file, 2, checkWhole);
  }
}

/** Begins to write them, each whole or not at all. They reject with UserError. */
export function writeExports(exports: Exports, result: Result): Promise<void>[] {
  return exports.map(({ flag, file }) =>
    explained(flag, file, 1, (target) => writeWhole(target, textOf[flag](result))),
  );
}

async function explained(
  flag: ExportFlag,
  file: string,
  exitCode: 1 | 2,
  write: (target: string) => Promise<void>,
): Promise<void> {
  try {
    await write(await whereItLeads(file));
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new UserError(
      `--${flag} ${file} cannot be written: ${code === 'ENOENT' ? 'its folder is not there' : (writeReasons[code] ?? message)}`,
      exitCode,
    );
  }
}
