// A whole command line of a load generator, as people have it in their notes.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import { nearest } from '../nearest.ts';
import { problemOfLoadForm } from '../schema.ts';
import { urlParts, type UrlParts } from '../url.ts';
import { commandOf, parseFlags, type Generator } from './command-line.ts';
import { h2loadGenerator } from './h2load.ts';
import { takeHeader } from './headers.ts';
import { abGenerator, weighttpGenerator, wrkGenerator } from './http1.ts';
import { shellPipeline, type Pipeline } from './shell-words.ts';
import { requestMethod } from './values.ts';
import { upperEnds, vegetaGenerator } from './vegeta.ts';

const generators: readonly Generator[] = [wrkGenerator, h2loadGenerator, abGenerator, weighttpGenerator, vegetaGenerator];
const names = generators.map(({ name }) => name);

export interface LoadLine {
  load: LoadProfile;
  /** Absent where the line has none. */
  url?: UrlParts;
  /** What the line wants to be said as Host: of a header, or of the URL. */
  host?: string;
}

/**
 * Reads a line such as `wrk -t4 -c100 -d30s http://localhost:8080/a` or `echo "GET https://a.example/" | vegeta attack …`.
 * Flags that cannot be honoured are refused by name; what is done with the output is left out.
 * @param scheme of the server that is loaded, where the line has no URL
 * @throws UserError in one line
 */
export function loadOfLine(text: string, scheme?: UrlParts['scheme']): LoadLine {
  const pipeline = shellPipeline(text.replace(/^\s*\$\s/, ''), 'the load');
  const { generator, words, input, output } = programOf(pipeline);
  const { flags, others } = parseFlags(generator, words);
  const { method, address } = input === undefined ? { method: undefined, address: onlyUrl(generator, others) } : echoedTarget(input, others);
  const url = address === undefined ? undefined : urlParts(withScheme(generator, address), generator.name);
  const { headers, ...load } = generator.load(flags, { scheme: url?.scheme ?? scheme, method });
  const { value: hostHeader, rest } = takeHeader(headers, 'host');
  const host = hostHeader ?? url?.host;
  const asked: LoadProfile = { command: commandOf(generator, pipeline), ...load, ...(Object.keys(rest).length === 0 ? {} : { headers: rest }), ...reportedBuckets(generator, output) };
  const problem = problemOfLoadForm(asked);
  if (problem !== undefined) throw new UserError(`${generator.name}: ${problem}`);
  return {
    load: asked,
    ...(url === undefined ? {} : { url }),
    ...(host === undefined ? {} : { host }),
  };
}

interface Program {
  generator: Generator;
  /** Behind its name and command. */
  words: string[];
  /** The command whose output it reads. */
  input?: string[];
  /** The commands that read its output. */
  output: string[][];
}

/** They change nothing about the load. */
const leftOutBefore = ['time', 'sudo', 'nohup'];

function programOf(pipeline: Pipeline): Program {
  const [first = [], ...others] = pipeline.map((words) => words.map(({ text }) => text));
  const reads = generatorOf(first) === undefined && others[0] !== undefined && generatorOf(others[0]) !== undefined;
  const [own, output] = reads ? [others[0] as string[], others.slice(1)] : [first, others];
  const generator = generatorOf(own);
  if (generator === undefined) throw unknownProgram(own);
  const { name, subcommand } = generator;
  const words = own.slice(own.findIndex((word) => !leftOutBefore.includes(word)) + 1);
  if (subcommand !== undefined && words[0] !== subcommand) throw new UserError(`${name}: only "${name} ${subcommand}" makes load: give a line with it`);
  if (reads && generator !== vegetaGenerator) throw new UserError(`${name}: leave "${first[0]} … |" out: what it prints is not read`);
  return { generator, words: subcommand === undefined ? words : words.slice(1), output, ...(reads ? { input: first } : {}) };
}

/** Of the command's first word, whatever folder it names. */
function generatorOf(words: readonly string[]): Generator | undefined {
  const program = words.find((word) => !leftOutBefore.includes(word));
  return program === undefined ? undefined : generators.find(({ name }) => name === path.basename(program));
}

function unknownProgram(words: readonly string[]): UserError {
  const program = words.find((word) => !leftOutBefore.includes(word));
  if (program === undefined) return new UserError(`give the command line of a load generator, such as "wrk -c 100 -d 10": ${names.join(', ')}`);
  const later = words.findIndex((word) => !word.includes('://') && names.includes(path.basename(word)));
  if (later > 0) return new UserError(`leave "${words.slice(0, later).join(' ')}" out: the line begins with ${words[later]} (cores are given with --generator-cpus)`);
  const called = path.basename(program);
  return new UserError(`there is no load generator "${called}" here: did you mean ${nearest(called, names)}? There are ${names.join(', ')}`);
}

function onlyUrl({ name }: Generator, others: readonly string[]): string | undefined {
  if (others.length > 1) throw new UserError(`${name}: "${others[0]}" and "${others[1]}": one URL at a time`);
  if (name === 'vegeta' && others[0] !== undefined) throw new UserError(`vegeta: "${others[0]}": write the URL as echo "GET URL" | vegeta attack …`);
  return others[0];
}

function withScheme({ bareAddresses }: Generator, url: string): string {
  return bareAddresses === true && !/^https?:\/\//i.test(url) ? `http://${url}` : url;
}

/** What vegeta reads from a pipe: one method and URL. */
function echoedTarget([command = '', ...words]: readonly string[], others: readonly string[]): { method: string; address: string } {
  if (command !== 'echo' && command !== 'printf') {
    throw new UserError(`vegeta: targets from ${command} cannot be honoured here: write echo "GET URL" | vegeta attack …`);
  }
  if (others[0] !== undefined) throw new UserError(`vegeta: leave "${others[0]}" out`);
  const text = words.filter((word) => !/^-[neE]+$/.test(word)).join(' ').replaceAll('\\n', '\n').trim();
  const [method, url, ...more] = text.split(/\s+/);
  if (method === undefined || url === undefined || more.length > 0) {
    throw new UserError(`vegeta: "${text.replaceAll('\n', ' ')}" has to be one method and URL, such as GET http://localhost/ (headers are given with -header)`);
  }
  return { method: requestMethod('vegeta:', method), address: url };
}

/** Those of a `vegeta report -type='hist[…]'` behind it. */
function reportedBuckets(generator: Generator, output: readonly string[][]): Pick<LoadProfile, 'bucketSeconds'> {
  if (generator !== vegetaGenerator) return {};
  const report = output.find(([program = '', command]) => path.basename(program) === 'vegeta' && command === 'report');
  const buckets = report?.map((word) => /(?:^|=)(hist\[.*\])$/.exec(word)?.[1]).find((found) => found !== undefined);
  return buckets === undefined ? {} : { bucketSeconds: upperEnds(buckets) };
}
