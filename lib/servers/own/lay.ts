// What knobs come to on a person's own config, whichever server's it is.
import { UserError } from '../../errors.ts';
import type { LaidLines } from '../../scenario/model.ts';
import { wordOf } from '../nghttpd-flags.ts';
import { h2oWorkers } from './h2o.ts';
import type { OwnConfig } from './listens.ts';
import { parseNghttpd, nghttpdWorkers } from './nghttpd.ts';
import { readNginxConfig } from './nginx-includes.ts';
import { nginxWorkers } from './nginx-listens.ts';
import { readText } from './read-text.ts';
import { readYaml } from './yaml-tree.ts';
import { atEnd, laidOrigin, spanOfLine, type Edit, type Facts } from './edits.ts';
import { h2oEdits, h2oFacts, layH2o } from './lay-h2o.ts';
import { layNginx, nginxEdits, nginxFacts, type PageAt } from './lay-nginx.ts';

/** A config as it is, where the page is served. */
export interface Layable {
  facts: Facts;
  /** What the files become with the lines, and how many workers there are then. No edits: it says all that already. */
  lay(laid: readonly LaidLines[]): { edits: Edit[]; workers: OwnConfig['workers'] };
}

/** Reads it. Throws UserError as readOwnConfig does. */
export async function layable({ server, file }: Pick<OwnConfig, 'server' | 'file'>, page: PageAt): Promise<Layable> {
  const text = await readText(file);
  switch (server) {
    case 'nginx': {
      const config = await readNginxConfig(file, text);
      return {
        facts: nginxFacts(config, page),
        lay(laid) {
          const after = layNginx(config, laid, page);
          return { edits: nginxEdits(config, after, file), workers: nginxWorkers(after) };
        },
      };
    }
    case 'h2o': {
      const config = await readYaml(file, text);
      return {
        facts: h2oFacts(config),
        lay(laid) {
          const after = layH2o(config, laid);
          return { edits: h2oEdits(config, after, file), workers: h2oWorkers(after) };
        },
      };
    }
    case 'nghttpd': return { facts: { proxied: false, logs: false, logLine: false }, lay: (laid) => layNghttpd(file, text, laid) };
  }
}

function layNghttpd(file: string, text: string, laid: readonly LaidLines[]): ReturnType<Layable['lay']> {
  const wrong = laid.find(({ context }) => context !== 'flags');
  if (wrong !== undefined) throw new UserError(`nghttpd has no context "${wrong.context}" that flags can be laid over: it is flags`);
  const { flags: before } = parseNghttpd(file, text);
  const { flags } = parseNghttpd(file, text, laid);
  const edits = flags.filter(({ origin }) => origin === laidOrigin).flatMap((flag): Edit[] => {
    const was = before.findLast(({ name }) => name === flag.name);
    if (was === undefined) return [atEnd(file, text, wordOf(flag))];
    return was.value === flag.value ? [] : [{ file, line: was.line, ...spanOfLine(text, was.line), becomes: wordOf(flag) }];
  });
  return { edits, workers: nghttpdWorkers(flags) };
}
