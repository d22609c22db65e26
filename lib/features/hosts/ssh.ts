// A script on another host, over ssh.
import { lookup } from 'node:dns/promises';
import { homedir } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, prefixed, printable } from '../../errors.ts';
import { run, startChild } from '../../process.ts';
import { commandWords, shellWord } from '../../scenario/load/shell-words.ts';
import { find, thisMachine } from '../../setup/machine.ts';
import { fromCallersFolder } from '../../setup/paths.ts';
import { wanted } from './messages.ts';

/** The ssh command, like GIT_SSH_COMMAND: `ssh -p 2222 -i key`. */
const sshVariable = 'BAKEOFF_SSH';

/** Never prompt, forward no keys, notice a cut within 15 s. */
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

export type Connection = Awaited<ReturnType<typeof connect>>;

function sshWords(): string[] {
  const configured = process.env[sshVariable]?.trim() || 'ssh';
  return prefixed(() => commandWords(configured, 0, homedir()), `${sshVariable}: `);
}

/** Throws UserError without ssh, or for a wrong BAKEOFF_SSH. */
async function findSsh(host: string): Promise<{ program: string; words: string[] }> {
  const [named = '', ...words] = sshWords();
  const program = named.includes('/') ? fromCallersFolder(named) : await find(named, thisMachine());
  if (program !== undefined) return { program, words };
  throw new UserError(
    `there is no ${named} here to reach ${host} with: install it (Debian: openssh-client), or name one in ${sshVariable}`,
  );
}

/** Returns the command with which a user reaches the host as bakeoff does, with its port and key. */
function byHand(host: string, ...command: string[]): string {
  return [...sshWords(), host, ...command].map(shellWord).join(' ');
}

/** The addresses of a host's name here, by ssh's configuration; [] if unknown. */
export async function addressesOf(host: string): Promise<string[]> {
  const { program: command, words } = await findSsh(host);
  const limit = { seconds: 5, message: 'ssh -G' };
  const asked = run({ command, args: [...words, '-G', '--', host], cwd: process.cwd(), limit });
  const settings = await asked.catch(() => undefined);
  const name = /^hostname (\S+)$/m.exec(settings?.stdout ?? '')?.[1] ?? host.replace(/^.*@/, '');
  const addresses = await lookup(name, { all: true }).catch(() => []);
  return addresses.map(({ address }) => address);
}

/** Time for the agent to end; servers get 5 s. */
const closeMs = 10_000;

/** Limit of a line from the agent. */
export const usualLineBytes = 4e6;

/** Runs a script there in sh. Throws UserError without ssh, or for a wrong BAKEOFF_SSH. */
export async function connect(host: string, script: string) {
  const { program, words } = await findSsh(host);
  const child = await startChild({
    command: program,
    args: [...words, ...options, '--', host, `exec sh -c '${script.replaceAll("'", `'\\''`)}'`],
    // A key in BAKEOFF_SSH may be relative.
    cwd: process.cwd(),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { stdin, stdout, stderr } = child.process;
  let errors = '';
  stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-10_000);
  });
  stdin?.on('error', () => undefined);
  const lines = createInterface({ input: stdout as NonNullable<typeof stdout> });
  const drained = new Promise((resolve) => child.process.once('close', resolve));
  let unended = 0;
  let mostLineBytes = usualLineBytes;
  let refusal: string | undefined;
  const refuse = (reason: string) => {
    refusal ??= reason;
    lines.close();
    stdout?.destroy();
    child.stop(0).catch(() => undefined);
  };
  stdout?.on('data', (bytes: Buffer) => {
    const end = bytes.lastIndexOf('\n');
    unended = end < 0 ? unended + bytes.length : bytes.length - end - 1;
    if (unended > mostLineBytes)
      refuse(
        `${host} prints an endless line: check what its shell prints at the start (${byHand(host, 'true')})`,
      );
  });
  let isSent = false;
  let closing: Promise<void> | undefined;
  const end = async () => {
    stdin?.end();
    await Promise.race([child.exited, delay(closeMs, undefined, { ref: false })]);
    await child.stop(1000).catch(() => undefined);
  };
  return {
    /** Lines that the remote command prints. */
    onLine: (listen: (line: string) => void) => void lines.on('line', listen),
    write: (data: string | Buffer) => void stdin?.write(data),
    /** Returns whether the line asks for the file. It is sent once: a host that asks without end would fill the memory. */
    sendsIfWanted(line: string, file: Buffer) {
      if (line !== wanted) return false;
      if (!isSent) stdin?.write(file);
      isSent = true;
      return true;
    },
    /** Returns how long a line may be from now on. */
    allowLines: (bytes: number) => void (mostLineBytes = bytes),
    /** Ends the connection for this reason. */
    refuse,
    /** Settles at the connection's end, with the reason in a line. */
    ended: child.exited.then(async ({ code }) => {
      await drained;
      return refusal ?? explained(host, code, errors);
    }),
    /** Ends the command's input, then the connection. Never throws; may be called twice. */
    close: () => (closing ??= end()),
  };
}

/** Messages by ssh's output; the first match counts. HOST is the host's name, SSH what a person types to reach it. */
const reasons: readonly [RegExp, string][] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED/,
    'the host key of HOST has changed: somebody may be intercepting the connection; if you know why it changed, remove the old one (ssh-keygen -R KEY) and connect once by hand (SSH)',
  ],
  [
    /Host key verification failed/,
    'the host key of HOST is not known here: connect once by hand (SSH) and compare it',
  ],
  [/Could not resolve hostname/i, 'the name HOST does not resolve: check it and your DNS'],
  [
    /Permission denied/,
    "HOST refuses this user's keys: make this work without a password (ssh-copy-id): SSH",
  ],
  [
    /Connection timed out|Operation timed out|timed out during banner/i,
    'HOST does not answer: check that it is up and that no firewall blocks ssh',
  ],
  [
    /Connection refused/,
    `HOST refuses ssh connections: check that sshd runs there, and on which port (${sshVariable}="ssh -p PORT", or ~/.ssh/config)`,
  ],
  [
    /No route to host|Network is unreachable/,
    'HOST cannot be reached from here: check the network between',
  ],
];

const fullDisk: (typeof reasons)[number] = [
  /No space left on device/,
  'the disk of HOST is full: bakeoff needs some megabytes in ~/.cache and /tmp there',
];

function explained(host: string, code: number | null, errors: string): string {
  // 255 is ssh's own error; other codes are the remote script's.
  const reason = (code === 255 ? reasons : [fullDisk]).find(([form]) => form.test(errors))?.[1];
  if (reason !== undefined) {
    // As known_hosts has it: [NAME]:PORT with another port than 22.
    const key = /^Host key for (\S+) has changed/m.exec(errors)?.[1] ?? 'NAME';
    const values = { HOST: host, SSH: byHand(host), KEY: shellWord(printable(key)) };
    return reason.replaceAll(
      /\b(?:HOST|SSH|KEY)\b/g,
      (name) => values[name as keyof typeof values],
    );
  }
  const lines = errors.split('\n').map((line) => printable(line).trim());
  const last = lines.findLast((line) => line !== '' && !/^(?:at |Node\.js v)/.test(line));
  return `the connection to ${host} ended${code ? ` with code ${code}` : ''}${last === undefined ? '' : `: ${last}`}`;
}
