// The code that differs between servers.
import type { ReadConfig } from './own/changes.ts';
import type { AdoptPlace, AdoptedConfig, Build, ComposedConfig, Place } from './server.ts';

/** A server whose configs bakeoff writes and reads. startServer does all that is common to servers. */
export interface ServerKind {
  /** The argument that prints the version, its pattern, and the oldest version that knows the shipped configs. */
  version: { argument: string; pattern: RegExp; oldest: string };
  compose(names: readonly string[], place: Place, build: Build): Promise<ComposedConfig>;
  /** Changes a user's own config to run beside a running server. Throws UserError if it cannot be used. */
  adopt(file: string, place: AdoptPlace, build: Build): Promise<AdoptedConfig>;
  /** Arguments with which the server only checks its config; absent if it cannot. */
  checkArgs?: readonly string[];
  complaint: RegExp;
  /** Finds the line number of the config in a line that matches `complaint`. */
  complaintLine?: RegExp;
  /** The lines of its log that are alarms, or that tell of a crash. */
  log: { alarm?: RegExp; crash: RegExp };
  /** Returns whether a text is such a config. @param text without comments and empty lines */
  isConfig(text: string): boolean;
  /**
   * Reads a user's config with its includes. Throws UserError with file and line.
   * @param within the nginx config in whose http block a part of one runs
   */
  read(file: string, within?: string): Promise<ReadConfig>;
}
