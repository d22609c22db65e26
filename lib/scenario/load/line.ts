// A complete command line of a load generator.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import { offer } from '../../nearest.ts';
import { problemOfLoadForm } from '../schema.ts';
import { urlParts, type UrlParts } from '../url.ts';
import { readCommand, wordsOfLine } from './command-line.ts';
import { h2loadGenerator } from './h2load.ts';
import { takeHeader } from './headers.ts';
import { abGenerator, weighttpGenerator, wrkGenerator } from './http1.ts';
import { vegetaGenerator } from './vegeta.ts';

const generators = [wrkGenerator, h2loadGenerator, abGenerator, weighttpGenerator, vegetaGenerator];
const names = generators.map(({ name }) => name);

/** A line, read: its URL, if it has one, and its load. */
export interface LoadLine {
  url?: UrlParts;
  /**
   * The load, and the Host to ask for: of a header, or of the URL. Throws UserError in one line.
   * @param scheme of the server that is loaded, where the line has no URL
   */
  over(scheme?: UrlParts['scheme']): { load: LoadProfile; host?: string };
}

/** Reads a load generator's line such as `wrk -t4 -c100 -d30s http://localhost:8080/a`. Throws UserError. */
export function readLoadLine(text: string): LoadLine {
  const [program, ...words] = wordsOfLine(text, 'the load');
  if (program === undefined)
    throw new UserError(
      `give the command line of a load generator, such as "wrk -c 100 -d 10": ${names.join(', ')}`,
    );
  const called = path.basename(program.text);
  const generator = generators.find(({ name }) => name === called);
  if (generator === undefined)
    throw new UserError(`there is no load generator "${called}" here: ${offer(called, names)}`);
  const { name, subcommand } = generator;
  if (subcommand !== undefined && words.shift()?.text !== subcommand)
    throw new UserError(`${name}: only "${name} ${subcommand}" makes load: give a line with it`);
  const {
    flags,
    others: [target, more],
    shown,
  } = readCommand(generator, words);
  if (more !== undefined)
    throw new UserError(
      `${name}: "${target}" and "${more}": one URL at a time; several pages are --urls FILE`,
    );
  if (target !== undefined && generator === vegetaGenerator)
    throw new UserError(`vegeta: leave "${target}" out: the URL is --url`);
  const url =
    target === undefined
      ? undefined
      : urlParts(
          /^(ab|weighttp)$/.test(name) && !/^https?:\/\//i.test(target)
            ? `http://${target}`
            : target,
          name,
        );
  return {
    ...(url === undefined ? {} : { url }),
    over(scheme) {
      const { headers, ...load } = generator.load(flags, url?.scheme ?? scheme);
      const { value: hostHeader, rest } = takeHeader(headers, 'host');
      const host = hostHeader ?? url?.host;
      const asked: LoadProfile = {
        command: shown,
        ...load,
        ...(Object.keys(rest).length === 0 ? {} : { headers: rest }),
      };
      const problem = problemOfLoadForm(asked);
      if (problem !== undefined) throw new UserError(`${name}: ${problem}`);
      return { load: asked, ...(host === undefined ? {} : { host }) };
    },
  };
}
