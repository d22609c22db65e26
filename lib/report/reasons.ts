// Why a comparison has its verdict or none, as clauses.
import type { Disagreement, Judgement, Obstacle } from '../analysis/judgement.ts';
import { metrics } from '../analysis/metrics.ts';
import { mostRoundsAdvised } from '../analysis/rounds.ts';
import { formatCpuList, percent, tolerance, whole } from '../format.ts';
import { present } from '../present.ts';
import type { OneSidedDisturbance } from '../result/finding.ts';
import type { Comparison } from '../result/result.ts';
import { metricWords } from './metric-words.ts';

/**
 * Returns a comparison with its reasons in words, as the result has it.
 * @param sameWithin a share, as in the result
 */
export function inWords(judgement: Judgement, sameWithin: number): Comparison {
  const { why: obstacle, disagreement, obstacles, ...rest } = judgement;
  return {
    ...rest,
    why: obstacle === null ? intervalText(judgement, sameWithin) : obstacleText(obstacle),
    ...present({ obstacle: obstacle?.kind }),
    disagreement: disagreement === null ? '' : disagreementText(disagreement),
    ...present({
      obstacles: obstacles?.map(({ metric, why }) => ({
        metric,
        why: obstacleText(why),
        obstacle: why.kind,
      })),
    }),
  };
}

/** Says why the interval gives this verdict. */
function intervalText({ metric, verdict, roundsNeeded }: Judgement, sameWithin: number): string {
  if (verdict === 'same') return `the 90 % interval is within ${tolerance(sameWithin)} of equal`;
  if (verdict === 'inconclusive') return `the interval includes 1: ${decidingText(roundsNeeded)}`;
  const isAbove = (verdict === 'faster') !== metrics[metric].lessIsBetter;
  return `the whole interval is ${isAbove ? 'above' : 'below'} 1`;
}

/** @param rounds as Comparison.roundsNeeded */
export function decidingText(rounds: number | null): string {
  if (rounds === null)
    return `even ${whole(mostRoundsAdvised)} rounds would probably not decide, a quieter machine may`;
  return `about ${rounds} rounds would probably decide`;
}

/** Says as a clause why there is no verdict. */
export function obstacleText(obstacle: Obstacle): string {
  switch (obstacle.kind) {
    case 'publishedOnly':
      return 'published only';
    case 'oneRate':
      return 'only one of the loads sets requests/s: their latencies are not of the same thing';
    case 'otherFiles':
      return 'their latencies are of pages with different numbers of files';
    case 'sameSetup':
      return 'the same config and load here';
    case 'noFigures':
      return metricWords[obstacle.metric].missing;
    case 'alsoLoaded':
      return `${strangerText(obstacle.by)} had connections to ${obstacle.name} too`;
    case 'otherCpus':
      return `${obstacle.name} might run on ${coresText(obstacle.cpus)} too`;
    case 'failing':
      return `${failedText(obstacle.successRatio)} of the requests of ${obstacle.name} failed`;
    case 'hanging':
      return `${percent(obstacle.share)} of the requests that ${obstacle.name} had under way were never answered`;
    case 'otherBodies':
      return `under load the bodies of ${obstacle.name}${pageText(obstacle.page)} had ${percent(obstacle.bodyRatio)} of the length of the page that was checked`;
    case 'severalBodies':
      return `${percent(obstacle.share)} of the bodies of ${obstacle.name} were far shorter or longer than its first one`;
    case 'belowRate':
      return `${obstacle.name} did not come to its rate`;
    case 'generatorLimit':
      return `the generator was the limit with ${obstacle.name}`;
    case 'stalled':
      return `the generator stalled in ${percent(obstacle.share)} of the turns of ${obstacle.name}`;
    case 'oneSided':
      return oneSidedText(obstacle.disturbance);
    case 'needsCores':
      return `needs ${obstacle.needed} server cores`;
    case 'needsRounds':
      return `needs ${obstacle.needed} rounds`;
  }
}

function pageText(page: string | undefined): string {
  return page === undefined ? '' : ` for ${page}`;
}

/** The share of requests that failed. 100 % stands only for all of them. */
function failedText(successRatio: number): string {
  return successRatio > 0 && successRatio < 0.005 ? 'over 99 %' : percent(1 - successRatio);
}

/** "core 0", "cores 0-2,5". */
export const coresText = (cpus: readonly number[]): string =>
  `${cpus.length === 1 ? 'core' : 'cores'} ${formatCpuList(cpus)}`;

/** @param by as Phase.alsoLoadedBy */
export const strangerText = (by: string): string => by || 'another program';

/** Returns why the same waits take more from one side than from the other. */
function unlikeText(unlike: 'depth' | 'cost' | 'jobs', other: string): string {
  switch (unlike) {
    case 'depth':
      return `and ${other} loses less by that, since it has more requests under way`;
    case 'cost':
      return `and ${other} loses less by that, since its requests take less CPU time`;
    case 'jobs':
      return 'and their background jobs then fall on fewer requests';
  }
}

/** What disturbed one variant more than the other. */
export function oneSidedText(disturbance: OneSidedDisturbance): string {
  const { kind, name, other, share, otherShare, unlike } = disturbance;
  if (kind === 'starved') {
    const waits = `${name} waited ${percent(share)} of its turns for cores that other programs used, ${other} ${percent(otherShare)}`;
    return unlike === null ? waits : `${waits}, ${unlikeText(unlike, other)}`;
  }
  const also = otherShare === 0 ? '' : `, ${other} in ${percent(otherShare)}`;
  return `${name} was stopped in ${percent(share)} of its time${also}`;
}

/** What to do about it. */
export const remedies: Readonly<Record<OneSidedDisturbance['kind'], string>> = {
  stopped: 'find what stops it (SIGSTOP, a debugger)',
  starved: 'end what else runs on this machine',
};

function disagreementText({ less, more, share, isTaken }: Disagreement): string {
  if (isTaken)
    return `other programs or the host left ${less} ${percent(share)} less of the server's CPU time than ${more}`;
  return `with ${less} the server's cores were ${percent(share)} less busy than with ${more}`;
}
