// A whole command line of a load generator, as people have it in their notes.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import { nearest } from '../../nearest.ts';
import { problemOfLoadForm } from '../schema.ts';
import { linesOf, linesOfFile, pageListOf, readPageList, type ListLine, type PageList } from '../page-list.ts';
import { urlParts, type UrlParts } from '../url.ts';
import { commandOf, flagOf, parseFlags, type Flags, type Generator } from './command-line.ts';
import { h2loadGenerator } from './h2load.ts';
import { takeHeader } from './headers.ts';
import { abGenerator, weighttpGenerator, wrk2Generator, wrkGenerator } from './http1.ts';
import { shellPipeline, type Pipeline } from './shell-words.ts';
import { requestMethod } from './values.ts';
import { upperEnds, vegetaGenerator } from './vegeta.ts';

const generators: readonly Generator[] = [wrkGenerator, wrk2Generator, h2loadGenerator, abGenerator, weighttpGenerator, vegetaGenerator];
const names = generators.map(({ name }) => name);

/** A line, read with the list that it names: its URL or pages, where it has some, and its load. */
export interface LoadLine extends Partial<PageList> {
  /**
   * What it asks for of a server, and what it wants to be said as Host: of a header, or of the URL. Throws UserError in one line.
   * @param scheme of the server that is loaded, where the line has no URL
   */
  over(scheme?: UrlParts['scheme']): { load: LoadProfile; host?: string };
}

/**
 * Reads a line such as `wrk -t4 -c100 -d30s http://localhost:8080/a` or `echo "GET https://a.example/" | vegeta attack …`.
 * Flags that cannot be honoured are refused by name; what is done with the output is left out.
 * @throws UserError in one line
 */
export function readLoadLine(text: string): LoadLine {
  const pipeline = shellPipeline(text.replace(/^\s*\$\s/, ''), 'the load');
  const { generator, words, input, output } = programOf(pipeline);
  const { flags, others } = parseFlags(generator, words);
  const { method, ...pages } = targetOf(generator, flags, others, input);
  const { url } = pages;
  return {
    ...pages,
    over(scheme) {
      const { headers, ...load } = generator.load(flags, { scheme: url?.scheme ?? scheme, method });
      const { value: hostHeader, rest } = takeHeader(headers, 'host');
      const host = hostHeader ?? url?.host;
      const asked: LoadProfile = { command: commandOf(generator, pipeline), ...load, ...(Object.keys(rest).length === 0 ? {} : { headers: rest }), ...reportedBuckets(generator, output) };
      const problem = problemOfLoadForm(asked);
      if (problem !== undefined) throw new UserError(`${generator.name}: ${problem}`);
      return { load: asked, ...(host === undefined ? {} : { host }) };
    },
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
  const near = nearest(called, names);
  return new UserError(`there is no load generator "${called}" here: ${near === undefined ? '' : `did you mean ${near}? `}there are ${names.join(', ')}`);
}

/** What is asked for: the line's URL, or those of a file or of what is piped in. */
function targetOf(generator: Generator, flags: Flags, others: readonly string[], input: readonly string[] | undefined): Partial<PageList> & { method?: string } {
  const { name, listOption = '', bareAddresses = false } = generator;
  const given = flags.get(listOption);
  // vegeta's name for what is piped in.
  const list = given === 'stdin' ? undefined : given;
  const asked = [...(input === undefined ? [] : [`${input[0]} … |`]), ...(list === undefined ? [] : [`${flagOf(generator, listOption)} ${list}`]), ...others.map((word) => `"${word}"`)];
  if (asked.length > 1) throw new UserError(`${name}: ${asked[0]} and ${asked[1]}: one URL or list at a time; several URLs go into a file, --urls FILE`);
  if (generator === vegetaGenerator) {
    if (others[0] !== undefined) throw new UserError(`vegeta: "${others[0]}": write the URL as echo "GET URL" | vegeta attack …`);
    return targetsOf(input === undefined ? list : input);
  }
  if (list !== undefined) return readPageList(`${name} ${flagOf(generator, listOption)}`, list);
  const [url] = others;
  if (url === undefined) return {};
  return { url: urlParts(bareAddresses && !/^https?:\/\//i.test(url) ? `http://${url}` : url, name) };
}

/** vegeta's targets: of a file, or of the command whose output it reads. All have one method. */
function targetsOf(list: string | readonly string[] | undefined): Partial<PageList> & { method?: string } {
  if (list === undefined) return {};
  const [where, lines] = typeof list === 'string' ? [`vegeta -targets ${list}`, linesOfFile('vegeta -targets', list)] : pipedTargets(list);
  if (lines.length === 0) throw new UserError(`${where} has no target: write one, such as GET http://localhost/`);
  let method: string | undefined;
  const targets = lines.map(({ where, words: [verb = '', target, ...more] }) => {
    if (target === undefined || more.length > 0 || verb.endsWith(':')) {
      throw new UserError(`${where}: "${[verb, target, ...more].join(' ').trim()}" has to be one method and URL, such as GET http://localhost/ (headers are given with -header, a body with -body, for all)`);
    }
    method ??= requestMethod(`${where}:`, verb);
    if (verb !== method) throw new UserError(`${where}: ${verb} after ${method}: all targets have to have one method here`);
    return { where, target, weight: 1 };
  });
  return { ...pageListOf(where, targets), ...(method === undefined ? {} : { method }) };
}

function pipedTargets([command = '', ...words]: readonly string[]): [string, ListLine[]] {
  const [file, ...more] = words;
  if (command === 'cat' && file !== undefined && more.length === 0) return [`cat ${file}`, linesOfFile('cat', file)];
  if (command !== 'echo' && command !== 'printf') {
    throw new UserError(`vegeta: targets from ${command} cannot be honoured here: write echo "GET URL" | vegeta attack …, or -targets FILE`);
  }
  return ['vegeta', linesOf('vegeta', words.filter((word) => !/^-[neE]+$/.test(word)).join(' ').replaceAll('\\n', '\n'))];
}

/** Those of a `vegeta report -type='hist[…]'` behind it. */
function reportedBuckets(generator: Generator, output: readonly string[][]): Pick<LoadProfile, 'bucketSeconds'> {
  if (generator !== vegetaGenerator) return {};
  const report = output.find(([program = '', command]) => path.basename(program) === 'vegeta' && command === 'report');
  const buckets = report?.map((word) => /(?:^|=)(hist\[.*\])$/.exec(word)?.[1]).find((found) => found !== undefined);
  return buckets === undefined ? {} : { bucketSeconds: upperEnds(buckets) };
}
