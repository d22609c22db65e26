/** An error whose message is meant for the person at the terminal: one line that says what to do. `exitCode` as in docs/verdicts.md. */
export class UserError extends Error {
  readonly exitCode: 1 | 2;
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(printable(message));
    this.exitCode = exitCode;
  }
}

/** The text without what a terminal would obey instead of showing it: escapes, and letters that turn the direction of writing. */
export function printable(text: string): string {
  return text.replace(/[^\P{C}\n\t]/gu, ' ');
}

/** What an error says, or what was thrown instead of one. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
