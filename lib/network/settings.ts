// Kernel settings as a network asks for them: files in sysctl.conf's notation.
import { readLayers, type ConfigLayer } from '../servers/config-layers.ts';
import { UserError } from '../errors.ts';
import type { NetworkSpec } from '../scenario/model.ts';
import type { SettingOrder } from './link-messages.ts';

/** The settings of both sides, each once: the last of several lines or files holds. Throws UserError for a wrong file or line. */
export async function settingsOf({
  serverSettings,
  clientSettings,
}: NetworkSpec): Promise<SettingOrder[]> {
  return [
    ...(await settingsOfSide('server', serverSettings)),
    ...(await settingsOfSide('client', clientSettings)),
  ];
}

async function settingsOfSide(
  side: SettingOrder['side'],
  files: readonly string[],
): Promise<SettingOrder[]> {
  const layers = await readLayers('sysctl', files);
  const values = new Map(layers.flatMap((layer) => readSettings(layer)));
  return [...values].map(([name, value]) => ({ side, name, value }));
}

/**
 * Name and value of each line of sysctl.conf(5). A `-` before a name is ignored: settings may fail, and are named then. Throws UserError
 * for any other line.
 */
export function readSettings({ origin, text }: ConfigLayer): [name: string, value: string][] {
  return text.split('\n').flatMap((raw, index): [string, string][] => {
    const line = raw.trim();
    if (line === '' || /^[#;]/.test(line)) return [];
    const [, name, value] = /^-?\s*([\w.\/-]+)\s*=\s*(\S.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined || !settingName.test(dotted(name)))
      throw new UserError(
        `${origin}, line ${index + 1}: "${line}" is no kernel setting: write name = value, e.g. net.core.somaxconn = 128`,
      );
    return [[dotted(name), value]];
  });
}

/** At least two parts, none of them empty: the link makes a path below /proc/sys of it. */
const settingName = /^[\w-]+(\/[\w-]+)*(\.[\w-]+(\/[\w-]+)*)+$/;

/** After a first slash, dots are parts of names, such as eth0.1. */
function dotted(name: string): string {
  if (/[./]/.exec(name)?.[0] !== '/') return name;
  return name.replaceAll(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}
