// Whether a knob can mean anything for a config and a load, and why not.
import { whole } from '../format.ts';
import type { LoadProfile } from '../scenario/model.ts';
import type { Build, Listen } from '../servers/index.ts';
import { atLeast } from '../setup/version.ts';
import type { Candidate } from './catalogue.ts';
import type { Facts } from '../servers/own/edits.ts';
import type { Layable } from '../servers/own/own-config.ts';
import { isHttp2 } from '../scenario/protocols.ts';

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
export function whyNot({ knob: { since, where = {}, context }, laid, isDefault }: Candidate, here: Surroundings, config: Pick<Layable, 'lay'>): string | undefined {
  const { facts, listen, load, build } = here;
  const http2 = isHttp2(load.protocol);
  if (where.never !== undefined) return where.never;
  if (!atLeast(build.version, since)) return `needs version ${since}, and this is ${build.version}`;
  if (where.build !== undefined && !build.answer.includes(where.build)) return `this build is without ${where.build}`;
  if (where.tls === true && !listen.tls) return 'only with TLS';
  if (where.http2 === true && !http2) return 'only with HTTP/2';
  if (where.http2 === false && http2) return 'only with HTTP/1.1';
  if (where.proxied === true && !facts.proxied) return 'only where requests are passed on';
  if (where.static === true && facts.proxied) return 'only where files are served';
  if (where.logs === true && !facts.logs) return 'requests are not logged';
  if (where.logs === true && laid.lines.includes('...') && !facts.logLine) return 'the config has no line for its log';
  if (where.acceptsGzip === true && !acceptsGzip(load)) return "only where requests accept gzip: --load with -H 'Accept-Encoding: gzip'";
  if (where.sendsBody === true && (load.body ?? '') === '') return 'only where requests have a body';
  if (where.workers !== undefined && here.workers < where.workers) return `only with ${where.workers} workers or more`;
  if (where.bodyBytes !== undefined && here.bodyBytes < where.bodyBytes) return `only with bodies of ${whole(where.bodyBytes)} bytes or more`;
  const { edits } = config.lay([laid]);
  if (edits.length === 0) return context === 'ssl' ? 'already so, or no TLS of its own' : 'already so';
  return isDefault && edits.every(({ begin, end }) => begin === end) ? 'already so, by default' : undefined;
}

function acceptsGzip({ headers = {} }: Surroundings['load']): boolean {
  return Object.entries(headers).some(([name, value]) => name.toLowerCase() === 'accept-encoding' && /gzip|\*/.test(value));
}
