// Who set the pace.
import { generatorLost, limitOf, serverLost, usableCores, type SideCores } from '../analysis/limit.ts';
import { networkReason } from '../analysis/network.ts';
import { noiseOf, othersMatter, type RoundNoise } from '../analysis/noise.ts';
import { enumeration, percentRange } from '../format.ts';
import { sharesCores } from '../machine/cores.ts';
import { formatCpuList } from '../machine/cpu-list.ts';
import type { Environment, Result, VariantResult } from '../result/result.ts';

/** "core 1", "cores 4-7". */
export function coresText(cpus: readonly number[]): string {
  return `${cpus.length === 1 ? 'core' : 'cores'} ${formatCpuList(cpus)}`;
}

/** One sentence on who was at its limit. */
export function limitLines(result: Result): string[] {
  const measured = result.variants.filter(({ generatorShare }) => generatorShare !== null);
  // Of what runs at an address nothing is shared that is known.
  if (sharesCores(result.environment)) return known(measured).length === 0 ? [] : [sharedSentence(known(measured), result.environment)];
  return measured.length === 0 ? [] : [ownCoresSentence(measured, result.environment)];
}

function ownCoresSentence(measured: readonly VariantResult[], { serverCpus, generatorCpus, generatorHosts, cluster }: Environment): string {
  const generatorCores = cluster !== undefined ? cluster.generators * cluster.generatorCores : generatorHosts === undefined ? generatorCpus.length : generatorHosts.length * Math.min(...generatorHosts.map(({ cores }) => cores));
  const usable = (variant: VariantResult): SideCores => usableCores(variant, { server: serverCpus.length, generator: generatorCores });
  const servers = [...new Set(known(measured).map(({ server }) => server?.name ?? ''))];
  const shares = [
    ...servers.map((name) => {
      const its = known(measured).filter(({ server }) => server?.name === name);
      return `${withLink(name, its)} at ${percentRange(its.map(({ serverShare }) => serverShare))} of ${leftOf(its, serverLost)}${coresOf(its.map((one) => usable(one).server))}`;
    }),
    `${withLink('the generator', measured)} at ${percentRange(measured.map(({ generatorShare }) => generatorShare as number))} of ${leftOf(measured, generatorLost)}${coresOf(measured.map((one) => usable(one).generator))}`,
  ].join(', ');
  const limits = measured.map(limitOf);
  const serverBound = limits.every((one) => one === 'server' || one === 'both');
  const generatorBound = limits.every((one) => one === 'generator' || one === 'both');
  if (serverBound && generatorBound) return `Both sides were at their limit: ${shares}.`;
  if (serverBound) return `${servers.length === 1 ? `${servers[0]} was` : 'The servers were'} the limit: ${shares}.`;
  if (generatorBound) return `The generator was the limit: ${shares}.`;
  const reason = networkReason(measured);
  const words = measured.every(({ network }, index) => network !== null && limits[index] === 'neither') ? 'Neither was the limit' : 'Use of the cores';
  return `${words}: ${shares}${reason === '' ? '' : `; ${reason}`}.`;
}

type Known = VariantResult & { serverShare: number };

/** Those whose server's CPU time is known. */
function known(measured: readonly VariantResult[]): Known[] {
  return measured.filter((variant): variant is Known => variant.serverShare !== null);
}

/** The link of a network of the run's own runs on both sides' cores. */
function withLink(side: string, measured: readonly VariantResult[]): string {
  return `${side}${measured.some(({ network }) => network !== null) ? ' with the link' : ''}`;
}

/** From this share of shared cores on there is nothing left of them; the kernel takes some for neither side. */
const allOfThem = 0.9;

/** On shared cores each side takes what the other one leaves: the sum says whether they were used up. */
function sharedSentence(measured: readonly Known[], { serverCpus, generatorCpus }: Environment): string {
  const all = { server: serverCpus.length, generator: generatorCpus.length };
  // Shares are by the cores that a side can use; here by all of them, so that they add up.
  const used = measured.map((variant) => {
    const usable = usableCores(variant, all);
    return {
      server: (variant.serverShare * usable.server) / all.server, generator: ((variant.generatorShare as number) * usable.generator) / all.generator,
    };
  });
  const words = used.every(({ server, generator }) => server + generator >= allOfThem) ? 'and used them up' : 'and did not use them up';
  const servers = [...new Set(measured.map(({ server }) => server?.name))];
  const reason = networkReason(measured);
  return `Server and generator shared ${coresText(serverCpus)} ${words}: ${enumeration(servers.map(String))} took ${percentRange(used.map(({ server }) => server))}, `
    + `${withLink('the generator', measured)} ${percentRange(used.map(({ generator }) => generator))}${reason === '' ? '' : `; ${reason}`}.`;
}

/** What stands before a side's cores where it could not have all of them. */
function leftOf(measured: readonly VariantResult[], lost: (noise: RoundNoise) => number): string {
  const noises = measured.flatMap(({ rounds }) => rounds.flatMap((round) => noiseOf(round) ?? []));
  return noises.some((noise) => lost(noise) >= othersMatter) ? 'what was left of ' : '';
}

/** @param counts of the cores that it can use, one per variant */
function coresOf(counts: readonly number[]): string {
  const [count, ...others] = new Set(counts);
  if (others.length > 0) return 'the cores that it can use';
  return count === 1 ? 'its core' : `its ${count} cores`;
}
