// Connections to other hosts, by the system's ssh, with the person's own configuration of it.
import { lookup } from 'node:dns/promises';
import { homedir } from 'node:os';
import { createInterface } from 'node:readline';
import { messageOf, UserError } from '../errors.ts';
import { startChild, type Child } from '../process.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import { findAll, thisMachine } from '../setup/machine.ts';
import { run } from '../setup/run.ts';

/** How ssh is called, as in GIT_SSH_COMMAND: `ssh -p 2222 -i key`. */
const sshVariable = 'BAKEOFF_SSH';

/** It asks nobody, lends no agent of keys, and notices within 15 s that a connection was cut, which has to be its own for that. */
const options = [
  '-T',
  '-a',
  '-x',
  ...[
    'BatchMode=yes',
    'ConnectTimeout=10',
    'ServerAliveInterval=5',
    'ServerAliveCountMax=3',
    'ClearAllForwardings=yes',
    'ControlMaster=no',
    'ControlPath=none',
    'PermitLocalCommand=no',
    'RemoteCommand=none',
  ].flatMap((option) => ['-o', option]),
];

export interface Connection {
  /** Lines that the command there prints. */
  onLine(listen: (line: string) => void): void;
  write(data: string | Buffer): void;
  /** Settles when it has ended, with one line that says how. */
  ended: Promise<string>;
  /** Ends the command's input, so that it ends in order, and the connection. Never throws; may be called twice. */
  close(): Promise<void>;
}

/** Throws UserError (exit code 2). */
function sshWords(): [program: string, ...words: string[]] {
  try {
    return commandWords(process.env[sshVariable]?.trim() || 'ssh', 0, homedir()) as [
      string,
      ...string[],
    ];
  } catch (error) {
    throw new UserError(`${sshVariable}: ${messageOf(error)}`, 2);
  }
}

/** Those that a host's name has here, by ssh's own configuration; none where that cannot be told. */
export async function addressesOf(host: string): Promise<string[]> {
  const [command, ...words] = sshWords();
  const settings = await run({
    command,
    args: [...words, '-G', '--', host],
    limit: { seconds: 5, words: 'ssh -G' },
  }).then(
    ({ stdout }) => stdout,
    () => '',
  );
  const name = /^hostname (\S+)$/m.exec(settings)?.[1] ?? host.replace(/^.*@/, '');
  return lookup(name, { all: true }).then(
    (found) => found.map(({ address }) => address),
    () => [],
  );
}

/** What an ordered end may take there: servers get 5 s. */
const closeMs = 10_000;

/** A line of the agent has up to a whole record of k6. */
const mostLineBytes = 256e6;

/**
 * Starts a script of sh there, whatever the remote user's shell is.
 * @throws UserError where there is no ssh, or BAKEOFF_SSH is not right
 */
export async function connect(host: string, script: string): Promise<Connection> {
  const [program, ...words] = sshWords();
  if (!program.includes('/') && (await findAll(program, thisMachine())).length === 0)
    throw new UserError(
      `there is no ${program} here to reach ${host} with: install it (Debian: openssh-client), or name one in ${sshVariable}`,
    );
  const child = await startChild({
    command: program,
    args: [...words, ...options, '--', host, `exec sh -c '${script.replaceAll("'", `'\\''`)}'`],
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { stdin, stdout, stderr } = child.process;
  let said = '';
  stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-10_000);
  });
  // Who has ended no longer reads.
  stdin?.on('error', () => undefined);
  const lines = createInterface({ input: stdout as NonNullable<typeof stdout> });
  const drained = new Promise((resolve) => child.process.once('close', resolve));
  let unended = 0;
  stdout?.on('data', (bytes: Buffer) => {
    const end = bytes.lastIndexOf('\n');
    unended = end < 0 ? unended + bytes.length : bytes.length - end - 1;
    if (unended <= mostLineBytes) return;
    stdout.destroy();
    child.stop(0).catch(() => undefined);
  });
  let closing: Promise<void> | undefined;
  return {
    onLine: (listen) => void lines.on('line', listen),
    write: (data) => void stdin?.write(data),
    ended: child.exited.then(async ({ code }) => {
      await drained;
      return unended > mostLineBytes
        ? `${host} prints a line without end: see what its shell prints at its start (ssh ${host} true)`
        : explained(host, code, said);
    }),
    close: () => (closing ??= close(child)),
  };
}

async function close(child: Child): Promise<void> {
  child.process.stdin?.end();
  const late = new Promise((resolve) => setTimeout(resolve, closeMs).unref());
  await Promise.race([child.exited, late]);
  await child.stop(1000).catch(() => undefined);
}

/** By what ssh says; the first that fits. */
const reasons: readonly [RegExp, (host: string) => string][] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED/,
    (host) =>
      `${host} has another host key than it had: somebody may be in between; if you know why, remove the old one (ssh-keygen -R HOST) and connect once by hand`,
  ],
  [
    /Host key verification failed/,
    (host) =>
      `the host key of ${host} is not known here: connect once by hand (ssh ${host}) and compare it`,
  ],
  [/Could not resolve hostname/i, (host) => `there is no host ${host}: see that its name resolves`],
  [
    /Permission denied/,
    (host) =>
      `${host} refuses this user's keys: have ssh ${host} work without a password (ssh-copy-id)`,
  ],
  [
    /Connection timed out|Operation timed out|timed out during banner/i,
    (host) => `${host} does not answer: see that it is up, and that no firewall is before its ssh`,
  ],
  [
    /Connection refused/,
    (host) =>
      `${host} refuses connections to its ssh: see that sshd runs there, and on which port (${sshVariable}="ssh -p PORT", or ~/.ssh/config)`,
  ],
  [
    /No route to host|Network is unreachable/,
    (host) => `there is no way to ${host} from here: see to the network between`,
  ],
];

const fullDisk: (typeof reasons)[number] = [
  /No space left on device/,
  (host) => `the disk of ${host} is full: bakeoff needs some megabytes in ~/.cache and /tmp there`,
];

/** What ssh said of its end, in one line. */
function explained(host: string, code: number | null, said: string): string {
  // ssh's own end has this code; else it is what runs there that speaks.
  const reason = (code === 255 ? reasons : [fullDisk]).find(([words]) => words.test(said))?.[1];
  if (reason !== undefined) return reason(host);
  const last = said
    .trim()
    .split('\n')
    .map((line) => line.replace(/\p{Cc}/gu, ' ').trim())
    .filter((line) => line !== '' && !/^(?:at |Node\.js v)/.test(line))
    .at(-1);
  return `the connection to ${host} ended${code === 0 || code === null ? '' : ` with code ${code}`}${last === undefined ? '' : `: ${last}`}`;
}
