// A run on a terminal: its report, and its progress.
import type { Result } from '../result/result.ts';
import { loadPart, tableParts } from './run-tables.ts';
import { circumstanceLines, footnoteLines, verdictLines, warningLines } from './sentences.ts';
import { whyPart } from './why.ts';
import { terminalTable, wrapLines, type Part, type TerminalOptions } from './table.ts';

export interface TerminalReportOptions extends TerminalOptions {
  /** Adds each load in detail, and all footnotes. */
  verbose?: boolean;
}

/** The tables, the verdicts, warnings and circumstances, and the last lines `ends`. */
export function terminalReport(
  result: Result,
  ends: readonly string[],
  options: TerminalReportOptions,
): string[] {
  const { verbose = false, width } = options;
  // An article's footnotes explain its figures; other footnotes name further differences.
  const isArticle = result.variants.some(({ published }) => published !== null);
  const lines = [
    ...verdictLines(result),
    ...warningLines(result),
    ...(verbose ? footnoteLines(result) : isArticle ? [] : result.footnotes),
    ...circumstanceLines(result),
    ...ends,
  ];
  return [
    ...[
      ...(verbose ? [...loadPart(result), ...whyPart(result)] : []),
      ...tableParts(result),
    ].flatMap((part) => [...partLines(part, options), '']),
    ...wrapLines(lines, width),
  ];
}

function partLines({ title, tables, below }: Part, options: TerminalOptions): string[] {
  return [
    ...wrapLines(title === '' ? [] : [title], options.width),
    ...tables.flatMap((table, index) => [
      ...(index === 0 ? [] : ['']),
      ...terminalTable(table, options),
    ]),
    ...(below.length === 0 ? [] : ['']),
    ...wrapLines(below, options.width),
  ];
}

interface Running {
  /** "round 2 of 10". */
  what: string;
  /** requests/s now, or ratios; cut to the width. */
  seen: string;
  /** Until the run ends, or verdicts may end it. */
  secondsLeft: number;
}

export type RunProgress = ReturnType<typeof createRunProgress>;

const clearLine = '\r\u001b[2K';

/** Progress on stderr: one line that is rewritten on a terminal, plain lines in a pipe. */
export function createRunProgress(stream: {
  write(text: string): unknown;
  columns?: number | undefined;
  isTTY?: boolean | undefined;
}) {
  const terminal = stream.isTTY === true;
  let shown = false;

  /** Clears the rewritten line, before other output. */
  function clear(): void {
    if (shown) stream.write(clearLine);
    shown = false;
  }

  /** Prints a line that stays. */
  function say(line: string): void {
    clear();
    stream.write(`${line}\n`);
  }

  return {
    /** Rewrites the line on a terminal. */
    running({ what, seen, secondsLeft }: Running): void {
      if (!terminal) return;
      const seconds = Math.max(0, Math.round(secondsLeft));
      const line = `${what} · ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} left · ${seen}`;
      stream.write(clearLine + line.slice(0, (stream.columns || 80) - 1));
      shown = true;
    },
    /** Prints a line in a pipe. */
    finished(line: string): void {
      if (!terminal) say(line);
    },
    say,
    clear,
  };
}
