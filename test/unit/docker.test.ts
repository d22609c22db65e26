// Checks of docker/ that do not need Docker.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadScenarios } from '../../lib/scenario/catalogue.ts';
import { aptPackages } from '../../lib/setup/tools.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { atLeast } from '../../lib/setup/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';

interface Service {
  image?: string;
  environment?: Record<string, string>;
  secrets?: string[];
  ports?: string[];
  volumes?: (string | { source: string })[];
  ulimits?: { nofile: number };
}

const read = (file: string) => readFileSync(join(projectRoot, file), 'utf8');
const { services: byName, secrets: variables } = parse(read('docker/compose.yaml')) as {
  services: Record<string, Service>;
  secrets: Record<string, { environment: string }>;
};
const services = Object.entries(byName);
const service = (name: string) => byName[name] ?? expect.fail(`no service ${name}`);
/** The Dockerfile's instructions, one per line, without comments. */
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
  '%s of compose.yaml is pinned, on this machine only, with passwords in files',
  (_, { image, ports = [], environment = {}, secrets = [] }) => {
    expect(image).toMatch(/^[a-z\d./_-]+:\d+\.\d+\.\d+(@sha256:[\da-f]{64})?$/);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\$\{[A-Z]+_PORT:-\d+\}:\d+$/);
    const named = Object.entries(environment).filter(([name]) => /PASSWORD|TOKEN/.test(name));
    expect(named).not.toEqual([]);
    const files = secrets.map((name) => `/run/secrets/${name}`);
    for (const [name, value] of named) {
      expect(name).toMatch(/_FILE$/);
      expect(files).toContain(value);
    }
    expect(Object.keys(variables)).toEqual(expect.arrayContaining(secrets));
  },
);

it('compose.yaml gives Grafana only a read-only password', () => {
  const { secrets = [], environment = {} } = service('grafana');
  expect(secrets).toEqual(['grafana-password', 'influx-read-password']);
  expect(environment['INFLUX_USER']).toBe('grafana');
  const script = join(projectRoot, 'docker/influxdb-reader.sh');
  expect(service('influxdb').volumes).toContain(
    './influxdb-reader.sh:/docker-entrypoint-initdb.d/influxdb-reader.sh:ro',
  );
  // InfluxDB's image silently skips scripts that are not executable.
  expect(statSync(script).mode & 0o111).toBe(0o111);
  const folder = newFolder();
  writeFileSync(join(folder, 'influx'), '#!/bin/sh\nprintf "<%s>" "$@"\n');
  writeFileSync(join(folder, 'cat'), '#!/bin/sh\necho "content of $1"\n');
  for (const name of ['influx', 'cat']) chmodSync(join(folder, name), 0o755);
  const env = {
    PATH: `${folder}:${process.env['PATH']}`,
    DOCKER_INFLUXDB_INIT_ORG: 'our org',
    DOCKER_INFLUXDB_INIT_BUCKET_ID: '0a1b',
  };
  const connections = execFileSync(script, { encoding: 'utf8', env }).trimEnd();
  expect(connections).toBe(
    '<v1><auth><create><--org><our org><--read-bucket><0a1b><--username><grafana><--password><content of /run/secrets/influx-read-password>',
  );
});

it('compose.yaml allows enough connections for every scenario', async () => {
  const connections = (await loadScenarios()).flatMap(({ load, variants }) =>
    variants.map((variant) => (variant.load ?? load).connections),
  );
  expect(Math.max(...connections)).toBeGreaterThan(1000);
  expect(service('bakeoff').ulimits?.nofile).toBeGreaterThan(2 * Math.max(...connections));
});

it('setup.sh makes the passwords of compose.yaml, and keeps existing ones', () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'docker'));
  const script = join(folder, 'docker/setup.sh');
  copyFileSync(join(projectRoot, 'docker/setup.sh'), script);
  const file = join(folder, 'docker/.env');
  const valuesAfter = () => {
    execFileSync('sh', [script], { cwd: '/' });
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    return Object.fromEntries(lines.map((line) => line.split('=') as [string, string]));
  };
  const values = valuesAfter();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, 'results')).isDirectory()).toBe(true);
  const { BAKEOFF_USER: user, ...passwords } = values;
  expect(user).toBe(`${process.getuid?.()}:${process.getgid?.()}`);
  const needed = Object.values(variables).map(({ environment }) => environment);
  expect(Object.keys(passwords).sort()).toEqual(needed.sort());
  for (const password of Object.values(passwords)) expect(password).toMatch(/^[0-9a-f]{48}$/);
  expect(new Set(Object.values(passwords)).size).toBe(needed.length);

  const { INFLUX_READ_PASSWORD: _, ...kept } = values;
  const older = { ...kept, GRAFANA_PORT: '3001' };
  writeFileSync(
    file,
    Object.entries(older)
      .map((entry) => `${entry.join('=')}\n`)
      .join(''),
  );
  const again = valuesAfter();
  expect(again).toMatchObject(older);
  expect(Object.keys(again).sort()).toEqual([...Object.keys(values), 'GRAFANA_PORT'].sort());
  // git check-ignore fails for a file that git would add.
  execFileSync('git', ['check-ignore', 'docker/.env'], { cwd: projectRoot });
});

it('the Dockerfile is built from pinned images', () => {
  const images = argumentsOf('FROM');
  expect(images).toHaveLength(3);
  for (const image of images)
    expect(image).toMatch(/^[a-z]+:\d+\.\d+\.\d+-bookworm(-slim)?@sha256:[\da-f]{64}( AS \w+)?$/);
});

it('the Dockerfile sets a numeric user', () => {
  const last = instructions.findLast((line) => /^(FROM|USER) /.test(line));
  expect(last).toBe('USER 1000:1000');
});

it('the Dockerfile has the same versions as the project', () => {
  const image = (name: string) =>
    new RegExp(`^FROM ${name}:([\\d.]+)-`, 'm').exec(dockerfile)?.[1] ?? '';
  const go = /^go (\S+)$/m.exec(read('xk6-loadgen/go.mod'))?.[1] ?? '';
  expect(atLeast(image('golang'), go)).toBe(true);
  expect(read('README.md')).toContain(`Go ≥ ${go.replace(/\.0$/, '')},`);
  expect(image('node')).toMatch(/^24\./);
  expect(engines.node).toContain('>=22.12.0');
  const imageName = service('bakeoff').image ?? '';
  expect(imageName).toMatch(new RegExp(`^\\S+/\\S+:${version}$`));
  expect(argumentsOf('LABEL')[0]).toContain(`org.opencontainers.image.version="${version}"`);
  const commented = /^# .*?([\w.-]+\/\S+:\d+\.\d+\.\d+)/gm;
  for (const [, name] of dockerfile.matchAll(commented)) expect(name).toBe(imageName);
});

it('the image has no package that development alone needs', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { devOptional?: true; optionalDependencies?: Record<string, string> }>;
  };
  const places = Object.entries(packages).flatMap(
    ([place, { devOptional, optionalDependencies = {} }]) => {
      if (devOptional !== true) return [];
      const scopes = Object.keys(optionalDependencies).map((name) => name.split('/')[0]);
      return [place, ...new Set(scopes.map((scope) => `node_modules/${scope}`))];
    },
  );
  expect(places).toContain('node_modules/typescript');
  const install = argumentsOf('RUN').find((line) => line.includes('npm ci --omit=dev ')) ?? '';
  const removed = /&& rm -rf (.*)$/.exec(install)?.[1]?.split(' ') ?? [];
  expect(removed).toEqual(expect.arrayContaining(places));
});

it('the Dockerfile installs the packages of the setup, pinned', () => {
  const [, packages = ''] =
    /apt-get install \S+ \S+ (.*?) &&/.exec(argumentsOf('RUN').join('\n')) ?? [];
  const servers = (['nginx', 'h2o', 'nghttpd', 'openssl'] as const).flatMap(aptPackages);
  const pinned = servers.map((name) => `${name}=\\d+\\.\\d+\\S*\\*`);
  expect(packages).toMatch(new RegExp(`^${[...pinned, 'util-linux', 'iproute2'].join(' ')}$`));
});

it('the Dockerfile copies all programs that are built with k6', () => {
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
  'index.ts',
  'lib',
  'scenarios',
  'server-configs',
  'xk6-loadgen/metrics.json',
  'dashboards/names.ts',
];

it('the files of the image exist, and .dockerignore lets them in', () => {
  const [ignore, ...lines] = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(ignore).toBe('*');
  expect(copied.filter((path) => !existsSync(join(projectRoot, path)))).toEqual([]);
  // The last line that fits a file decides.
  const end = lines.findLastIndex((line) => line.startsWith('!')) + 1;
  const exceptions = lines.slice(0, end);
  expect(new Set(copied.map((path) => `!${path.split('/')[0]}`))).toEqual(new Set(exceptions));
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  const tests = files.filter((line) => line.startsWith('!lib/'));
  expect(tests).not.toEqual([]);
  expect(lines.slice(end).map((line) => `!${line}`)).toEqual(tests);
  expect(intoProject.filter((path) => !copied.includes(path))).toEqual([]);
});

it('the image contains all compiled and imported files', async () => {
  const { metafile } = await build({
    entryPoints: [
      'lib/cli/main.ts',
      'index.ts',
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
  const isCopied = (file: string) =>
    intoProject.some((folder) => `${file}/`.startsWith(`${folder}/`));
  expect(files.filter((file) => !isCopied(file))).toEqual([]);
});
