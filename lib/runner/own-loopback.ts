// A loopback of its own for a side whose config may have code: a network namespace with lo alone. From there the code reaches neither the
// other sides nor services of this machine.
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { systemPath } from '../../bin/trust.mjs';
import { UserError } from '../errors.ts';
import { namesIn, readIfThere } from '../files.ts';
import { pipesOf, startChild } from '../process.ts';
import { loopbackAddress } from '../servers/ports.ts';
import type { Enclosure } from './enclosure.ts';

/** As long as a free port of this machine, since answers may contain it. */
const port = 20_000;

/** Brings lo up, sets the kernel settings of its input (a line with the file, then one with the value), and holds the namespace. */
const holdScript = `
  ip link set lo up || exit
  while IFS= read -r file && [ -n "$file" ] && IFS= read -r value; do
    echo "$value" >"$file"
  done 2>/dev/null
  echo ready
  read -r end`;

/**
 * Opens a loopback of a side's own, with the kernel settings of the machine's network.
 * @throws UserError if there can be none, as without root; or the signal's reason
 */
export async function openOwnLoopback(signal: AbortSignal): Promise<Enclosure> {
  signal.throwIfAborted();
  const child = await startChild({
    before: [['unshare', '--net', '--']],
    command: 'sh',
    args: ['-c', holdScript],
    env: { PATH: systemPath },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { stdin, stdout, end } = pipesOf(child);
  const ended = end.then(
    ({ how, last }) =>
      `its own loopback (pid ${child.pid}) ended ${how}: ${last || 'it says nothing'}`,
  );
  let isStopped = false;
  const stop = async () => {
    isStopped = true;
    await child.stop();
  };
  stdin.write(`${settingsHere().join('\n')}\n\n`);
  const failure = await Promise.race([once(stdout, 'data').then(() => undefined), ended]);
  if (failure !== undefined) throw new UserError(failure);
  if (signal.aborted) await stop();
  signal.throwIfAborted();
  const netns = `/proc/${child.pid}/ns/net`;
  return {
    server: { address: loopbackAddress, port, enter: [['nsenter', `--net=${netns}`, '--']] },
    client: { enter: [], options: { netns } },
    settings: [],
    watchCpu: () => () => ({ server: 0, generator: 0 }),
    died: new Promise((resolve) => {
      void ended.then((line) => {
        if (!isStopped) resolve(line);
      });
    }),
    stop,
  };
}

/** Folders of the settings that a namespace with lo alone has too. */
const settingFolders =
  'core ipv4 ipv4/route ipv4/conf/all ipv4/conf/default ipv4/conf/lo ipv4/neigh/default ipv4/neigh/lo'
    .split(' ')
    .map((name) => `/proc/sys/net/${name}`);

/** The settings of this machine's network, as pairs of file and value. --prepare may have changed values. */
function settingsHere(): string[] {
  settingFiles ??= settingFolders.flatMap(writableIn);
  return settingFiles.flatMap((file) => {
    const value = readIfThere(file)?.trimEnd();
    return value === undefined || value.includes('\n') ? [] : [file, value];
  });
}

let settingFiles: string[] | undefined;

const writableIn = (folder: string): string[] =>
  namesIn(folder)
    .map((name) => join(folder, name))
    .filter((file) => (statSync(file).mode & writableFile) === writableFile);

/** S_IFREG and S_IWUSR of inode(7). */
const writableFile = 0o100200;
