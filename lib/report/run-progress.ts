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
