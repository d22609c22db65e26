// npm run knobs: which of the usual advice does anything for a person's config, on this machine.
import { UserError } from '../errors.ts';
import { change, enumeration } from '../format.ts';
import { candidatesOf, readKnobs, valueNames, whyNot, type Candidate } from '../knobs/catalogue.ts';
import { changeLines, type Change } from '../servers/own/changes.ts';
import { layable, type Layable } from '../servers/own/own-config.ts';
import {
  gain,
  helpful,
  product,
  ranked,
  rankingTable,
  rightAsItIs,
  worthACloserLook,
  planOf,
  serverWith,
  type Effect,
  type AsItIs,
  type Changed,
} from '../knobs/ranking.ts';
import {
  limitLines,
  measuredChange,
  partialLines,
  redirectionLines,
  scopeLines,
  warningLines,
} from '../report/sentences.ts';
import { terminalTable, wrapLines } from '../report/table.ts';
import { divideCores, type Cores } from '../machine/cores.ts';
import type { PlanOptions } from '../runner/make-plan.ts';
import type { PlanDraft } from '../runner/plan.ts';
import { readProcessors } from '../machine/processors.ts';
import type { Comparison, Result } from '../result/result.ts';
import type { ConfiguredServer, Page, ServerName } from '../scenario/model.ts';
import { pagePaths } from '../scenario/pages.ts';
import { unknownWord } from '../nearest.ts';
import { serverBuild, type OwnConfig } from '../servers/index.ts';
import { typed } from '../setup/paths.ts';
import {
  askedFlags,
  namesOf,
  readAsked,
  readLaunch,
  readSource,
  serverNames,
  serverOf,
  sidesOf,
  type Side,
} from './sides.ts';
import { perform, type ServerBinaries } from './perform.ts';
import { readRunOptions, runFlags, type RunOptions } from './run-options.ts';
import { terminalOf } from './run-output.ts';
import { tryOnce, type Tried } from './start-sides.ts';
import { printHelp, readWords, type Flag } from './words.ts';

/** Of a run that has three parts these would mean something else in each, or nothing. */
const {
  precision: _1,
  'max-time': _2,
  within: _3,
  rates: _4,
  'fail-if': _5,
  'export-markdown': _6,
  'export-json': _7,
  'export-csv': _8,
  host: _9,
  ...sharedFlags
} = runFlags;

const knobFlags = {
  ...askedFlags,
  knobs: { value: 'a,b,c', help: 'only these of the catalogue, which --list prints' },
  list: { help: 'the catalogue, and what people claim' },
  ...sharedFlags,
  rounds: { value: 'N', help: 'rounds of each part (10)' },
  duration: {
    value: '1s',
    help: 'measured time of each in a round (0.3s at the first look, 0.5s at the closer one, then 1s)',
  },
} as const satisfies Record<string, Flag>;

/** Measured seconds of the first look, at all, and of the closer one. Among many, rounds tell more than long ones: the t of few is large. */
const lookSeconds = { first: 0.3, closer: 0.5 };
/** Of both looks, twice as long over TLS, whose handshakes take their time. */
const lookWarmupSeconds = 0.2;
/** With more the closer look would take as long as the first. */
const mostCloser = 5;

const help = [
  `${typed('knobs')} nginx.conf [flags]`,
  '',
  'Which of the usual advice does anything for this config (nginx, h2o or nghttpd) on this machine: each knob alone against the ' +
    'config as it is, all in turns; then what may help once more, and what helps, together, in fresh rounds. Prints the lines that help, to ' +
    'paste. The file is not touched.',
];

/** Returns the exit code; 2 without any words, where it prints the help. Throws UserError and Interrupted. */
export async function knobsCommand(args: readonly string[]): Promise<number> {
  const words = readWords(args, knobFlags);
  const { positionals, flags } = words;
  const options = readRunOptions(words);
  if (options.help || args.length === 0) {
    printHelp(help, knobFlags);
    return options.help ? 0 : 2;
  }
  if (flags.has('list')) {
    printHelp(catalogueLines());
    return 0;
  }
  const [given, extra] = positionals;
  if (given === undefined)
    throw new UserError(`knobs wants a config: ${typed('knobs')} nginx.conf`, 2);
  if (extra !== undefined)
    throw new UserError(`one config at a time: "${extra}" is one word too many`, 2);
  if (options.serverHost !== undefined || options.generatorHosts !== undefined)
    throw new UserError(
      'knobs tries values on this machine: leave --server-host and --generator-host out, and compare the config with the lines that help on the other host',
      2,
    );
  const cores = divideCores(readProcessors(), {
    server: options.serverCpus,
    generator: options.generatorCpus,
  });
  const source = await readSource(given);
  if (source.kind !== 'config')
    throw new UserError(
      `knobs wants a config of nginx, h2o or nghttpd, and ${given} is ${source.kind === 'command' ? 'a command' : 'an address'}`,
      2,
    );
  const { config } = source;
  const wanted = wantedCandidates(config.server, flags.get('knobs'), cores);
  const [name] = namesOf([{ source }]) as [string];
  const sides = [{ name, given, source }];
  const [side] = sidesOf(sides, readAsked(words, sides), cores) as [Side];
  const server = serverOf(side, readLaunch(words, sides)(name)) as ConfiguredServer;
  return new KnobsRun({ own: config, side, server, wanted, cores, options }).perform();
}

function catalogueLines(): string[] {
  return serverNames.flatMap((server) =>
    readKnobs(server).flatMap((knob) => [
      `${server}: ${knob.name} (${valueNames(knob).join(', ')})`,
      `  ${knob.claim} ${knob.source}; since ${knob.since}.`,
    ]),
  );
}

function wantedCandidates(
  server: ServerName,
  names: string | undefined,
  cores: Cores,
): Candidate[] {
  const all = readKnobs(server).flatMap((knob) => candidatesOf(knob, cores.serverCpus.length));
  if (names === undefined) return all;
  const wanted = names.split(',').map((name) => name.trim());
  for (const name of wanted) {
    if (!all.some((one) => one.name === name || one.knob.name === name))
      throw unknownWord(
        `knob of ${server}`,
        name,
        all.flatMap((one) => [one.name, one.knob.name]),
      );
  }
  return all.filter((one) => wanted.includes(one.name) || wanted.includes(one.knob.name));
}

/** What the person wants to know. `server`: the config as it is. */
interface KnobsAsked {
  own: OwnConfig;
  side: Side;
  server: ConfiguredServer;
  wanted: readonly Candidate[];
  cores: Cores;
  options: RunOptions;
}

/** What was found, run after run. */
class KnobsRun {
  readonly #asked: KnobsAsked;
  readonly #changed = new Map<Candidate, Changed>();
  readonly #leftOut: { name: string; why: string }[] = [];
  /** These two once it is prepared. */
  #config!: Layable;
  #asItIs!: AsItIs;
  #first: Result | undefined;
  #closer: Result | undefined;
  #together:
    { chosen: readonly Candidate[]; changes: readonly Change[]; result?: Result } | undefined;

  constructor(asked: KnobsAsked) {
    this.#asked = asked;
  }

  async perform(): Promise<number> {
    const code = await perform(
      {
        host: undefined,
        generators: [],
        servers: [this.#asked.server],
        cores: this.#asked.cores,
        shorterBy: ['fewer --knobs'],
        prepare: (binaries, { signal }) => this.#prepare(binaries, signal),
        show: (result) => this.#show(result),
        next: () => this.#next(),
      },
      this.#asked.options,
    );
    if (this.#asked.options.json)
      process.stdout.write(`${JSON.stringify(this.#json(), undefined, 2)}\n`);
    return code;
  }

  #say(lines: readonly string[]): void {
    if (lines.length > 0)
      (this.#asked.options.json ? console.error : console.log)(lines.join('\n'));
  }

  /** Starts the config as it is, and with each knob that could mean anything. */
  async #prepare(binaries: ServerBinaries, signal: AbortSignal): Promise<{ draft: PlanDraft }> {
    const { own, side, server, wanted, cores, options } = this.#asked;
    const { listen, given, load } = side;
    const coreCount = cores.serverCpus.length;
    const start = (spec: ConfiguredServer): Promise<Tried> =>
      tryOnce(side, spec, { binaries, cores }, options, signal);
    const tried = await start(server);
    const page: Page = { ...side.page, bodyBytes: Math.round(tried.answer.bytes) };
    this.#asItIs = { given, server, load, page };
    this.#config = await layable(own, {
      port: listen.port,
      paths: pagePaths(side.page),
      cores: coreCount,
    });
    const workers = server.workers === 'server-cores' ? coreCount : server.workers;
    const build = await serverBuild(
      own.server,
      server.binary ?? (binaries[own.server] as string),
      signal,
    );
    const { facts } = this.#config;
    for (const candidate of wanted) {
      const why =
        whyNot(
          candidate,
          { facts, listen, load, bodyBytes: tried.answer.bytes, workers, build },
          (laid) => this.#config.lay(laid),
        ) ?? (await this.#start(candidate, start, signal));
      if (why !== undefined) this.#leftOut.push({ name: candidate.name, why });
    }
    this.#say([
      ...redirectionLines([{ name: given, redirections: tried.redirections }]),
      ...this.#leftOutLines(),
    ]);
    if (this.#changed.size === 0)
      throw new UserError(
        `no knob of the catalogue applies to ${given} under this load: nothing is compared`,
      );
    return {
      draft: this.#plan(
        'knobs',
        'The usual advice, each alone, on',
        [...this.#changed.values()],
        lookSeconds.first,
      ),
    };
  }

  /** Returns why it cannot be measured, in the server's own words; otherwise it is one of those that are. */
  async #start(
    candidate: Candidate,
    start: (spec: ConfiguredServer) => Promise<Tried>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const changed = this.#changedBy(candidate.name, [candidate]);
    const { server, page } = this.#asItIs;
    try {
      const {
        answer: { bytes },
      } = await start(serverWith(server, changed));
      this.#changed.set(candidate, { ...changed, page: { ...page, bodyBytes: Math.round(bytes) } });
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof UserError)) throw error;
      return /does not accept it: (.*)$/m.exec(error.message)?.[1] ?? error.message;
    }
  }

  #changedBy(name: string, chosen: readonly Candidate[]): Changed {
    const laid = chosen.map((one) => one.laid);
    return { name, laid, workers: this.#config.lay(laid).workers, page: this.#asItIs.page };
  }

  /** @param lookSeconds of a look; absent: the usual time, which at a rate is what percentiles need */
  #plan(name: string, title: string, changed: readonly Changed[], lookSeconds?: number): PlanDraft {
    const asItIs = this.#asItIs;
    const isLook = lookSeconds !== undefined && asItIs.load.rate === undefined;
    const load = isLook
      ? { ...asItIs.load, warmupSeconds: lookWarmupSeconds * (this.#asked.side.listen.tls ? 2 : 1) }
      : asItIs.load;
    const options: PlanOptions = {
      ...(isLook ? { durationSeconds: lookSeconds } : {}),
      ...this.#asked.options,
      exact: false,
    };
    return planOf(name, title, { ...asItIs, load }, changed, this.#asked.cores, options);
  }

  #leftOutLines(): string[] {
    const whys = new Map<string, string[]>();
    for (const { name, why } of this.#leftOut) whys.set(why, [...(whys.get(why) ?? []), name]);
    return wrapLines(
      [...whys].map(([why, names]) => `left out, ${why}: ${names.join(', ')}`),
      terminalOf(this.#asked.options).width,
    );
  }

  #effects(): Effect[] {
    return this.#first === undefined
      ? []
      : ranked([...this.#changed.keys()], this.#first, this.#closer);
  }

  #show(result: Result): string[] {
    const terminal = terminalOf(this.#asked.options);
    const around = [...partialLines(result), ...warningLines(result), ...limitLines(result)];
    if (this.#together !== undefined) {
      this.#together.result = result;
      return [
        ...wrapLines(
          [...around, ...this.#togetherLines(this.#together.chosen, result), ...scopeLines(result)],
          terminal.width,
        ),
        ...this.#pasteLines(result),
      ];
    }
    if (this.#first === undefined) this.#first = result;
    else this.#closer = result;
    const effects = this.#effects().filter(({ closer }) => closer === (this.#closer !== undefined));
    const had = new Set(
      this.#leftOut.flatMap(({ name, why }) => (why.startsWith('already so') ? [name] : [])),
    );
    const right = rightAsItIs(effects, had).map(
      ({ candidate: { name, knob }, comparison }) =>
        `${knob.name} is right as it is: ${name} is ${measuredChange(comparison)}.`,
    );
    return [
      ...terminalTable(rankingTable(effects, result), terminal),
      '',
      ...wrapLines([...around, ...right], terminal.width),
    ];
  }

  /** After the first look the closer one, then all that helps together. */
  #next(): PlanDraft | undefined {
    if (this.#together !== undefined) return undefined;
    const look = this.#closer === undefined ? worthACloserLook(this.#effects(), mostCloser) : [];
    if (look.length > 0) {
      this.#say([
        '',
        `A closer look at ${enumeration(
          look.map(({ name }) => name),
          'and',
        )}:`,
      ]);
      return this.#plan(
        'knobs-closer',
        'A closer look at knobs on',
        look.map((one) => this.#changed.get(one) as Changed),
        lookSeconds.closer,
      );
    }
    const { chosen, said } = helpful(this.#effects(), {
      asItIs: this.#asItIs.page.bodyBytes,
      of: (one) => (this.#changed.get(one) as Changed).page.bodyBytes,
    });
    this.#say(['', ...wrapLines(said, terminalOf(this.#asked.options).width)]);
    if (chosen.length === 0) {
      this.#say(['None of the usual advice helps this config here: there is nothing to verify.']);
      return undefined;
    }
    this.#together = { chosen, changes: this.#config.lay(chosen.map(({ laid }) => laid)).changes };
    this.#say([
      'What helps, together, in fresh rounds, since the best of many has had luck, too:',
      ...chosen.map(({ name, laid: { lines } }) => `  ${name}: ${lines}`),
    ]);
    return this.#plan('knobs-together', 'What helps, together, on', [
      this.#changedBy('together', chosen),
    ]);
  }

  #togetherLines(chosen: readonly Candidate[], { comparisons: [comparison] }: Result): string[] {
    if (comparison === undefined) return [];
    const { verdict, why } = comparison;
    const names = enumeration(
      chosen.map(({ name }) => name),
      'and',
    );
    const expected =
      chosen.length < 2
        ? ''
        : ` Their single effects, multiplied, are ${change(product(this.#effects(), chosen))}.`;
    if (verdict === 'none') return [`${names}: not verified, ${why}.`];
    const words = {
      faster: 'Verified',
      slower: 'They harm together',
      same: 'Not verified, the same',
      inconclusive: 'Not verified, undecided',
    }[verdict];
    return [
      `${words}: with ${names} it is ${measuredChange(comparison)} against ${this.#asItIs.given} as it is.${expected}`,
    ];
  }

  /** The verified lines, not wrapped. */
  #pasteLines({ comparisons: [comparison] }: Result): string[] {
    return comparison?.verdict === 'faster'
      ? ['', 'To paste:', ...changeLines(this.#together?.changes ?? [])]
      : [];
  }

  #json(): object {
    const seen = ({
      ratio,
      ci95,
      verdict,
      why,
      metric,
      cpu,
      latency,
      roundsNeeded,
    }: Comparison): object => ({
      metric,
      ratio,
      ci95,
      verdict,
      why,
      cpu,
      p99: latency.p99,
      roundsNeeded,
    });
    const { chosen = [], changes, result } = this.#together ?? {};
    const [verified] = result?.comparisons ?? [];
    return {
      schema: 1,
      config: this.#asked.own.file,
      runs: [this.#first, this.#closer, result].flatMap((one) => one?.run ?? []),
      knobs: this.#effects().map(({ candidate: { name, knob, laid }, comparison, closer }) => ({
        name,
        claim: knob.claim,
        source: knob.source,
        ...laid,
        gain: gain(comparison),
        closer,
        ...seen(comparison),
      })),
      leftOut: this.#leftOut,
      together:
        verified === undefined
          ? null
          : { knobs: chosen.map(({ name }) => name), changes, ...seen(verified) },
    };
  }
}
