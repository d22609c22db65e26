import { present, without } from '../../present.ts';
import type { Overlay } from '../../scenario/model.ts';
import type { OwnConfig } from './redirect.ts';

/** Decide which knobs apply. `proxied`: the page may be a backend's. `logLine`: an extensible line logs requests. */
export interface Facts {
  proxied: boolean;
  logs: boolean;
  logLine: boolean;
}

/** The port as in the config; `cores`: the value of `auto`. */
export interface PageAt {
  port: number;
  paths: readonly string[];
  cores: number;
}

export interface View {
  workers: OwnConfig['workers'];
  settings: readonly Setting[];
}

/** A user's, over which knobs' lines can be laid. */
export interface ReadConfig extends View {
  listens: OwnConfig['listens'];
  logFormats?: OwnConfig['logFormats'];
  facts(page: PageAt): Facts;
  overlay(overlays: readonly Overlay[], page: PageAt): View;
}

export const overlayOrigin = 'laid over it';

/** `place`: FILE:LINE. */
export interface Setting {
  block: string;
  name: string;
  text: string;
  place: string;
}

/** A line to paste into `block`, in place of another; an empty one removes that. */
export interface Change {
  block: string;
  text: string;
  instead?: Setting;
}

/** Line by line within each block. */
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

/** Under a heading for each block; comments name lines to remove. */
export function changeLines(changes: readonly Change[]): string[] {
  return [...new Set(changes.map(({ block }) => block))].flatMap((block) => [
    `${block}:`,
    ...new Set(changes.filter((change) => change.block === block).map(lineOf)),
  ]);
}

function lineOf({ text, instead }: Change): string {
  if (instead === undefined) return `  ${text}`;
  return text === ''
    ? `  # remove ${instead.place}: ${instead.text}`
    : `  ${text}  # instead of ${instead.place}: ${instead.text}`;
}
