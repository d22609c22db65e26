// The report for a terminal.
import { terminalTable } from './table.ts';
import { loadPart, tableParts } from './run-tables.ts';
import { circumstanceLines, footnoteLines, verdictLines, warningLines } from './sentences.ts';
import { type Part, type TerminalOptions, wrapLines } from './table.ts';
import type { Result } from '../result/result.ts';

export interface TerminalReportOptions extends TerminalOptions {
  /** With each load in detail, and all footnotes. */
  verbose?: boolean;
}

/**
 * What was found, in as few lines as it takes: the tables, the verdicts right below them, warnings, and how far that goes. The rest is in
 * report.html, and here where it is asked for.
 * @param ends the last lines
 */
export function terminalReport(
  result: Result,
  ends: readonly string[],
  options: TerminalReportOptions,
): string[] {
  // Of an article they are for who reads it; of a comparison of one's own they say what else differs.
  const footnotes =
    options.verbose === true
      ? footnoteLines(result)
      : result.variants.some(({ published }) => published !== null)
        ? []
        : result.footnotes;
  return [
    ...(options.verbose === true ? loadPart(result) : [])
      .concat(tableParts(result))
      .flatMap((part) => [...partLines(part, options), '']),
    ...wrapLines(
      [
        ...verdictLines(result),
        ...warningLines(result),
        ...footnotes,
        ...circumstanceLines(result),
        ...ends,
      ],
      options.width,
    ),
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

// Live progress on stderr: one line that is rewritten on a terminal, plain lines in a pipe.

export interface Running {
  /** e.g. "round 2 of 10". */
  what: string;
  /** What is seen so far: requests/s now, or ratios. What does not fit into the line is cut. */
  seen: string;
  /** Until the run ends, or verdicts may end it. */
  secondsLeft: number;
}

export type RunProgress = ReturnType<typeof createRunProgress>;

const clearLine = '\r\u001b[2K';

/** Progress for a stream: `columns` is its width when it is a terminal, undefined otherwise. */
export function createRunProgress(stream: {
  write(text: string): unknown;
  columns?: number | undefined;
  isTTY?: boolean | undefined;
}) {
  const terminal = stream.isTTY === true;
  let shown = false;

  /** Takes the rewritten line away, before other output. */
  function clear(): void {
    if (shown) stream.write(clearLine);
    shown = false;
  }

  /** A line that stays on either. */
  function say(line: string): void {
    clear();
    stream.write(`${line}\n`);
  }

  return {
    /** Shows what goes on now; nothing in a pipe. */
    running({ what, seen, secondsLeft }: Running): void {
      if (!terminal) return;
      const seconds = Math.max(0, Math.round(secondsLeft));
      const line = `${what} · ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} left · ${seen}`;
      stream.write(clearLine + line.slice(0, (stream.columns || 80) - 1));
      shown = true;
    },
    /** Something is done; a line of its own in a pipe. */
    finished(line: string): void {
      if (!terminal) say(line);
    },
    say,
    clear,
  };
}
