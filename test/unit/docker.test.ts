// docker/ as far as it can be checked without Docker.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { readScenarioOptions } from '../../lib/cli/scenario.ts';
import { loadScenarios } from '../../lib/scenario/catalogue.ts';
import { aptPackages } from '../../lib/setup/tools.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { atLeast } from '../../lib/setup/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';

interface Service {
  image?: string;
  profiles?: string[];
  environment?: Record<string, string>;
  entrypoint?: string[];
  ports?: string[];
  volumes?: (string | { source: string })[];
  ulimits?: { nofile: number };
  healthcheck?: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
  build?: { context: string; dockerfile: string };
}

const read = (file: string) => readFileSync(join(projectRoot, file), 'utf8');
const composeText = read('docker/compose.yaml');
const { services: byName } = parse(composeText) as { services: Record<string, Service> };
const services = Object.entries(byName);
const service = (name: string) => byName[name] ?? expect.fail(`no service ${name}`);
/** Instructions of the Dockerfile, each in one line, without comments. */
const dockerfile = read('docker/Dockerfile');
const instructions = dockerfile
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/ *\\\n\s*/g, ' ')
  .split('\n')
  .filter((line) => line !== '');
const argumentsOf = (instruction: string) =>
  instructions
    .filter((line) => line.startsWith(`${instruction} `))
    .map((line) => line.slice(instruction.length + 1));
const { version, engines } = JSON.parse(read('package.json')) as {
  version: string;
  engines: { node: string };
};

it.each(services)(
  '%s of compose.yaml is pinned, for this machine alone, with passwords from the environment',
  (_, { image, ports = [], environment = {} }) => {
    expect(image).toMatch(/^[a-z\d./_-]+:\d+\.\d+\.\d+$/);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\$\{[A-Z]+_PORT:-\d+\}:\d+$/);
    const names = /PASSWORD|TOKEN|SECRET|KEY/;
    const secrets = Object.entries(environment).filter(([name]) => names.test(name));
    expect(secrets).not.toEqual([]);
    for (const [, value] of secrets) expect(value).toMatch(/^\$\{[A-Z_]+:\?make docker\/\.env as /);
  },
);

it('compose.yaml waits for what is healthy', () => {
  for (const [, { profiles, healthcheck }] of services)
    if (profiles === undefined) expect(healthcheck?.test.length).toBeGreaterThan(1);
  const influxdb = { condition: 'service_healthy' };
  expect(service('grafana').depends_on).toEqual({ influxdb });
  expect(service('bakeoff').depends_on).toEqual({ influxdb, grafana: influxdb });
});

it('compose.yaml mounts and builds what is there', () => {
  const folders = services
    .flatMap(([, { volumes = [] }]) => volumes)
    .map((volume) => (typeof volume === 'string' ? volume.replace(/:.*/, '') : volume.source))
    .filter((source) => source.startsWith('.'));
  expect(folders).toHaveLength(4);
  const { context = '', dockerfile = '' } = service('bakeoff').build ?? {};
  const home = service('grafana').environment?.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH ?? '';
  const needed = [
    ...folders,
    join(context, dockerfile),
    join('../dashboards/generated', basename(home)),
  ].map((path) => resolve(projectRoot, 'docker', path));
  // The head has results/ made.
  const results = join(projectRoot, 'results');
  expect(needed.filter((path) => !existsSync(path) && path !== results)).toEqual([]);
});

it('compose.yaml runs scenarios on the InfluxDB beside it', () => {
  const [command, subcommand, ...flags] = service('bakeoff').entrypoint ?? [];
  expect([command, subcommand]).toEqual(['bakeoff', 'scenario']);
  expect(readScenarioOptions([...flags, 'nginx-open-file-cache', '--quick'])).toMatchObject({
    name: 'nginx-open-file-cache',
    quick: true,
    store: { url: 'http://influxdb:8086' },
  });
  expect(service('grafana').environment?.INFLUX_URL).toBe('http://influxdb:8086');
});

it('compose.yaml allows the connections of every scenario', async () => {
  const connections = (await loadScenarios()).flatMap(({ load, variants }) =>
    variants.map((variant) => (variant.load ?? load).connections),
  );
  expect(Math.max(...connections)).toBeGreaterThan(1000);
  expect(service('bakeoff').ulimits?.nofile).toBeGreaterThan(2 * Math.max(...connections));
});

it('compose.yaml has secrets made by the commands at its head', () => {
  const [, commands = ''] = /^# {3}(mkdir -p results.*\n(?:# {6}.*\n)*)/m.exec(composeText) ?? [];
  const folder = newFolder();
  mkdirSync(join(folder, 'docker'));
  execFileSync('sh', ['-euc', commands.replaceAll(/^# */gm, '')], { cwd: folder });
  const file = join(folder, 'docker/.env');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const values = readFileSync(file, 'utf8').split('\n');
  expect(values).toContain(`BAKEOFF_USER=${process.getuid?.()}:${process.getgid?.()}`);
  const required = new Set([...composeText.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name));
  expect(required.size).toBe(3);
  for (const name of required)
    expect(values).toContainEqual(expect.stringMatching(`^${name}=[0-9a-f]{48}$`));
  // It throws where git would take the file.
  execFileSync('git', ['check-ignore', 'docker/.env'], { cwd: projectRoot });
});

it('the Dockerfile is built from pinned images', () => {
  const images = argumentsOf('FROM');
  expect(images).toHaveLength(3);
  for (const image of images) expect(image).toMatch(/^[a-z]+:\d+\.\d+\.\d+-bookworm(-slim)?\b/);
});

it('the Dockerfile starts as a user with a number', () => {
  const last = instructions.findLast((line) => /^(FROM|USER) /.test(line));
  expect(last).toBe('USER 1000:1000');
});

it('the Dockerfile agrees with the project in versions', () => {
  const image = (name: string) =>
    new RegExp(`^FROM ${name}:([\\d.]+)-`, 'm').exec(dockerfile)?.[1] ?? '';
  const go = /^go (\S+)$/m.exec(read('xk6-loadgen/go.mod'))?.[1] ?? '';
  expect(atLeast(image('golang'), go)).toBe(true);
  expect(read('README.md')).toContain(`Go ≥ ${go.replace(/\.0$/, '')},`);
  expect(image('node')).toMatch(/^20\./);
  expect(engines.node).toContain('^20.19.0');
  expect(atLeast(image('node'), '20.19.0')).toBe(true);
  const own = service('bakeoff').image ?? '';
  expect(own).toMatch(new RegExp(`^\\S+/\\S+:${version}$`));
  expect(argumentsOf('LABEL')[0]).toContain(`org.opencontainers.image.version="${version}"`);
  const commented = /^# .*?([\w.-]+\/\S+:\d+\.\d+\.\d+)/gm;
  for (const [, name] of dockerfile.matchAll(commented)) expect(name).toBe(own);
});

it("the Dockerfile installs the setup's packages, pinned", () => {
  const [, packages = ''] =
    /apt-get install \S+ \S+ (.*?) &&/.exec(argumentsOf('RUN').join('\n')) ?? [];
  const servers = (['nginx', 'h2o', 'nghttpd', 'openssl'] as const).flatMap(aptPackages);
  const pinned = servers.map((name) => `${name}=\\d+\\.\\d+\\S*\\*`);
  expect(packages).toMatch(new RegExp(`^${[...pinned, 'util-linux', 'iproute2'].join(' ')}$`));
});

it('the Dockerfile has beside k6 what is built with it', () => {
  const built = argumentsOf('RUN').flatMap(
    (line) => / go build (?:-\S+ )*-o \/k6\/bin\/ (.*?) &&/.exec(line)?.[1]?.split(' ') ?? [],
  );
  const commands = readdirSync(join(projectRoot, 'xk6-loadgen/cmd'));
  const others = commands.filter((command) => command !== 'k6');
  expect(others).toContain('delaylink');
  expect(new Set(built)).toEqual(new Set(others.map((command) => `./cmd/${command}`)));
  expect(argumentsOf('COPY')).toContain('--from=k6 /k6/bin/ /usr/local/bin/');
});

const copied = argumentsOf('COPY')
  .filter((line) => !line.startsWith('--from'))
  .flatMap((line) => line.split(' ').slice(0, -1));
const intoProject = [
  'package.json',
  'LICENSE',
  'README.md',
  'bin',
  'lib',
  'scenarios',
  'server-configs',
  'xk6-loadgen/metrics.json',
  'dashboards/names.ts',
];

it('the content of the image is there, and let through by .dockerignore', () => {
  const [ignore, ...exceptions] = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(ignore).toBe('*');
  expect(copied.filter((path) => !existsSync(join(projectRoot, path)))).toEqual([]);
  expect(new Set(copied.map((path) => `!${path.split('/')[0]}`))).toEqual(new Set(exceptions));
  expect(intoProject.filter((path) => !copied.includes(path))).toEqual([]);
});

it('the content of the image is all that is compiled or imported', async () => {
  const { metafile } = await build({
    entryPoints: [
      'lib/cli/main.ts',
      'lib/index.ts',
      'bin/bakeoff.mjs',
      ...readdirSync(join(projectRoot, 'scenarios'))
        .filter((file) => file.endsWith('.ts'))
        .map((file) => `scenarios/${file}`),
    ],
    absWorkingDir: projectRoot,
    outdir: 'nowhere',
    write: false,
    metafile: true,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  });
  const files = Object.keys(metafile.inputs);
  expect(files.length).toBeGreaterThan(50);
  const isCopied = (file: string) => intoProject.some((one) => `${file}/`.startsWith(`${one}/`));
  expect(files.filter((file) => !isCopied(file))).toEqual([]);
});
