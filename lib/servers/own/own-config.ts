// What a person's own config says, before anything is started.
import path from 'node:path';
import type { Listen, OwnConfig } from './listens.ts';
import { readH2o } from './h2o.ts';
import { readNghttpd } from './nghttpd.ts';
import { readNginxConfig } from './nginx-includes.ts';
import { nginxListens, nginxWorkers } from './nginx-listens.ts';
import { readText } from './read-text.ts';
import { recognise } from './recognise.ts';

/** Reads one with all that it includes. Throws UserError, in one line, when it cannot be read or is none of these servers'. */
export async function readOwnConfig(name: string): Promise<OwnConfig> {
  const file = path.resolve(name);
  const text = await readText(file);
  const server = recognise(text, file);
  return { server, file, ...await readers[server](file, text) };
}

const readers: Record<OwnConfig['server'], (file: string, text: string) => Promise<{ workers: OwnConfig['workers']; listens: readonly Listen[] }>> = {
  async nginx(file, text) {
    const config = await readNginxConfig(file, text);
    return { workers: nginxWorkers(config), listens: nginxListens(config, file) };
  },
  h2o: readH2o,
  nghttpd: readNghttpd,
};
