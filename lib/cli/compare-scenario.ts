// The scenario that sides of a person's own come to.
import { readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { enumeration, whole } from '../format.ts';
import { redirectionLines } from '../report/sentences.ts';
import { defineScenario } from '../scenario/define-scenario.ts';
import type { Page, Scenario, ServerSpec, Variant } from '../scenario/model.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { type Side, differences } from './compare-sides.ts';
import type { Tried } from './try-side.ts';

/** How a side is started, beside what it is: a command's own port, another build of a server. */
export interface Launch {
  port?: number;
  binary?: string;
}

/** What a comparison is called unless it is named. */
export const usualName = 'compare';

/** The launches of all sides, by their names. */
export type LaunchOf = (name: string) => Launch;

/** The server of a side. */
export function serverOf(
  { source, listen }: Pick<Side, 'source' | 'listen'>,
  { port, binary }: Launch,
): ServerSpec {
  if (source.kind === 'address') return { name: 'address', origin: source.origin };
  if (source.kind === 'command') {
    return {
      name: 'command',
      command: source.command,
      folder: fromCallersFolder('.'),
      ...(port === undefined ? {} : { port }),
      ...(listen.tls ? { tls: true } : {}),
    };
  }
  const { server, file, workers, listens } = source.config;
  return {
    name: server,
    config: [file],
    workers,
    asIs: listens.length > 1 ? { port: listen.port } : {},
    ...(binary === undefined ? {} : { binary }),
  };
}

/** Groups of sides that are the same, so that what differs between them is noise; those that have their like only. */
export async function sameSides(sides: readonly Side[], launch: LaunchOf): Promise<Side[][]> {
  const groups: Side[][] = [];
  for (const side of sides) {
    const alike = await Promise.all(groups.map(([first]) => isSame(first as Side, side, launch)));
    const group = groups[alike.indexOf(true)];
    if (group === undefined) groups.push([side]);
    else group.push(side);
  }
  return groups.filter((group) => group.length > 1);
}

async function isSame(a: Side, b: Side, launch: LaunchOf): Promise<boolean> {
  if (!isDeepStrictEqual([a.load, a.page, launch(a.name)], [b.load, b.page, launch(b.name)]))
    return false;
  if (a.source.kind !== 'config' || b.source.kind !== 'config')
    return isDeepStrictEqual(a.source, b.source);
  if (a.listen.port !== b.listen.port) return false;
  const [fileA, fileB] = [a.source.config.file, b.source.config.file];
  if ((await realpath(fileA)) === (await realpath(fileB))) return true;
  const text = await readFile(fileA);
  if (!text.equals(await readFile(fileB))) return false;
  if (path.dirname(fileA) === path.dirname(fileB)) return true;
  // Elsewhere, what is relative to them may be something else: what nginx includes, and all that the others serve.
  return (
    a.source.config.server === 'nginx' && !/\binclude\s+["']?[^/\s"']/.test(text.toString('utf8'))
  );
}

/** `said`: what the person has to know before the first round, one line each. @param same as sameSides found them */
export function comparisonOf(
  sides: readonly Tried[],
  launch: LaunchOf,
  same: readonly (readonly Side[])[],
  name = usualName,
): { scenario: Scenario; said: string[] } {
  const [first] = sides as [Tried];
  const isControl = same[0]?.length === sides.length;
  const pageFor = ({ page, answer }: Tried): Page => ({
    ...page,
    bodyBytes: Math.round(answer.bytes),
  });
  const scenario = defineScenario({
    name,
    title: sides.length === 2 ? titlesOf(sides).join(' against ') : enumeration(titlesOf(sides)),
    knob: (sides[1] as Tried).name,
    load: first.load,
    page: pageFor(first),
    variants: sides.map((side): Variant => ({
      name: side.name,
      server: serverOf(side, launch(side.name)),
      ...(isDeepStrictEqual(side.load, first.load) ? {} : { load: side.load }),
      ...(isDeepStrictEqual(pageFor(side), pageFor(first)) ? {} : { page: pageFor(side) }),
    })),
    ...(isControl ? { control: true } : {}),
    footnotes: [
      ...same.map((group) => sameLine(group, isControl)),
      ...answerLines(sides),
      ...differences(sides),
    ],
  });
  return { scenario, said: redirectionLines(sides) };
}

/** Files by their names, where these tell them apart. */
function titlesOf(sides: readonly Tried[]): string[] {
  const short = sides.map(({ given }) => path.basename(given));
  return new Set(short).size === short.length ? short : sides.map(({ given }) => given);
}

function sameLine(group: readonly Side[], isControl: boolean): string {
  const what = group.length === 2 ? 'Both' : 'All';
  if (isControl) return `${what} sides are the same: what differs is noise.`;
  return `${enumeration(group.map(({ given }) => given))} are the same: what differs between them is noise.`;
}

/** What sides answer differently, one line for each such thing. */
function answerLines(sides: readonly Tried[]): string[] {
  const differing = (of: (side: Tried) => string, line: (how: string) => string): string[] => {
    const found = sides.map(of);
    return new Set(found).size === 1
      ? []
      : [line(sides.map(({ given }, index) => `${given} ${found[index]}`).join(', '))];
  };
  const encodings = differing(
    ({ answer }) => answer.encoding || 'none',
    (how) => `The encodings differ: ${how}; part of what is seen is theirs.`,
  );
  return [
    ...differing(
      ({ answer }) => `${whole(answer.bytes)} B`,
      (how) => `The bodies differ: ${how}; part of what is seen is theirs.`,
    ),
    ...encodings,
    // Without parameters, such as the character set.
    ...differing(
      ({ answer }) => (answer.type.split(';')[0] as string).trim().toLowerCase() || 'none',
      (how) => `The types of the answers differ: ${how}.`,
    ),
    ...(encodings.length > 0
      ? []
      : differing(
          ({ offered }) =>
            offered?.encoding ? `${offered.encoding} ${whole(offered.bytes)} B` : 'none',
          (how) =>
            `Compression differs (${how}), and no answer was encoded: add -H 'Accept-Encoding: gzip' to --load to compare it.`,
        )),
  ];
}
