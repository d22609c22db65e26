// Kernel settings as a network asks for them: files in sysctl.conf's notation.
import { readLayers, type ConfigLayer } from '../servers/config-layers.ts';
import { UserError } from '../errors.ts';
import type { NetworkSpec } from '../scenario/model.ts';
import type { SettingOrder } from './link-messages.ts';

/** The settings of both sides, each once: of one that stands in several files, or lines, the last holds. Throws UserError for a file or line that cannot be read. */
export async function settingsOf({ serverSettings, clientSettings }: NetworkSpec): Promise<SettingOrder[]> {
  return [...await settingsOfSide('server', serverSettings), ...await settingsOfSide('client', clientSettings)];
}

async function settingsOfSide(side: SettingOrder['side'], files: readonly string[]): Promise<SettingOrder[]> {
  const layers = await readLayers('sysctl', files);
  const values = new Map(layers.flatMap((layer) => readSettings(layer)));
  return [...values].map(([name, value]) => ({ side, name, value }));
}

/**
 * Name and value of each line, as sysctl.conf(5) has them: `#` and `;` begin comments, a `-` before a name says that it may
 * fail (here all may, and each that does is named), and in a name `/` may stand for `.`. Throws UserError for any other line.
 */
export function readSettings({ origin, text }: ConfigLayer): [name: string, value: string][] {
  return text.split('\n').flatMap((raw, index): [string, string][] => {
    const line = raw.trim();
    if (line === '' || /^[#;]/.test(line)) return [];
    const [, name, value] = /^-?\s*([\w.\/-]+)\s*=\s*(\S.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined || !settingName.test(dotted(name))) throw new UserError(`${origin}, line ${index + 1}: "${line}" is no kernel setting: write name = value, e.g. net.core.somaxconn = 128`);
    return [[dotted(name), value]];
  });
}

/** As the link takes it: two parts at least, none of them empty. */
const settingName = /^[\w-]+(\/[\w-]+)*(\.[\w-]+(\/[\w-]+)*)+$/;

/** Where the first separator is a slash, dots are part of the names between them: an interface's, as eth0.1. */
function dotted(name: string): string {
  if (/[./]/.exec(name)?.[0] !== '/') return name;
  return name.replaceAll(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}
