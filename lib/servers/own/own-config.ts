// Reads a user's own config before anything is started: for its facts, and for knobs.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { present } from '../../present.ts';
import type { Overlay } from '../../scenario/model.ts';
import { serverNames } from '../../setup/servers.ts';
import { serverKinds } from '../kinds.ts';
import { changesBetween, type PageAt, type ReadConfig } from './changes.ts';
import { readText } from '../config-files.ts';
import { otherServerHint, otherServerOf } from './other-servers.ts';
import type { OwnConfig } from './redirect.ts';

/**
 * Reads a config with its includes. Throws UserError if it cannot be read, or is not a config of these servers.
 * @param within the nginx config in whose http block a file without http { } runs
 */
export async function readOwnConfig(name: string, within?: string): Promise<OwnConfig> {
  const file = path.resolve(name);
  const kind = recognise(await readText(file), file);
  if (kind === 'site' && within === undefined)
    throw new UserError(
      `${file} is a part of an nginx config, without http { }: name the whole config, or the one to put it into by --in /etc/nginx/nginx.conf`,
    );
  const server = kind === 'site' ? 'nginx' : kind;
  const site = kind === 'site' ? present({ within }) : {};
  const { workers, listens, logFormats }: ReadConfig = await serverKinds[server].read(
    file,
    site.within,
  );
  return { server, file, workers, listens, ...present({ logFormats }), ...site };
}

export type OverlayTarget = Awaited<ReturnType<typeof overlayTarget>>;

/**
 * Reads a config for a page. `overlay` returns the changes that the lines of knobs make, and the number of workers with these changes.
 * Throws UserError as readOwnConfig does.
 */
export async function overlayTarget(
  { server, file, within }: Pick<OwnConfig, 'server' | 'file' | 'within'>,
  page: PageAt,
) {
  const config = await serverKinds[server].read(file, within);
  return {
    facts: config.facts(page),
    overlay(overlays: readonly Overlay[]) {
      const { settings, workers } = config.overlay(overlays, page);
      return { changes: changesBetween(config.settings, settings), workers };
    },
  };
}

function recognise(text: string, file: string): OwnConfig['server'] | 'site' {
  const lines: string[] = [];
  for (const line of text.replace(/^\uFEFF/, '').split('\n')) {
    const withoutComment = line.replace(/(?:^|\s)#.*/, '').trim();
    if (withoutComment !== '') lines.push(withoutComment);
  }
  const bare = lines.join('\n');
  if (lines.length === 0) throw new UserError(`the config ${file} is empty`);
  const server = serverNames.find((name) => serverKinds[name].isConfig(bare));
  // Configs of some other servers look like h2o's.
  if (server !== 'nginx' && otherServerOf(bare) !== undefined)
    throw new UserError(otherServerHint(bare, file));
  if (server !== undefined) return server;
  if (
    /^(?:server|location|upstream|map)\b[^\n]*\{|^(?:listen|server_name|worker_processes)\s[^\n]*;/m.test(
      bare,
    )
  )
    return 'site';
  throw new UserError(otherServerHint(bare, file));
}
