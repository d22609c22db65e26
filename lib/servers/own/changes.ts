// Changes that knobs make to a user's own config, as lines to paste.
import { present, without } from '../../present.ts';
import type { Overlay } from '../../scenario/model.ts';
import type { OwnConfig } from './redirect.ts';

/**
 * Facts that decide which knobs apply. `proxied`: the page may come from a backend. `logLine`: requests are logged by a line that a knob
 * can extend.
 */
export interface Facts {
  proxied: boolean;
  logs: boolean;
  logLine: boolean;
}

/** The page to load: its paths, and its port as the config has it. `cores`: the value of `auto`. */
export interface PageAt {
  port: number;
  paths: readonly string[];
  cores: number;
}

export interface View {
  workers: OwnConfig['workers'];
  settings: readonly Setting[];
}

/** A user's config, as read, over which the lines of knobs can be laid. */
export interface ReadConfig extends View {
  listens: OwnConfig['listens'];
  logFormats?: OwnConfig['logFormats'];
  facts(page: PageAt): Facts;
  overlay(overlays: readonly Overlay[], page: PageAt): View;
}

export const overlayOrigin = 'laid over it';

/** A line of a config in its block. `place`: FILE:LINE. */
export interface Setting {
  block: string;
  name: string;
  text: string;
  place: string;
}

/** A line to paste into `block`, and the line that it replaces. If its text is empty, that line is removed. */
export interface Change {
  block: string;
  text: string;
  instead?: Setting;
}

/** Compares two configs line by line within each block. */
export function changesBetween(before: readonly Setting[], after: readonly Setting[]): Change[] {
  const keyOf = ({ block, text }: Setting) => `${block}\n${text}`;
  const gone = without(before, after, keyOf);
  const put = without(after, before, keyOf).map(({ block, name, text }): Change => {
    const index = gone.findIndex((setting) => setting.block === block && setting.name === name);
    return {
      block,
      text,
      ...present({ instead: index < 0 ? undefined : gone.splice(index, 1)[0] }),
    };
  });
  return [...put, ...gone.map((instead): Change => ({ block: instead.block, text: '', instead }))];
}

/** The changes as text, under a heading for each block. Comments name the lines to remove. */
export function changeLines(changes: readonly Change[]): string[] {
  return [...new Set(changes.map(({ block }) => block))].flatMap((block) => [
    `${block}:`,
    ...new Set(changes.filter((change) => change.block === block).map(lineOf)),
  ]);
}

function lineOf({ text, instead }: Change): string {
  if (instead === undefined) return `  ${text}`;
  if (text === '') return `  # remove ${instead.place}: ${instead.text}`;
  return `  ${text}  # instead of ${instead.place}: ${instead.text}`;
}
