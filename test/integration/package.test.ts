import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import { fromCallersFolder, projectRoot } from '../../lib/setup/paths.ts';
import type { ConfiguredServer } from '../../lib/scenario/model.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const textOf = (file: string) => readFileSync(join(projectRoot, file), 'utf8');

const folder = sharedFolder();

const scenarioNames = () =>
  readdirSync(join(projectRoot, 'scenarios'))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.slice(0, -'.ts'.length));

test('the package contains all files that it refers to, and no tests or local files', () => {
  // The tests that install the package cover the script that npm runs before packing.
  const isMade = existsSync(join(projectRoot, 'dist/types/index.d.ts'));
  const flags = ['--dry-run', '--json', '--silent', '--offline'];
  const args = ['pack', ...flags, ...(isMade ? ['--ignore-scripts'] : [])];
  const [{ files: packedFiles }] = JSON.parse(
    execFileSync('npm', args, { cwd: projectRoot, encoding: 'utf8' }),
  ) as [{ files: { path: string }[] }];
  const packed = packedFiles.map(({ path }) => path);
  const { exports: entries, bin } = JSON.parse(textOf('package.json')) as {
    exports: Record<string, string | Record<string, string> | null>;
    bin: Record<string, string>;
  };
  const named = [...Object.values(entries), bin].flatMap((entry) =>
    typeof entry === 'string' ? entry : Object.values(entry ?? {}),
  );
  const files = named.map((file) => file.replace(/^\.\//, ''));
  expect(packed).toEqual(expect.arrayContaining(files.filter((file) => !file.includes('*'))));
  for (const name of scenarioNames())
    expect(packed).toEqual(
      expect.arrayContaining([`dist/scenario-${name}.mjs`, `dist/types/scenarios/${name}.d.ts`]),
    );
  const linked = [...textOf('README.md').matchAll(/\]\((?!https?:|examples\))([^)#]+)/g)].map(
    ([, file]) => file as string,
  );
  expect(packed).toEqual(expect.arrayContaining(linked));
  const foreign =
    /^(test|results|examples|node_modules|\.|.*\/\.)|_test\.go$|\.test\.ts$|testdata|package-lock|\.(pem|key|crt)$/;
  expect(packed.filter((file) => foreign.test(file))).toEqual([]);
}, 120_000);

// The Go binding and the types must have the same options.
test('the types and the documentation have all options and results of the k6 module', () => {
  const namesIn = (file: string, begin: string, name: RegExp) => {
    const [, body = ''] = new RegExp(`\n${begin} [^{]*\\{\n([^]*?)\n\\}`).exec(textOf(file)) ?? [];
    return [...body.matchAll(name)].map(([, name]) => name as string);
  };
  const known = [
    ...namesIn('xk6-loadgen/engine/options.go', 'type Options', /`js:"(\w+)/g),
    ...namesIn('xk6-loadgen/params.go', 'type loadOptions', /`js:"(\w+)/g),
  ].sort();
  const fieldsOf = (file: string, type: string) =>
    namesIn(file, `export interface ${type}`, /^ {2}(\w+)\??:/gm).sort();
  expect(known).toContain('connections');
  expect(fieldsOf('lib/k6/load-plan.ts', 'LoadOptions')).toEqual(known);
  const page = textOf('xk6-loadgen/README.md');
  expect(known.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);

  const [, summary = ''] =
    /\nfunc summary\([^]*?\n\treturn (map\[string\]any\{[^]*?\n\t\})\n/.exec(
      textOf('xk6-loadgen/module.go'),
    ) ?? [];
  // `bytes` and `wire` are objects with fields.
  const results = [
    ...summary.replaceAll(/: map\[string\]any\{[^}]*\}/g, ': 0').matchAll(/"(\w+)":/g),
  ]
    .map(([, name]) => name as string)
    .sort();
  expect(results).toContain('latencyMs');
  const checked = ['outcomeFields', 'loadFields'].flatMap((name) =>
    namesIn('lib/result/load-result.ts', `export const ${name}`, /^ {2}(\w+)[:,]/gm),
  );
  expect([...checked, ...fieldsOf('lib/result/load-result.ts', 'LoadResult')].sort()).toEqual(
    results,
  );
});

describe('user configs and pages', () => {
  const write = (file: string, config: string, docroot = 'nginx') => {
    const whole = join(folder, file);
    writeFileSync(
      whole,
      `
      import { defineScenario, nginx, wrk } from ${JSON.stringify(join(projectRoot, 'index.ts'))};
      export default defineScenario({ name: 'own', title: 'own', knob: 'own', load: wrk('-c 2 -d 1'),
        page: { docroot: '${docroot}', path: '/', bodyBytes: 1 }, variants: [{ name: 'one', server: nginx(${config}, { workers: 1 }) }] });`,
    );
    return whole;
  };
  beforeAll(() => {
    mkdirSync(join(folder, 'scenarios/www'), { recursive: true });
    writeFileSync(join(folder, 'knob.conf'), '');
    writeFileSync(join(folder, 'scenarios/knob.conf'), '');
  });

  test('have paths relative to the file of the scenario, in any working directory', async () => {
    vi.stubEnv('INIT_CWD', folder);
    const configs = `['base', './knob.conf', '../knob.conf', '${folder}/knob.conf']`;
    const scenario = await findScenario(write('scenarios/own.ts', configs, './www'));
    expect((scenario.variants[0]?.server as ConfiguredServer).config).toEqual([
      'base',
      ...['scenarios/', '', ''].map((under) => `${folder}/${under}knob.conf`),
    ]);
    expect(scenario.page.docroot).toBe(join(folder, 'scenarios/www'));
  });

  test.each([
    ["['base', './none.conf']", undefined, ' ./none.conf: there is no FOLDER/none.conf'],
    ["['base', 'knob.conf']", undefined, ' "knob.conf": write ./knob.conf if it is beside'],
    ["['base']", './none', 'docroot ./none: there is no FOLDER/none'],
    ["['base']", 'scenarios/www', 'write ./scenarios/www if it is beside the scenario'],
  ])('%s with docroot %s is a one-line error', async (config, docroot, message) => {
    const file = write('wrong.ts', config, docroot);
    const error = await findScenario(file).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ message: expect.stringMatching(`^${file}: .*$`), exitCode: 1 });
    expect((error as Error).message).toContain(message.replace('FOLDER', folder));
  });

  test('a missing import is a one-line error; the package itself is always found', async () => {
    const file = join(folder, 'elsewhere.ts');
    for (const [from, why] of [
      ['none', 'Could not resolve "none"'],
      ['bakeoff', 'Could not resolve "bakeoff": the package is "server-bakeoff"'],
      ['server-bakeoff', 'No matching export in ".*" for import "x"'],
    ]) {
      writeFileSync(file, `import { x } from '${from}';\nexport default x;`);
      await expect(findScenario(file)).rejects.toThrow(
        new RegExp(`^${file}: ${why} \\(line 1\\)$`),
      );
    }
    const whole = write('whole.ts', "['base']");
    writeFileSync(whole, readFileSync(whole, 'utf8').replace(/from ".*"/, "from 'server-bakeoff'"));
    expect((await findScenario(whole)).name).toBe('own');
  });
});

test('INIT_CWD applies in the checkout only; elsewhere paths are relative to the working directory', () => {
  vi.stubEnv('INIT_CWD', '/home/anna');
  expect(fromCallersFolder('x')).toBe('/home/anna/x');
  vi.spyOn(process, 'cwd').mockReturnValue('/srv/project');
  expect(fromCallersFolder('x')).toBe('/srv/project/x');
});
