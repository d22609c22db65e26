// The usual advice as data: server-configs/knobs/<server>.yaml, read and checked. And whether it can mean anything for a config and a load.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as v from 'valibot';
import { parse } from 'yaml';
import {
  check,
  closed,
  flag,
  isObject,
  list,
  name,
  oneOf,
  orAbsent,
  placeOf,
  text,
  trueOrAbsent,
  whole,
} from '../form.ts';
import { counts } from '../format.ts';
import type { LaidLines, LoadProfile, ServerName } from '../scenario/model.ts';
import { isHttp2 } from '../scenario/load.ts';
import { shippedConfigs } from '../servers/config-layers.ts';
import type { Build, Listen } from '../servers/index.ts';
import type { Change, Facts } from '../servers/own/changes.ts';
import { atLeast } from '../setup/machine.ts';

const contexts: Record<ServerName, readonly string[]> = {
  nginx: ['main', 'events', 'http', 'server'],
  h2o: ['top', 'ssl'],
  nghttpd: ['flags'],
};

const onlyTrue = orAbsent(trueOrAbsent);
/** Where a knob can mean anything. All of what is there has to be so. */
const where = closed({
  /** The load's connections are encrypted. */
  tls: onlyTrue,
  /** The load is HTTP/2, or is not. */
  http2: orAbsent(flag),
  /** What serves the page passes requests on. */
  proxied: onlyTrue,
  /** It does not: the page is a file. */
  static: onlyTrue,
  /** Requests are logged, by a line of the config's own where the knob keeps its words. */
  logs: onlyTrue,
  /** The load's requests accept gzip. */
  acceptsGzip: onlyTrue,
  /** They have a body. */
  sendsBody: onlyTrue,
  /** The config's workers come to so many at least. */
  workers: orAbsent(whole(2, 1024)),
  /** The page's body has so many bytes at least. */
  bodyBytes: orAbsent(whole(1, 1e9)),
  /** What the build says of itself contains this. */
  build: orAbsent(text),
  /** It cannot be tried here at all, for this reason. */
  never: orAbsent(text),
});

const values = v.pipe(
  v.custom<Record<string, string>>(
    (value) =>
      isObject(value) &&
      Object.values(value).every((one) => typeof one === 'string') &&
      Object.keys(value).length > 0,
    'has to be an object of texts',
  ),
  v.check(
    (value) => Object.keys(value).every((key) => /^[a-z0-9.-]+$/.test(key)),
    'has a value whose name is not of a-z, 0-9, . and - only',
  ),
);

/** One piece of advice: the heads of the files say what its fields mean. */
export type Knob = v.InferOutput<ReturnType<typeof knobForm>>;

function knobForm(server: ServerName) {
  return closed({
    name,
    context: oneOf(contexts[server]),
    values,
    default: orAbsent(text),
    claim: text,
    since: v.pipe(text, v.regex(/^\d+\.\d+\.\d+$/, 'has to be a version such as 1.9.1')),
    where: orAbsent(where),
    source: text,
  });
}

/** The knobs of a server, in the file's order. Throws Error with file and field when one is wrong. */
export function readKnobs(server: ServerName): Knob[] {
  const file = path.join(shippedConfigs, 'knobs', `${server}.yaml`);
  return checkKnobs(server, parse(readFileSync(file, 'utf8')), file);
}

/** @param file for the message */
export function checkKnobs(server: ServerName, found: unknown, file: string): Knob[] {
  const outcome = check(list(knobForm(server)), found, { everything: true });
  if (!('value' in outcome))
    throw new Error(
      `${file}: ${placeOf(outcome.at)}${outcome.ofField ? ' ' : ': '}${outcome.problem}`,
    );
  const names = outcome.value.flatMap(valueNames);
  const twice = names.find((one, index) => names.indexOf(one) !== index);
  if (twice !== undefined) throw new Error(`${file}: two are named "${twice}"`);
  return outcome.value;
}

/** One value of a knob: what is tried. */
export interface Candidate {
  /** The knob's, with the value's where it has several: sendfile-off. */
  name: string;
  knob: Knob;
  laid: LaidLines;
  /** The server has it where a config does not say. */
  isDefault: boolean;
}

/** Those of its values that are not the same here. @param cores of the server */
export function candidatesOf(knob: Knob, cores: number): Candidate[] {
  const all = Object.entries(knob.values).map(
    ([value, lines]) =>
      [
        value,
        lines.replaceAll('{cores}', String(cores)).replaceAll('{twice-cores}', String(2 * cores)),
      ] as const,
  );
  return all
    .filter(([, lines], index) => all.findIndex(([, others]) => others === lines) === index)
    .map(([value, lines]) => ({
      name: nameOf(knob, value),
      knob,
      laid: { context: knob.context, lines },
      isDefault: knob.default === value,
    }));
}

function nameOf({ name, values }: Knob, value: string): string {
  return Object.keys(values).length === 1 && value !== 'off'
    ? name
    : `${name}-${value}`.replaceAll('.', '-');
}

/** Of all its values, also of those that come to the same on few cores. */
export function valueNames(knob: Knob): string[] {
  return Object.keys(knob.values).map((value) => nameOf(knob, value));
}

/** What a knob would meet. */
export interface Surroundings {
  facts: Facts;
  listen: Pick<Listen, 'tls'>;
  load: Pick<LoadProfile, 'protocol' | 'headers' | 'body'>;
  bodyBytes: number;
  /** Of the config as it is, on this machine. */
  workers: number;
  build: Build;
}

/** undefined where it is worth a try. One reason is said alike of all that it holds for. */
export function whyNot(
  { knob: { since, where = {}, context }, laid, isDefault }: Candidate,
  here: Surroundings,
  lay: (laid: readonly LaidLines[]) => { changes: readonly Change[] },
): string | undefined {
  const { facts, listen, load, build } = here;
  const http2 = isHttp2(load.protocol);
  if (where.never !== undefined) return where.never;
  if (!atLeast(build.version, since)) return `needs version ${since}, and this is ${build.version}`;
  if (where.build !== undefined && !build.answer.includes(where.build))
    return `this build is without ${where.build}`;
  if (where.tls === true && !listen.tls) return 'only with TLS';
  if (where.http2 === true && !http2) return 'only with HTTP/2';
  if (where.http2 === false && http2) return 'only with HTTP/1.1';
  if (where.proxied === true && !facts.proxied) return 'only where requests are passed on';
  if (where.static === true && facts.proxied) return 'only where files are served';
  if (where.logs === true && !facts.logs) return 'requests are not logged';
  if (where.logs === true && laid.lines.includes('...') && !facts.logLine)
    return 'the config has no line for its log that takes it';
  if (where.acceptsGzip === true && !acceptsGzip(load))
    return "only where requests accept gzip: --load with -H 'Accept-Encoding: gzip'";
  if (where.sendsBody === true && (load.body ?? '') === '')
    return 'only where requests have a body';
  if (where.workers !== undefined && here.workers < where.workers)
    return `only with ${counts(where.workers, 'worker')} or more`;
  if (where.bodyBytes !== undefined && here.bodyBytes < where.bodyBytes)
    return `only with bodies of ${counts(where.bodyBytes, 'byte')} or more`;
  const { changes } = lay([laid]);
  if (changes.length === 0)
    return context === 'ssl' ? 'already so, or no TLS of its own' : 'already so';
  return isDefault && changes.every(({ instead }) => instead === undefined)
    ? 'already so, by default'
    : undefined;
}

function acceptsGzip({ headers = {} }: Surroundings['load']): boolean {
  return Object.entries(headers).some(
    ([name, value]) => name.toLowerCase() === 'accept-encoding' && /gzip|\*/.test(value),
  );
}
