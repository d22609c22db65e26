// npm run k8s: prints what a cluster with k6-operator takes to run a scenario, or has it run there.
import { stringify } from 'yaml';
import { UserError } from '../errors.ts';
import { loadHere, loadManifests, scriptManifest } from '../kubernetes/load.ts';
import type { ClusterRun, Manifest } from '../kubernetes/manifest.ts';
import { serverManifests } from '../kubernetes/server.ts';
import { runName } from '../runner/make-plan.ts';
import { findScenario, findVariants } from '../scenario/catalogue.ts';
import { isRunnable } from '../scenario/variants.ts';
import { typed } from '../setup/paths.ts';
import { parseInfluxUrl } from '../store/index.ts';
import { applied } from './k8s-apply.ts';
import { readRunOptions, runFlags } from './run-options.ts';
import { scenarioFlags } from './scenario.ts';
import {
  noInstall,
  ofForm,
  printHelp,
  readWords,
  seconds,
  wholeNumber,
  type Flag,
} from './words.ts';
import packageJson from '../../package.json' with { type: 'json' };

/** Of a run that is made from here. */
const applyFlags = {
  'influx-here': {
    value: 'URL',
    help: 'the same InfluxDB as this machine reaches it, http://user:password@… where the Secret is not to be read (--influx)',
  },
  rounds: { value: 'N', help: 'rounds, each with every variant once (6)' },
  'max-time': runFlags['max-time'],
  out: runFlags.out,
  verbose: runFlags.verbose,
  json: runFlags.json,
} as const satisfies Record<string, Flag>;

const k8sFlags = {
  influx: {
    value: 'URL',
    help: 'the InfluxDB where samples go and generators meet, as the cluster reaches it',
  },
  'influx-secret': { value: 'NAME', help: 'the Secret with its username and password (none)' },
  variants: scenarioFlags.variants,
  duration: {
    value: '10s',
    help: "measured time of each load (the article's, or its count of requests)",
  },
  generators: {
    value: 'N',
    help: 'how many k6 make each load together, each on a node of its own (2)',
  },
  'generator-cores': { value: 'N', help: 'cores of each generator (1)' },
  'generator-memory': { value: '512Mi', help: 'memory of each generator (512Mi)' },
  'server-cores': { value: 'N', help: 'cores of each server (2)' },
  'server-memory': { value: '512Mi', help: 'memory of each server (512Mi)' },
  image: { value: 'IMAGE', help: 'the image of docker/Dockerfile, as the cluster finds it' },
  namespace: { value: 'NS', help: "the namespace of all of it (kubectl's)" },
  cleanup: { help: 'have the operator delete each load, logs too, once it is over' },
  apply: { help: 'apply it with kubectl, wait, and print the table; removes it in the end' },
  ...applyFlags,
  ...noInstall,
  help: runFlags.help,
} as const satisfies Record<string, Flag>;

/** No node has as many cores, no cluster as many nodes to spare. */
const most = 1000;
const readWhole = (flag: string, text: string): number => wholeNumber(flag, text, most);
const readMemory = (flag: string, text: string): string =>
  ofForm(flag, text, /^[1-9]\d*(?:Mi|Gi)$/, 'give a whole number with Mi or Gi, such as 512Mi');
const readName = (flag: string, text: string): string =>
  ofForm(
    flag,
    text,
    /^(?!-)[a-z0-9-]{1,63}(?<!-)$/,
    'a name there has up to 63 small letters, digits and hyphens, none of these first or last',
  );
const readImage = (flag: string, text: string): string =>
  ofForm(
    flag,
    text,
    /^[\w.:/@-]+$/,
    'give an image as the cluster finds it, such as bakeoff:0.1.0 or HOST/bakeoff:0.1.0',
  );

/** Prints the manifests, or runs them. Returns 0; throws UserError and Interrupted. */
export async function k8sCommand(args: readonly string[]): Promise<number> {
  const words = readWords(args, k8sFlags);
  const {
    positionals: [name, extra],
    flags,
    read,
  } = words;
  if (name === undefined || flags.has('help')) {
    printHelp([`${typed('k8s')} NAME|FILE.ts --influx URL [flags]`], k8sFlags);
    return name === undefined && !flags.has('help') ? 2 : 0;
  }
  if (extra !== undefined)
    throw new UserError(`one scenario at a time: "${extra}" is one word too many`, 2);
  const whole = (flag: string, or: number): number => read(flag, readWhole) ?? or;
  const memory = (flag: string): string => read(flag, readMemory) ?? '512Mi';
  const influx = readInflux(flags.get('influx'));
  const namespace = read('namespace', readName);
  const scenario = await findScenario(name);
  const shown = findVariants(scenario, flags.get('variants')?.split(','));
  const image = read('image', readImage) ?? `bakeoff:${packageJson.version}`;
  const startedAt = new Date();
  const clusterRun: ClusterRun = {
    run: runName(scenario.name, startedAt),
    scenario,
    image,
    namespace,
    server: { cores: whole('server-cores', 2), memory: memory('server-memory') },
    generator: { cores: whole('generator-cores', 1), memory: memory('generator-memory') },
    generators: whole('generators', 2),
    influx,
    influxSecret: read('influx-secret', readName),
    durationSeconds: read('duration', (flag, text) => seconds(flag, text, 0.1)),
    cleanup: flags.has('cleanup'),
  };
  const variants = shown
    .filter(isRunnable)
    .map((variant) => ({ variant, load: loadHere(clusterRun, variant) }));
  const loads: Manifest[] = [];
  const servers: Manifest[] = [];
  for (const planned of variants) {
    const { manifests, origin } = await serverManifests(clusterRun, planned, 1);
    servers.push(...manifests);
    loads.push(...loadManifests(clusterRun, planned, origin, 1).manifests);
  }
  if (flags.has('apply')) {
    if (flags.has('cleanup'))
      throw new UserError(
        '--cleanup is for what is printed: --apply removes all that it has applied',
        2,
      );
    return applied(
      { clusterRun, shown, variants, here: flags.get('influx-here'), startedAt },
      readRunOptions(words),
    );
  }
  const forApply = Object.keys(applyFlags).find((flag) => flags.has(flag));
  if (forApply !== undefined)
    throw new UserError(`--${forApply} is for --apply: give both, or leave it out`, 2);
  // As kubectl reads them, to which no and off are no texts. Servers first; the loads are applied one after the other, by their labels.
  const all = [...servers, await scriptManifest(clusterRun), ...loads];
  console.log(
    `# The run ${clusterRun.run}. How to apply it: docs/machines.md.\n${all.map((manifest) => stringify(manifest, { version: '1.1', aliasDuplicateObjects: false, lineWidth: 0 })).join('---\n')}`,
  );
  return 0;
}

function readInflux(text: string | undefined): ReturnType<typeof parseInfluxUrl> {
  if (text === undefined)
    throw new UserError(
      '--influx is missing: the samples of all generators go to one InfluxDB, such as --influx http://influxdb:8086',
      2,
    );
  const influx = parseInfluxUrl(text);
  if (influx.credentials !== null)
    throw new UserError(
      '--influx: manifests are read by many, and have no passwords in them: put username and password into a Secret, and name it in --influx-secret',
      2,
    );
  return influx;
}
