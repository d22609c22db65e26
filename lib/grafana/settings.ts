// The files that a Grafana of ours reads. Below one folder, so that nothing of another Grafana is touched:
//   grafana.ini, provisioning/  written at each start
//   lock                        held by the Grafana that runs
//   data/                       Grafana's own, kept; with the admin's password, which it takes over only when it makes its data
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { generatedFile } from '../../dashboards/names.ts';
import { makeFolder, makePrivateFolder } from '../files.ts';
import { projectRoot } from '../setup/paths.ts';
import type { Influx } from '../store/index.ts';

/** Where the dashboards and their provisioning are. */
export const dashboardsFolder = join(projectRoot, 'dashboards');

export interface GrafanaFiles {
  config: string;
  passwordFile: string;
  /** Of the user admin, from its first start on. */
  password: string;
}

/** Writes Grafana's files. They name `influx` with its credentials, so only their owner may come to them. Throws what the file system says. */
export function writeGrafanaFiles(folder: string, port: number, influx: Influx): GrafanaFiles {
  const at = (...names: string[]): string => join(folder, ...names);
  makePrivateFolder(folder);
  for (const name of [
    'data',
    'logs',
    'plugins',
    'provisioning/datasources',
    'provisioning/dashboards',
    'provisioning/plugins',
    'provisioning/alerting',
  ])
    makeFolder(at(name));
  const passwordFile = at('data/admin-password');
  if (!existsSync(passwordFile)) writePrivate(passwordFile, randomBytes(18).toString('base64url'));
  writePrivate(at('provisioning/datasources/bakeoff.yaml'), datasourceFile(influx));
  writePrivate(at('provisioning/dashboards/bakeoff.yaml'), dashboardsFile());
  const config = at('grafana.ini');
  writePrivate(config, grafanaIni(folder, port, passwordFile));
  return { config, passwordFile, password: readFileSync(passwordFile, 'utf8') };
}

function writePrivate(file: string, text: string): void {
  // The mode is for a file that is made; one that is there keeps its own.
  rmSync(file, { force: true });
  writeFileSync(file, text, { mode: 0o600 });
}

/** The data source of dashboards/provisioning for this InfluxDB: with its user and password (2.x: the token), as bakeoff itself asks it. */
function datasourceFile({ url, database, credentials }: Influx): string {
  const file = provisioned('datasources') as {
    datasources: [Record<string, unknown> & { jsonData: Record<string, unknown> }];
  };
  const [shipped] = file.datasources;
  const { httpHeaderName1: _, ...jsonData } = shipped.jsonData;
  const access =
    credentials === null
      ? {}
      : {
          basicAuth: true,
          basicAuthUser: literal(credentials.user),
          secureJsonData: { basicAuthPassword: literal(credentials.password) },
        };
  const { secureJsonData: __, ...others } = shipped;
  return stringify({
    ...file,
    datasources: [
      {
        ...others,
        url: literal(url),
        jsonData: { ...jsonData, dbName: literal(database) },
        ...access,
      },
    ],
  });
}

function dashboardsFile(): string {
  const file = provisioned('dashboards') as { providers: [{ options: Record<string, unknown> }] };
  const [provider] = file.providers;
  return stringify({
    ...file,
    providers: [
      {
        ...provider,
        options: { ...provider.options, path: literal(join(dashboardsFolder, 'generated')) },
      },
    ],
  });
}

function provisioned(kind: 'datasources' | 'dashboards'): unknown {
  return parse(readFileSync(join(dashboardsFolder, 'provisioning', kind, 'bakeoff.yaml'), 'utf8'));
}

/** Grafana takes $NAME in these files for a variable of the environment, and $$ for a $. */
function literal(text: string): string {
  return text.replaceAll('$', '$$$$');
}

function grafanaIni(folder: string, port: number, passwordFile: string): string {
  const sections: Record<string, Record<string, string | number | boolean>> = {
    paths: Object.fromEntries(
      ['data', 'logs', 'plugins', 'provisioning'].map((name) => [name, join(folder, name)]),
    ),
    server: { protocol: 'http', http_addr: '127.0.0.1', http_port: port },
    security: {
      admin_user: 'admin',
      admin_password: `$__file{${passwordFile}}`,
      disable_gravatar: true,
    },
    // Whoever looks uses the data source's password, and every user of the machine can reach loopback.
    'auth.anonymous': { enabled: false },
    metrics: { enabled: false },
    users: { allow_sign_up: false, default_theme: 'system' },
    // The live dashboard asks every two seconds.
    dashboards: {
      min_refresh_interval: '2s',
      default_home_dashboard_path: join(dashboardsFolder, 'generated', generatedFile('comparison')),
    },
    // It tells nobody about itself and fetches nothing.
    analytics: {
      enabled: false,
      reporting_enabled: false,
      check_for_updates: false,
      check_for_plugin_updates: false,
      feedback_links_enabled: false,
    },
    news: { news_feed_enabled: false },
    plugins: { preinstall_disabled: true, public_key_retrieval_disabled: true },
    unified_alerting: { enabled: false },
    log: { mode: 'console', level: 'warn' },
  };
  // A # or ; begins a comment, but within these quotes.
  const quoted = (text: string): string => (/[#;]/.test(text) ? `"""${text}"""` : text);
  const lines = Object.entries(sections).flatMap(([section, settings]) => [
    '',
    `[${section}]`,
    ...Object.entries(settings).map(([name, value]) => `${name} = ${quoted(String(value))}`),
  ]);
  return `${['; Written by bakeoff at every start.', ...lines].join('\n')}\n`;
}
