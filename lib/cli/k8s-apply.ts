// npm run k8s -- … --apply: the run in the cluster, from here.
import { rmdir } from 'node:fs/promises';
import { UserError } from '../errors.ts';
import { type Interrupt, underSignals } from '../interrupt.ts';
import { type ClusterOptions, openCluster, requireIdle } from '../kubernetes/cluster.ts';
import { type Kubectl, findKubectl } from '../kubernetes/kubectl.ts';
import { imageVersions } from '../kubernetes/server.ts';
import { readEnvironment } from '../machine/cores.ts';
import { readProcessors } from '../machine/processors.ts';
import { createRunProgress } from '../report/terminal.ts';
import { headingLines } from '../report/heading.ts';
import { wrapLines } from '../report/table.ts';
import type { Environment } from '../result/result.ts';
import { defaultSameWithin, serversOf } from '../runner/make-plan.ts';
import type { Plan } from '../runner/plan.ts';
import { checkResultsFolder, createRunFolder, explainFailure } from '../runner/results-folder.ts';
import { runRounds } from '../runner/run.ts';
import type { Variant } from '../scenario/model.ts';
import { type Store, openStore, parseInfluxUrl } from '../store/index.ts';
import type { RunOptions } from './run-options.ts';
import { headingOf, outputWidth, progressEvents, report } from './run-output.ts';

export interface Applied extends Pick<ClusterOptions, 'clusterRun' | 'variants'> {
  /** All rows of the table. */
  shown: readonly Variant[];
  /** --influx-here. */
  here: string | undefined;
  startedAt: Date;
}

/** Even, so that two variants are first equally often; a verdict takes 4. */
const defaultRounds = 6;

/** What a load takes beside itself, for estimates: the operator polls every 5 and 15 s, and the generators wait 3 s for each other. */
const overheadSeconds = 25;

const cpuNote =
  'how much CPU the servers use in a cluster is not known: there is no CPU time per request';

const spaceBytes = 10e6;

/** Runs it, prints its table, and in any case removes what was applied. Returns the exit code. Throws UserError and Interrupted. */
export async function applied(what: Applied, options: RunOptions): Promise<number> {
  await checkResultsFolder(options.out, spaceBytes);
  return underSignals(
    'removing what was applied; again to end at once, which leaves it there',
    async (interrupt) => {
      const kubectl = await findKubectl(what.clusterRun.namespace);
      await requireIdle(kubectl);
      const store = await openStore({ url: await urlHere(kubectl, what), folder: '' }).catch(
        (error: unknown) => {
          throw error instanceof UserError
            ? new UserError(
                `${error.message}; --influx-here says where this machine reaches the InfluxDB of --influx ${what.clusterRun.influx.url}`,
                error.exitCode,
              )
            : error;
        },
      );
      const { folder, run } = await createRunFolder(options.out, what.clusterRun.run);
      try {
        return await measured({ ...what, clusterRun: { ...what.clusterRun, run } }, options, {
          kubectl,
          store,
          interrupt,
          folder,
        });
      } catch (error) {
        throw await explainFailure(folder, error);
      } finally {
        // One that has come to nothing is empty.
        await rmdir(folder).catch(() => undefined);
        await store.close();
      }
    },
  );
}

/** The address with its user: the person's, or the Secret's. */
async function urlHere(
  kubectl: Kubectl,
  { here, clusterRun: { influx, influxSecret } }: Applied,
): Promise<string> {
  const given = here ?? influx.url;
  if (
    parseInfluxUrl(given, process.env['INFLUX_TOKEN']).credentials !== null ||
    influxSecret === undefined
  )
    return given;
  const url = new URL(given);
  const { data = {} } = await kubectl.get('secrets', influxSecret);
  const value = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString();
  url.username = encodeURIComponent(value('username'));
  url.password = encodeURIComponent(value('password'));
  return url.href;
}

async function measured(
  { clusterRun, shown, variants, startedAt }: Applied,
  options: RunOptions,
  {
    kubectl,
    store,
    interrupt,
    folder,
  }: { kubectl: Kubectl; store: Store; interrupt: Interrupt; folder: string },
): Promise<number> {
  const { run, scenario, image, server, generator, generators } = clusterRun;
  const print = options.json ? console.error : console.log;
  const progress = createRunProgress(process.stderr);
  const cores = {
    serverCpus: Array.from({ length: server.cores }, (_, cpu) => cpu),
    generatorCpus: [],
    serverHost: 'the cluster',
    generatorHosts: {
      names: Array.from({ length: generators }, (_, index) => `generator ${index + 1}`),
      coresEach: generator.cores,
      overheadSeconds,
    },
  };
  const { rounds = defaultRounds, maxTimeSeconds } = options;
  const plan: Plan = {
    run,
    scenario,
    shown,
    variants,
    groups: variants.map((planned) => ({ sides: [planned] })),
    cores,
    rounds,
    looks: [rounds],
    sameWithin: defaultSameWithin,
    quick: false,
    exact: false,
    trustConfig: false,
    ...(maxTimeSeconds === undefined ? {} : { maxTimeSeconds }),
  };
  const cluster = await openCluster({
    kubectl,
    clusterRun,
    variants,
    store,
    interrupt,
    say: progress.say,
  });
  const outcome = await (async () => {
    try {
      const servers = Object.fromEntries(
        serversOf(variants.map(({ variant }) => variant.server)).map((name) => [
          name,
          imageVersions[name],
        ]),
      );
      // Of this machine, which started it, and of where it was.
      const environment: Environment = {
        ...readEnvironment(readProcessors(), cores, { image, influxdb: store.version, ...servers }),
        coreNotes: [cpuNote],
        cluster: cluster.facts,
      };
      print(
        wrapLines(
          [...headingLines(headingOf(plan, environment)), cpuNote],
          outputWidth(options),
        ).join('\n'),
      );
      return await runRounds(
        { plan, folder, store, interrupt, runGroup: cluster.runGroup },
        environment,
        progressEvents(plan, progress),
        startedAt,
      );
    } finally {
      progress.clear();
      await cluster.close();
    }
  })();
  return report(outcome, folder, options, print);
}
