// The scenario that two configs of a person's own come to.
import path from 'node:path';
import { whole } from '../format.ts';
import { redirectionLines } from '../report/sentences.ts';
import { defineScenario } from '../scenario/define-scenario.ts';
import type { Page, Scenario, ServerSpec, Variant } from '../scenario/model.ts';
import { differences, type Side } from './compare-sides.ts';

/** A side that was started once. */
export interface Tried extends Side {
  /** Of the page's body. */
  bodyBytes: number;
  redirections: readonly string[];
}

/** The server of a side. */
export function serverOf({ config, listen }: Side): ServerSpec {
  return {
    name: config.server, config: [config.file], workers: config.workers,
    asIs: config.listens.length > 1 ? { port: listen.port } : {},
  };
}

/**
 * @param same both files are the same, so that what differs is noise
 * @returns `said`: what the person has to know before the first round, one line each
 */
export function comparisonOf(sides: readonly [Tried, Tried], same: boolean): { scenario: Scenario; said: string[] } {
  const [a, b] = sides;
  const names = namesOf(sides.map(({ config }) => config.file));
  const [pageA, pageB] = sides.map(({ page, bodyBytes }): Page => ({ ...page, bodyBytes })) as [Page, Page];
  const lengths = a.bodyBytes === b.bodyBytes ? [] : [
    `The bodies differ: ${a.given} answers with ${whole(a.bodyBytes)} B, ${b.given} with ${whole(b.bodyBytes)} B; part of what is seen is theirs.`,
  ];
  const control = same ? ['Both files are the same, byte for byte: what differs is noise.'] : [];
  const variantOf = (side: Tried, index: number): Variant => ({ name: names[index] as string, server: serverOf(side) });
  const scenario = defineScenario({
    name: 'compare',
    title: path.basename(a.given) === path.basename(b.given) ? `${a.given} against ${b.given}` : `${path.basename(a.given)} against ${path.basename(b.given)}`,
    knob: names[1] as string,
    load: a.load,
    page: pageA,
    variants: [
      variantOf(a, 0),
      {
        ...variantOf(b, 1),
        ...(JSON.stringify(a.load) === JSON.stringify(b.load) ? {} : { load: b.load }),
        ...(lengths.length === 0 ? {} : { page: pageB }),
      },
    ],
    ...(same ? { control: true } : {}),
    footnotes: [...control, ...lengths, ...differences(sides)],
  });
  return { scenario, said: redirectionLines(sides.map(({ redirections }, index) => ({ name: names[index] as string, redirections }))) };
}

/**
 * Names for two files: what stands before the last dot, with the folder's name where that tells them apart, and -a and -b
 * where nothing does. Only a-z, 0-9 and -.
 */
export function namesOf(files: readonly string[]): string[] {
  const plain = files.map((file) => asName(path.parse(file).name) || 'config');
  if (new Set(plain).size === files.length) return plain;
  const withFolder = files.map((file, index) => [asName(path.basename(path.dirname(file))), plain[index]].filter((part) => part !== '').join('-'));
  return new Set(withFolder).size === files.length ? withFolder : plain.map((name, index) => `${name}-${'ab'.charAt(index)}`);
}

function asName(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
}
