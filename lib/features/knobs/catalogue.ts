// The usual advice: reads server-configs/knobs/<server>.yaml, and decides which advice applies.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as v from 'valibot';
import { parse } from 'yaml';
import {
  check,
  closed,
  each,
  flag,
  list,
  name,
  oneOf,
  orAbsent,
  text,
  trueOrAbsent,
  integer,
} from '../../form.ts';
import { counts } from '../../format.ts';
import { repeated } from '../../present.ts';
import type { Overlay, LoadProfile } from '../../scenario/model.ts';
import { isHttp2 } from '../../scenario/load.ts';
import { configsFolder } from '../../servers/config-files.ts';
import type { Build, Listen } from '../../servers/index.ts';
import type { Change, Facts } from '../../servers/own/changes.ts';
import { atLeast } from '../../setup/machine.ts';
import { servers, type ServerName } from '../../setup/servers.ts';

/** The conditions of a knob; all must hold. */
const where = closed({
  ...each(['tls', 'proxied', 'static', 'logs', 'acceptsGzip', 'sendsBody'], orAbsent(trueOrAbsent)),
  http2: orAbsent(flag),
  workers: orAbsent(integer(2, 1024)),
  bodyBytes: orAbsent(integer(1, 1e9)),
  ...each(['build', 'never'], orAbsent(text)),
});

const values = v.pipe(
  v.record(
    v.pipe(text, v.regex(/^[a-z0-9.-]+$/, 'has to be a name of a-z, 0-9, . and -')),
    text,
    'has to be an object of texts',
  ),
  v.check((value) => Object.keys(value).length > 0, 'has to be an object of texts'),
);

/** A piece of advice; the top of each file explains the fields. */
type Knob = v.InferOutput<ReturnType<typeof knobForm>>;

function knobForm(server: ServerName) {
  return closed({
    name,
    context: oneOf<readonly string[]>(servers[server].contexts),
    values,
    default: orAbsent(text),
    claim: text,
    since: v.pipe(text, v.regex(/^\d+\.\d+\.\d+$/, 'has to be a version such as 1.9.1')),
    where: orAbsent(where),
    source: text,
  });
}

/** Reads the knobs of a server, in the file's order. Throws Error with file and field. */
export function readKnobs(server: ServerName): Knob[] {
  const file = path.join(configsFolder, 'knobs', `${server}.yaml`);
  return checkKnobs(server, parse(readFileSync(file, 'utf8')), file);
}

/** @param file for the message */
export function checkKnobs(server: ServerName, parsed: unknown, file: string): Knob[] {
  const outcome = check(list(knobForm(server)), parsed, { everything: true });
  if ('problem' in outcome) throw new Error(`${file}: ${outcome.problem}`);
  const twice = repeated(outcome.value.flatMap(valueNames));
  if (twice !== undefined) throw new Error(`${file}: two are named "${twice}"`);
  return outcome.value;
}

/** A value of a knob. */
export type Candidate = ReturnType<typeof candidatesOf>[number];

/** The different values of a knob here. @param cores of the server */
export function candidatesOf(knob: Knob, cores: number) {
  const all = Object.entries(knob.values).map(([value, lines]): [string, string] => [
    value,
    lines.replaceAll('{cores}', `${cores}`).replaceAll('{twice-cores}', `${2 * cores}`),
  ]);
  return all
    .filter(([, lines], index) => all.findIndex(([, others]) => others === lines) === index)
    .map(([value, lines]) => ({
      /** The knob's name, with the value's if there are several: sendfile-off. */
      name: nameOf(knob, value),
      knob,
      overlay: { context: knob.context, lines },
      /** The server's default. */
      isDefault: knob.default === value,
    }));
}

function nameOf({ name, values }: Knob, value: string): string {
  if (Object.keys(values).length === 1 && value !== 'off') return name;
  return `${name}-${value}`.replaceAll('.', '-');
}

export function valueNames(knob: Knob): string[] {
  return Object.keys(knob.values).map((value) => nameOf(knob, value));
}

export interface Surroundings {
  facts: Facts;
  listen: Pick<Listen, 'tls'>;
  load: Pick<LoadProfile, 'protocol' | 'headers' | 'body'>;
  bodyBytes: number;
  workers: number;
  build: Build;
}

const alreadySo = 'already so';

/** Returns whether a candidate was left out because the config has its value. @param why from whyNot */
export const isAlreadySo = (why: string): boolean => why.startsWith(alreadySo);

/** Says why a candidate is not worth a try; undefined if it is. All candidates that are left out for the same reason get the same text. */
export function whyNot(
  { knob: { since, where = {}, context }, overlay, isDefault }: Candidate,
  surroundings: Surroundings,
  overlaid: (overlays: readonly Overlay[]) => { changes: readonly Change[] },
): string | undefined {
  const { facts, listen, load, build, workers, bodyBytes } = surroundings;
  const http2 = isHttp2(load.protocol);
  const { workers: leastWorkers = 0, bodyBytes: leastBytes = 0 } = where;
  if (where.never !== undefined) return where.never;
  if (!atLeast(build.version, since)) return `needs version ${since}, and this is ${build.version}`;
  const reasons: [isSo: boolean | undefined, why: string][] = [
    [
      where.build !== undefined && !build.answer.includes(where.build),
      `this build is without ${where.build}`,
    ],
    [where.tls && !listen.tls, 'only with TLS'],
    [where.http2 === true && !http2, 'only with HTTP/2'],
    [where.http2 === false && http2, 'only with HTTP/1.1'],
    [where.proxied && !facts.proxied, 'only where requests are passed on'],
    [where.static && facts.proxied, 'only where files are served'],
    [where.logs && !facts.logs, 'requests are not logged'],
    [
      where.logs && overlay.lines.includes('...') && !facts.logLine,
      'the config has no line for its log that takes it',
    ],
    [
      where.acceptsGzip && !acceptsGzip(load),
      "only where requests accept gzip (add -H 'Accept-Encoding: gzip' to --load)",
    ],
    [where.sendsBody && (load.body ?? '') === '', 'only where requests have a body'],
    [workers < leastWorkers, `only with ${counts(leastWorkers, 'worker')} or more`],
    [bodyBytes < leastBytes, `only with bodies of ${counts(leastBytes, 'byte')} or more`],
  ];
  const reason = reasons.find(([isSo]) => isSo);
  if (reason !== undefined) return reason[1];
  const { changes } = overlaid([overlay]);
  if (changes.length === 0)
    return context === 'ssl' ? `${alreadySo}, or no TLS of its own` : alreadySo;
  if (isDefault && changes.every(({ instead }) => instead === undefined))
    return `${alreadySo}, by default`;
  return undefined;
}

function acceptsGzip({ headers = {} }: Surroundings['load']): boolean {
  return Object.entries(headers).some(
    ([name, value]) => name.toLowerCase() === 'accept-encoding' && /gzip|\*/.test(value),
  );
}
