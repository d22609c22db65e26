// Starts a config once as it is and once with each knob, before anything is measured.
import { UserError } from '../../errors.ts';
import type { ReadyRun } from '../../cli/run.ts';
import type { RunOptions } from '../../cli/run-options.ts';
import type { Side } from '../../cli/side-loads.ts';
import { canBeApart, tryOnce } from '../../cli/start-sides.ts';
import { present } from '../../present.ts';
import type { PlanDraft } from '../../runner/plan.ts';
import type { ConfiguredServer } from '../../scenario/model.ts';
import { pathsOf } from '../../scenario/pages.ts';
import { serverBuild, type OwnConfig } from '../../servers/index.ts';
import { overlayTarget } from '../../servers/own/own-config.ts';
import { whyNot, type Candidate } from './catalogue.ts';
import { planOf, type AsItIs, type Tested } from './ranking.ts';

export interface KnobsAsked {
  config: OwnConfig;
  side: Side;
  server: ConfiguredServer;
  wanted: readonly Candidate[];
}

/** Warm-up of both measurements; twice as long over TLS, for the handshakes. */
const lookWarmupSeconds = 0.2;

interface AskedPart {
  name: string;
  title: string;
  some: readonly Tested[];
  lookSeconds?: number;
}

/** The config as it is, and with each knob that can be measured, after each was started once. */
export type Trial = Awaited<ReturnType<typeof tryKnobs>>;

/**
 * Starts the config, and each knob that may apply. Returns the knobs that can be measured, and why the others cannot.
 * @throws UserError if the config as it is does not start; the signal's reason
 */
export async function tryKnobs(
  run: ReadyRun,
  { config: ownConfig, side, server, wanted }: KnobsAsked,
  options: RunOptions,
) {
  const { listen, given, load } = side;
  const { signal } = run;
  const coreCount = run.cores.serverCpus.length;
  const tried = await tryOnce(side, run);
  const ownLoopbacks = await canBeApart([tried], run, options);
  const page: Tested['page'] = { ...side.page, bodyBytes: Math.round(tried.answer.bytes) };
  const asItIs: AsItIs = { given, server, load, page };
  const config = await overlayTarget(ownConfig, {
    port: listen.port,
    paths: pathsOf(side.page),
    cores: coreCount,
  });
  const overlay = (chosen: readonly Candidate[]) =>
    config.overlay(chosen.map((candidate) => candidate.overlay));
  const withKnobs = (name: string, chosen: readonly Candidate[]): Tested => {
    const asIs = { ...server.asIs, overlays: chosen.map(({ overlay }) => overlay) };
    return { name, server: { ...server, workers: overlay(chosen).workers, asIs }, page };
  };
  const binary = server.binary ?? run.tools.servers[ownConfig.server] ?? ownConfig.server;
  const surroundings = {
    facts: config.facts,
    listen,
    load,
    bodyBytes: tried.answer.bytes,
    workers: server.workers === 'server-cores' ? coreCount : server.workers,
    build: await serverBuild(ownConfig.server, binary, signal, server.binary !== undefined),
  };
  const changed = new Map<Candidate, Tested>();
  const leftOut: { name: string; why: string }[] = [];
  for (const candidate of wanted) {
    const { name } = candidate;
    const why = whyNot(candidate, surroundings, (overlays) => config.overlay(overlays));
    if (why !== undefined) {
      leftOut.push({ name, why });
      continue;
    }
    const tested = withKnobs(name, [candidate]);
    try {
      const { answer } = await tryOnce({ ...side, server: tested.server }, run);
      changed.set(candidate, { ...tested, page: { ...page, bodyBytes: Math.round(answer.bytes) } });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof UserError)) throw error;
      const reason = /does not accept it: (.*)$/m.exec(error.message)?.[1] ?? error.message;
      leftOut.push({ name, why: reason });
    }
  }
  return {
    asItIs,
    redirections: tried.redirections,
    changed,
    leftOut,
    overlay,
    withKnobs,
    /**
     * Plans a part of the command.
     * @param lookSeconds measured time of a side in a look, if the load sets no rate; absent: the usual time
     * @param maxTimeSeconds of this part; absent: as long as it needs
     */
    plan(
      { name, title, some, lookSeconds }: AskedPart,
      maxTimeSeconds: number | undefined,
    ): PlanDraft {
      const isLook = lookSeconds !== undefined && load.rate === undefined;
      const { maxTimeSeconds: _, ...ofAllParts } = options;
      const warmupSeconds = lookWarmupSeconds * (listen.tls ? 2 : 1);
      return planOf(
        name,
        title,
        isLook ? { ...asItIs, load: { ...load, warmupSeconds } } : asItIs,
        some,
        run.cores,
        {
          ...(isLook ? { durationSeconds: lookSeconds } : {}),
          ...ofAllParts,
          ...present({ maxTimeSeconds }),
          exact: false,
          ownLoopbacks,
        },
      );
    },
  };
}
