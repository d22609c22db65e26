// The model of a scenario: what is compared, under which load, and what the article published.
// Scenario files import from here only; everything else in the project reads these types.

/** One web server with its composed config. `config` names files of `server-configs/<name>/`: a base and one per knob. */
export interface ServerSpec {
  name: 'nginx';
  /**
   * File names without `.conf`, in the order in which they are composed; the first one is the base. A config of your own
   * is named by its absolute path.
   */
  config: readonly string[];
  /**
   * Worker processes: a number, or 'server-cores' (one per server core; the rendered config names the number,
   * since `auto` ignores affinity). `articleWorkers` is what the article had; `--exact` runs that.
   */
  workers: number | 'server-cores';
  articleWorkers: number;
  /** The fewest workers under which the variant still means what it says (accept_mutex needs 2); default 1. */
  minWorkers?: number;
}

/** A load profile as parsed from an article's command line, before it is fitted to this machine. */
export interface LoadProfile {
  /** The command line as the article gives it, e.g. `wrk -c 100 -t 10 -d 10`. */
  command: string;
  protocol: 'http/1.0' | 'http/1.1';
  connections: number;
  /** Generator threads of the article; fitted to the generator's cores unless `--exact`. */
  threads: number;
  keepAlive: boolean;
  /** One of the two is set. */
  durationSeconds?: number;
  requests?: number;
}

/** Figures that an article printed for one variant. Units are in the names; what it did not print is left out. */
export interface Published {
  rps: number;
  transferBytesPerSecond?: number;
  latencyMs?: { mean: number; sd: number; max: number; withinSdPercent: number };
  perThreadRps?: { mean: number; sd: number; max: number; withinSdPercent: number };
  requests?: number;
  /** Everything that the generator read, headers included. */
  receivedBytes?: number;
  seconds?: number;
  errorsPerMillion?: number;
}

export interface Variant {
  name: string;
  server: ServerSpec;
  /** Absent: nobody published this variant (it is ours). */
  published?: Published;
  /** Not run unless `--variants` names it: beyond the article. */
  onRequest?: boolean;
  /** The variant its ratio is taken against; default: the scenario's first variant. */
  against?: string;
  /** One sentence shown with the row, e.g. why it stands here. */
  note?: string;
}

export interface Scenario {
  name: string;
  /** One line for the list of scenarios. */
  title: string;
  article: { id: '000' | '001' | '002' | '003' | '004'; title: string; year: number };
  /** The knob in words, for the sentence under the table: "open_file_cache". */
  knob: string;
  load: LoadProfile;
  /**
   * The page that is asked for: the path of its URL (`/` is index.html of `server-configs/www/`), and the exact length
   * that its body must have.
   */
  page: { path: string; bodyBytes: number };
  variants: readonly Variant[];
  /** Things a reader of the table has to know, e.g. kernel settings of the article that are not applied here. */
  footnotes?: readonly string[];
}

/** Checks a scenario and returns it unchanged. Throws an Error that names the field when something is wrong. */
export function defineScenario(scenario: Scenario): Scenario {
  if (!/^[a-z0-9-]+$/.test(scenario.name)) throw new Error(`scenario "${scenario.name}": a name may have a-z, 0-9 and - only`);
  const names = scenario.variants.map((variant) => variant.name);
  if (names.length === 0) throw new Error(`scenario ${scenario.name}: has no variants`);
  for (const name of names) {
    if (!/^[a-z0-9-]+$/.test(name)) throw new Error(`scenario ${scenario.name}: variant "${name}" may have a-z, 0-9 and - only`);
    if (names.indexOf(name) !== names.lastIndexOf(name)) throw new Error(`scenario ${scenario.name}: two variants are named "${name}"`);
  }
  for (const variant of scenario.variants) {
    if (variant.against !== undefined && !names.includes(variant.against)) {
      throw new Error(`scenario ${scenario.name}: variant "${variant.name}" is against "${variant.against}", which is not there`);
    }
  }
  return scenario;
}
