// npm run compare: two sides or more of a person's own, as they are.
import { UserError } from '../errors.ts';
import { check, givenName } from '../form.ts';
import { wrapLines } from '../report/table.ts';
import { makePlan } from '../runner/make-plan.ts';
import { explainFailure } from '../runner/results-folder.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { typed } from '../setup/paths.ts';
import { askedFlags, readAsked, readLaunch, readSides } from './compare-given.ts';
import { comparisonOf, sameSides, serverOf, usualName } from './compare-scenario.ts';
import { type Side, sidesOf } from './compare-sides.ts';
import { requireNone } from './exports.ts';
import { onHosts } from './on-hosts.ts';
import { begin, endBegun, perform } from './perform.ts';
import { outputWidth } from './run-output.ts';
import { readRunOptions, runFlags } from './run-options.ts';
import { startSides } from './try-side.ts';
import { type Flag, printHelp, readWords } from './words.ts';

const compareFlags = {
  ...askedFlags,
  load: { ...askedFlags.load, help: `${askedFlags.load.help}; NAME="…" for one side` },
  bin: { ...askedFlags.bin, help: `${askedFlags.bin.help}; NAME:nginx=PATH for one side` },
  port: {
    value: 'PORT',
    repeated: true,
    help: 'of a command that has its own port; NAME=PORT for one side',
  },
  name: {
    value: 'gzip-levels',
    help: 'what results, report and Grafana call this comparison (compare)',
  },
  ...runFlags,
} as const satisfies Record<string, Flag>;

/** Returns the exit code; 2 without any words, where it prints the help. Throws UserError and Interrupted. */
export async function compareCommand(args: readonly string[]): Promise<number> {
  const words = readWords(args, compareFlags);
  const { positionals, flags } = words;
  const options = readRunOptions(words);
  if (options.help || args.length === 0) {
    printHelp(help, compareFlags);
    return options.help ? 0 : 2;
  }
  const called = flags.get('name') ?? usualName;
  // As scenarios are called.
  const outcome = check(givenName, called);
  if ('problem' in outcome) throw new UserError(`--name ${outcome.problem}`, 2);
  const given = await readSides(positionals, typed('compare'));
  requireNone(
    options.exports,
    given.flatMap(({ source }) => (source.kind === 'config' ? [source.config.file] : [])),
  );
  const asked = readAsked(words, given);
  const launch = readLaunch(words, given);
  const specOf = (side: Side): ServerSpec => serverOf(side, launch(side.name));
  return onHosts(
    options,
    {},
    given.map(({ source }) => source.kind),
    async (cores, hosts) => {
      const sides = sidesOf(given, asked, cores);
      const same = await sameSides(sides, launch);
      return perform(
        {
          servers: sides.map(specOf),
          cores,
          ...hosts,
          async prepare(binaries, interrupt) {
            const begun = await begin(options.out, called);
            try {
              const tried = await startSides(
                sides,
                specOf,
                { binaries, host: hosts.host, cores },
                options,
                begun,
                interrupt,
              );
              const { scenario, said } = comparisonOf(tried, launch, same, called);
              for (const line of wrapLines(said, outputWidth(options)))
                (options.json ? console.error : console.log)(line);
              return {
                draft: makePlan(scenario, scenario.variants, cores, { ...options, exact: false }),
                begun,
              };
            } catch (error) {
              const explained = await explainFailure(begun.folder, error);
              await endBegun(begun);
              throw explained;
            }
          },
        },
        options,
      );
    },
  );
}

const help = [
  `${typed('compare')} SIDE SIDE … [flags]`,
  '',
  'Compares two to sixteen servers. The first is what the others are faster or slower than. A side is one of:',
  '  a.conf                        a config of nginx, h2o or nghttpd as it is, which is not touched: what cannot be used here',
  "                                (addresses, logs, pid file, user) is redirected and said; nghttpd's has one flag a line",
  "  'node server.js'              a command; {port} in it, and PORT in its environment, say where to listen on 127.0.0.1",
  '  http://127.0.0.1:8080/        what runs there already; beyond this machine with --host',
  'NAME=SIDE names one: old=a.conf new=b.conf',
];
