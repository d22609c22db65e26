// What runs at an address already: it is asked, and otherwise left alone.
import type { AddressServer } from '../scenario/model.ts';
import { programOf } from '../scenario/variants.ts';
import { waitUntilReady } from './ready.ts';
import type { RunningServer, StartOptions } from './server.ts';

/** Returns once it has answered the page. Certificates are not verified, as of any server here. Throws UserError where it does not answer, or the signal's reason. */
export async function openAddress(spec: AddressServer, options: StartOptions): Promise<RunningServer> {
  const { page, protocol = 'http/1.1', request, tls, workers } = options;
  const signal = options.signal ?? new AbortController().signal;
  const answer = await waitUntilReady({ origin: spec.origin, page, protocol, request, tls, anyLength: true, isThere: true }, signal);
  return {
    name: programOf(spec),
    version: '',
    origin: spec.origin,
    workers,
    redirections: [],
    upstreams: [],
    answer,
    // Where it ends, its load fails.
    died: new Promise(() => undefined),
    stop: () => Promise.resolve(),
  };
}
