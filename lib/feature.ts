// What can be taken out of bakeoff. The core asks the list in lib/features.ts, and knows no feature by name.

export interface Command {
  help: string;
  /** Returns the exit code. It loads the command's code: others need none of it. */
  run(args: string[]): Promise<number>;
}

/** A folder of lib/features. It may use the core, and no other feature. */
export interface Feature {
  commands?: Readonly<Record<string, Command>>;
}
