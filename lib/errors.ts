/** An error whose message is meant for the person at the terminal: one line that says what to do. `exitCode` as in docs/verdicts.md. */
export class UserError extends Error {
  readonly exitCode: 1 | 2;
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What an error says, or what was thrown instead of one. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
