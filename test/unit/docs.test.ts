import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { articlesOf, loadScenarios } from '../../lib/scenario/catalogue.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { main } from '../../lib/cli/main.ts';

const textOf = (file: string) => readFileSync(join(projectRoot, file), 'utf8');

const withoutCode = (text: string) => text.replace(/^```.*\n[^]*?^```$/gm, '');

const allIn = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, capture = '']) => capture);

const pages = [
  '.',
  'docs',
  'xk6-loadgen',
  ...readdirSync(join(projectRoot, 'examples')).map((name) => `examples/${name}`),
].flatMap((folder) =>
  readdirSync(join(projectRoot, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => join(folder, file)),
);

test('README.md is short', () => {
  expect(textOf('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(150);
  expect(textOf('README.md').trim().split(/\s+/).length).toBeLessThanOrEqual(900);
});

test('README.md begins with a run that is in an article’s page', () => {
  const [block = ''] = allIn(textOf('README.md'), /^```\n( +published[^]*?)^```$/gm);
  const page = textOf('docs/articles/000.md');
  for (const variant of ['workers', 'open-file-cache']) {
    const [, ...figures] = block
      .split('\n')
      .find((line) => line.startsWith(`${variant} `))
      ?.split(/ {2,}/) ?? [''];
    const row = page.split('\n').find((line) => line.startsWith(`| ${variant} |`)) ?? '';
    expect(figures.length).toBeGreaterThan(2);
    // The page has no CPU time per request.
    for (const figure of figures.filter((text) => !/^\d+\.\d$/.test(text)))
      expect(row).toContain(`| ${figure} |`);
  }
});

const anchorsOf = (text: string) =>
  allIn(withoutCode(text).toLowerCase(), /^#+ (.*)$/gm).map((heading) =>
    heading.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-'),
  );
const linksOf = (page: string) => allIn(withoutCode(textOf(page)), /\]\((?!https?:)([^)\s]+)\)/g);

test.each(pages)('links of %s lead somewhere', (page) => {
  const broken = linksOf(page).filter((link) => {
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? page : join(dirname(page), file);
    if (!existsSync(join(projectRoot, target))) return true;
    return anchor !== undefined && !anchorsOf(textOf(target)).includes(anchor);
  });
  expect(broken).toEqual([]);
});

test('pages of docs/ that sources and messages name exist', () => {
  const folders = [
    'bin',
    'dashboards',
    'docker',
    'lib',
    'packaging',
    'scenarios',
    'test',
    'xk6-loadgen',
  ];
  const files = folders.flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(ts|mjs|go|ya?ml|json|sh)$/.test(file))
      .map((file) => join(folder, file)),
  );
  const named = files.flatMap((file) => allIn(textOf(file), /(?<![\w./-])(docs\/[\w/-]+\.md)/g));
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((page) => !existsSync(join(projectRoot, page)))).toEqual([]);
});

test('links: README.md leads to every page of docs/', () => {
  const linked = linksOf('README.md').map((link) => link.split('#')[0] as string);
  expect(pages.filter((page) => page.startsWith('docs/') && !linked.includes(page))).toEqual([]);
});

const { scripts } = JSON.parse(textOf('package.json')) as { scripts: object };

const helps = new Map<string, string>();
const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
for (const name of 'scenario compare bisect knobs k8s calibrate report grafana clean'.split(' ')) {
  // Other commands have no rare flags.
  await main([name, '--help', ...(/scenario|compare|knobs|bisect/.test(name) ? ['all'] : [])]);
  helps.set(name, log.mock.calls.splice(0).join('\n'));
}
log.mockRestore();
const shipped = await loadScenarios();
const articles = articlesOf(shipped);
const scenarios = shipped.map(({ name }) => name);

const linesOf = (page: string) => {
  const text = textOf(page);
  const blocks = allIn(text, /^```sh\n([^]*?)^```$/gm).flatMap((block) =>
    block.replaceAll('\\\n', ' ').split('\n'),
  );
  const spans = allIn(withoutCode(text), /`([^`\n]+)`/g);
  return [...blocks, ...spans].map((line) =>
    line.replace(/(^| )#.*/, '').replace(/(["'])[^]*?\1/g, 'QUOTED'),
  );
};
const isFlagOf = (help: string, flag: string) => new RegExp(`^ +${flag}( |$)`, 'm').test(help);

const wrongIn = (line: string) => {
  const [, name, rest = ''] =
    /\b(?:npm run(?: -s)? |npm (?=test\b)|npx server-bakeoff )([a-z0-9:-]+)(.*)/.exec(line) ?? [];
  if (name === undefined) return [];
  if (!(name in scripts)) return [`${line}: no command ${name}`];
  const [first = '', ...args] = rest
    .split(/[ ;|)]+/)
    .filter((word) => word !== '' && word !== '--');
  const flags = [first, ...args]
    .filter((word) => word.startsWith('--'))
    .map((word) => word.split('=')[0] as string);
  const help = helps.get(name) ?? '';
  const unknown = flags.filter((flag) => flag !== '--no-install' && !isFlagOf(help, flag));
  if (name === 'scenario' && /^[a-z]/.test(first) && !scenarios.includes(first))
    unknown.push(first);
  return unknown.map((word) => `${line}: ${word}`);
};

const ofCheckout = pages.filter((page) => !page.startsWith('examples/'));
test.each(ofCheckout)('commands and flags in %s exist', (page) => {
  expect(linesOf(page).flatMap(wrongIn)).toEqual([]);
});

test('a flag on its own belongs to a command', () => {
  const all = [...helps.values()].join('\n');
  const alone = ['README', 'docs/compare', 'docs/verdicts', 'docs/ci', 'docs/architecture']
    .flatMap((page) => linesOf(`${page}.md`))
    .flatMap((line) => (line.startsWith('--') ? line.split(/[ =|]/).slice(0, 1) : []));
  // Flags of programs under comparison.
  const others = ['--token', '--perf-basic-prof'];
  expect(alone.length).toBeGreaterThan(20);
  expect(alone.filter((flag) => !others.includes(flag) && !isFlagOf(all, flag))).toEqual([]);
});

test('README.md and docs/proof.md quote the calibration', () => {
  const [, count] = /^All (\d+) figures of bakeoff/m.exec(
    textOf('docs/calibration/calibration.md'),
  ) ?? [expect.fail()];
  expect(textOf('README.md')).toContain(`all ${count} figures`);
  expect(textOf('docs/proof.md')).toContain(`All ${count} figures`);
});

test('docs/articles.md names every scenario', () => {
  const named = allIn(textOf('docs/articles.md'), /^\| `([^`]+)` \|/gm);
  expect(named.toSorted()).toEqual(scenarios);
});

/** Claims and their states, as the page of an article has them. */
const claimsOf = (file: string) =>
  [
    ...textOf(file)
      .replaceAll(' here', '')
      .matchAll(
        /^\| ([^|]+) \| (holds|holds, but not the size|does not hold|opposite|not decided|cannot be run) \|/gm,
      ),
  ].map(([, text = '', state = '']) => ({ text: text.trim(), state }));

test('each article has a page with its claims, and README.md how many hold of those that were decided', () => {
  for (const { id, claims = [] } of articles) {
    const onPage = claimsOf(`docs/articles/${id}.md`);
    expect(onPage.map(({ text }) => text)).toEqual(claims.map(({ text }) => text));
    const held = onPage.filter(({ state }) => state === 'holds').length;
    const open = onPage.filter(({ state }) => /^not decided|^cannot/.test(state)).length;
    expect(textOf('README.md')).toContain(
      `[${held}/${onPage.length - open}](docs/articles/${id}.md)`,
    );
  }
});

test('docs are short', () => {
  const recorded = ['articles', 'calibration'].flatMap((folder) =>
    readdirSync(join(projectRoot, 'docs', folder))
      .filter((file) => file.endsWith('.md'))
      .map((file) => `docs/${folder}/${file}`),
  );
  const bytesOf = (page: string) => Buffer.byteLength(textOf(page));
  expect(recorded.filter((page) => bytesOf(page) > 8000)).toEqual([]);
  const all = [...pages.filter((page) => page.startsWith('docs/')), ...recorded];
  expect(all.reduce((bytes, page) => bytes + bytesOf(page), 0)).toBeLessThanOrEqual(130_000);
  expect(textOf('docs/verdicts.md').trim().split(/\s+/).length).toBeLessThanOrEqual(1800);
});

/** The paths on a page, each with the names that follow it. */
function placesOn(page: string): { path: string; names: string[] }[] {
  const places = textOf(page).matchAll(/`((?:[\w.-]+\/)*[\w.-]+)`((?:,?\s+`\w+`)*)/g);
  // The Go module's tag looks like a path.
  return [...places].flatMap(([, path = '', names = '']) =>
    /\/(?!v\d)|\.yml$/.test(path) ? [{ path, names: allIn(names, /`(\w+)`/g) }] : [],
  );
}

test.each([
  ['docs/architecture.md', 50],
  ['CONTRIBUTING.md', 15],
])('files and functions in %s exist', (page, fewest) => {
  const places = placesOn(page);
  expect(places.length).toBeGreaterThan(fewest);
  const wrong = places.flatMap(({ path, names }) => {
    const whole = join(projectRoot, path);
    if (!existsSync(whole)) return [path];
    const made = (name: string) =>
      `\\b(?:function|const|interface|type|class|var|func(?: \\([^)]*\\))?) ${name}\\b|^export \\{[^}]*\\b${name}\\b`;
    return names
      .filter((name) => !new RegExp(made(name), 'm').test(textOf(path)))
      .map((name) => `${path}: ${name}`);
  });
  expect(wrong).toEqual([]);
});

test('docs/architecture.md names every folder', () => {
  const page = textOf('docs/architecture.md');
  const foldersIn = (path: string) =>
    readdirSync(join(projectRoot, path), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? `${path}/${entry.name}` : [],
    );
  const rooms = [...foldersIn('lib'), ...foldersIn('lib/features')];
  expect(rooms.filter((room) => !page.includes(`\n| \`${room}\` |`))).toEqual(['lib/features']);
});
