// npm run compare: two sides or more of a person's own, as they are.
import { UserError } from '../errors.ts';
import { check, name } from '../form.ts';
import { wrapLines } from '../report/terminal.ts';
import { makePlan } from '../runner/plan.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { readPageList } from '../scenario/page-list.ts';
import { fromCallersFolder, typed } from '../setup/paths.ts';
import { readSides, serverNames, type Given, type Source } from './compare-given.ts';
import { comparisonOf, sameSides, serverOf, type LaunchOf } from './compare-scenario.ts';
import { sidesOf, type Asked, type Side } from './compare-sides.ts';
import { ofSides } from './of-sides.ts';
import { onHosts } from './on-hosts.ts';
import { perform } from './perform.ts';
import { outputWidth } from './run-output.ts';
import { readRunOptions, runFlags } from './run-options.ts';
import { tryOnce, type Tried } from './try-side.ts';
import { flagLines, readWords, wholeNumber, type Flag } from './words.ts';

const compareFlags = {
  'url': { value: 'URL', help: 'a path, or a URL whose port says which of several addresses (/)' },
  'urls': { value: 'FILE', help: 'several pages: one path or URL a line, and its weight (1)' },
  'load': { value: '"wrk -c 100 -d 10"', repeated: true, help: 'a command line of wrk, wrk2, h2load, ab, weighttp or vegeta (100 connections); NAME="…" for one side' },
  'status': { value: '404', help: 'the status that is right, where it is not 200' },
  'port': { value: 'PORT', repeated: true, help: 'of a command that has its own port; NAME=PORT for one side' },
  'name': { value: 'gzip-levels', help: 'what results, report and Grafana call this comparison (compare)' },
  'bin': { value: 'nginx=PATH', repeated: true, help: 'another build of a server; NAME:nginx=PATH for one side' },
  ...runFlags,
} as const satisfies Record<string, Flag>;

/**
 * Returns the exit code; 2 without any words, where it prints the help. Throws UserError and Interrupted.
 */
export async function compareCommand(args: readonly string[]): Promise<number> {
  const words = readWords(args, compareFlags);
  const { positionals, flags, lists } = words;
  const options = readRunOptions(words);
  if (options.help || args.length === 0) {
    console.log(help.join('\n'));
    return options.help ? 0 : 2;
  }
  const called = flags.get('name');
  if (called !== undefined) requireName(called);
  const given = await readSides(positionals, typed('compare'));
  const names = given.map(({ name }) => name);
  const [url, urls, status] = [flags.get('url'), flags.get('urls'), flags.get('status')];
  const asked: Asked = {
    ...(url === undefined ? {} : { url }),
    ...(urls === undefined ? {} : { urls: readPageList('--urls', urls) }),
    ...(status === undefined ? {} : { status: readStatus(status) }),
    load: ofSides('--load', lists.get('load') ?? [], names),
  };
  const launch = readLaunch(given, lists);
  const specOf = (side: Side): ServerSpec => serverOf(side, launch(side.name));
  return onHosts(options, {}, given.map(({ source }) => source.kind), async (cores, { host, generators }) => {
    const sides = sidesOf(given, asked, cores.generatorCpus.length);
    const same = await sameSides(sides, launch);
    return perform({
      servers: sides.map(specOf),
      cores,
      host,
      generators,
      async prepare(binaries, signal) {
        const tried: Tried[] = [];
        for (const side of sides) tried.push(await tryOnce(side, specOf(side), cores, { binaries, host }, options, signal));
        const { scenario, said } = comparisonOf(tried, launch, same, called);
        for (const line of wrapLines(said, outputWidth(options))) (options.json ? console.error : console.log)(line);
        return makePlan(scenario, scenario.variants, cores, { ...options, exact: false });
      },
    }, options);
  });
}

const help = [
  `${typed('compare')} SIDE SIDE … [flags]`,
  '',
  'Compares two to sixteen servers. The first is what the others are faster or slower than. A side is one of:',
  '  a.conf                        a config of nginx, h2o or nghttpd as it is, which is not touched: what cannot be used here',
  '                                (addresses, logs, pid file, user) is redirected and said; nghttpd\'s has one flag a line',
  '  \'node server.js\'              a command; {port} in it, and PORT in its environment, say where to listen on 127.0.0.1',
  '  http://127.0.0.1:8080/        what runs there already; beyond this machine with --host',
  'NAME=SIDE names one: old=a.conf new=b.conf',
  '',
  ...flagLines(compareFlags),
];

/** As scenarios are called. Throws UserError (exit code 2). */
function requireName(text: string): void {
  const outcome = check(name, text);
  if ('problem' in outcome) throw new UserError(`--name ${outcome.problem}`, 2);
}

function readStatus(text: string): number {
  if (/^[2-5]\d\d$/.test(text)) return Number(text);
  throw new UserError(`--status ${text}: give a status from 200 to 599, such as 404`, 2);
}

/** Reads what the flags say of how each side is started. Throws UserError (exit code 2). */
function readLaunch(given: readonly Given[], lists: ReadonlyMap<string, readonly string[]>): LaunchOf {
  const names = given.map(({ name }) => name);
  const having = (is: (source: Source) => boolean): string[] => given.flatMap(({ name, source }) => (is(source) ? [name] : []));
  const ports = ofSides('--port', lists.get('port') ?? [], names, { what: 'a command', names: having(({ kind }) => kind === 'command') });
  const binaries = new Map(serverNames.map((server) => [server, ofSides(`--bin ${server}=…`, binariesOf(server, lists.get('bin') ?? []), names, {
    what: `a config of ${server}`, names: having((source) => source.kind === 'config' && source.config.server === server),
  })]));
  return (name) => {
    const { source } = given.find((side) => side.name === name) as Given;
    const port = source.kind === 'command' ? ports.of(name) : undefined;
    const binary = source.kind === 'config' ? binaries.get(source.config.server)?.of(name) : undefined;
    return {
      ...(port === undefined ? {} : { port: wholeNumber('--port', port, 65_535) }),
      ...(binary === undefined ? {} : { binary: fromCallersFolder(binary) }),
    };
  };
}

/** What `--bin` says of one server, as ofSides reads it: `nginx=/a` is `/a`, and `new:nginx=/a` is `new=/a`. */
function binariesOf(server: string, values: readonly string[]): string[] {
  return values.flatMap((value) => {
    const [, name, called = '', file = ''] = /^(?:([a-z0-9-]+):)?([a-z0-9]+)=(.+)$/s.exec(value) ?? [];
    if (!serverNames.some((one) => one === called)) throw new UserError(`--bin ${value}: write ${serverNames.join('=PATH, ')}=PATH, or NAME:nginx=PATH for one side`, 2);
    return called === server ? [name === undefined ? file : `${name}=${file}`] : [];
  });
}
