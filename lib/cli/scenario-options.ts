// The flags of `scenario`, read and checked before anything is installed or started.
import { UserError } from '../errors.ts';
import { parseCpuList } from '../runner/cores.ts';
import { unknownWord } from '../scenario/nearest.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { parseInfluxUrl } from '../store/index.ts';
import { readWords, seconds, wholeNumber, type Flag } from './words.ts';

export const scenarioFlags = {
  'rounds': { value: 'N', help: 'rounds, each with every variant once (6, or the scenario\'s; a verdict needs 4)' },
  'duration': { value: '10s', help: 'measured time per variant and round (the article\'s)' },
  'variants': { value: 'a,b', help: 'only these variants' },
  'quick': { help: 'at most 4 short rounds, for a first look' },
  'exact': { help: 'threads and workers as published, instead of scaled to this machine' },
  'server-cpus': { value: '1', help: 'cores of the server, e.g. 2-3 (the upper half)' },
  'generator-cpus': { value: '0', help: 'cores of the load generator, InfluxDB and the rest (the lower half)' },
  'store': { value: 'influx|none', help: 'where samples go (influx)' },
  'influx': { value: 'URL', help: 'an InfluxDB 1.x or 2.x that runs already, instead of a local one' },
  'out': { value: 'DIR', help: 'folder of the results (results)' },
  'json': { help: 'the result as JSON on stdout, everything else on stderr' },
  'help': { help: 'this text' },
} as const satisfies Record<string, Flag>;

export interface ScenarioOptions {
  /** Absent: list the scenarios. */
  name?: string;
  help: boolean;
  /** Absent: the scenario's. */
  rounds?: number;
  durationSeconds?: number;
  variants?: string[];
  quick: boolean;
  exact: boolean;
  serverCpus?: number[];
  generatorCpus?: number[];
  /** 'local': an influxd of our own. */
  store: 'local' | 'none' | { url: string };
  /** Absolute. */
  out: string;
  json: boolean;
}

const stores = ['influx', 'none'];

/** @throws UserError (exit code 2) for words that are wrong or do not go together */
export function readScenarioOptions(args: readonly string[]): ScenarioOptions {
  const { positionals, flags } = readWords(args, scenarioFlags);
  const [name, extra] = positionals;
  if (extra !== undefined) throw new UserError(`one scenario at a time: "${extra}" is one word too many`, 2);
  const given = <T>(flag: keyof typeof scenarioFlags, read: (text: string) => T): T | undefined => {
    const text = flags.get(flag);
    return text === undefined ? undefined : read(text);
  };
  return {
    ...present({
      name,
      rounds: given('rounds', (text) => wholeNumber('--rounds', text, 1000)),
      durationSeconds: given('duration', (text) => seconds('--duration', text, 0.1)),
      variants: given('variants', (text) => text.split(',')),
      serverCpus: given('server-cpus', (text) => parseCpuList(text, '--server-cpus')),
      generatorCpus: given('generator-cpus', (text) => parseCpuList(text, '--generator-cpus')),
    }),
    help: flags.has('help'),
    quick: flags.has('quick'),
    exact: flags.has('exact'),
    store: readStore(flags.get('store'), flags.get('influx')),
    out: fromCallersFolder(flags.get('out') ?? 'results'),
    json: flags.has('json'),
  };
}

function readStore(store: string | undefined, influx: string | undefined): ScenarioOptions['store'] {
  if (store !== undefined && !stores.includes(store)) throw unknownWord('store', store, stores);
  if (influx === undefined) return store === 'none' ? 'none' : 'local';
  if (store === 'none') throw new UserError('--store none and --influx do not go together: leave one out', 2);
  parseInfluxUrl(influx);
  return { url: influx };
}

/** The properties that have a value: exactOptionalPropertyTypes tells absent from undefined. */
function present<T extends object>(properties: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
