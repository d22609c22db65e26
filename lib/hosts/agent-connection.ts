// Connections to other hosts: by the system's ssh with the user's own configuration, and to bakeoff's agent there.
import { createHash } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect as connectTo, type Socket } from 'node:net';
import { homedir, networkInterfaces } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, asWords, inOneLine, printable } from '../errors.ts';
import { filesBelow } from '../files.ts';
import { check } from '../form.ts';
import { machineClock } from '../machine/usage.ts';
import { startChild, run } from '../process.ts';
import type { LinkFigures } from '../result/result.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import { shippedConfigs } from '../servers/config-files.ts';
import { isLoopback, type Address } from '../servers/ports.ts';
import { bundledForNode } from '../../bin/bundle.mjs';
import { findAll, thisMachine } from '../setup/machine.ts';
import type { Calls } from './agent.ts';
import { answerForms, replyForm } from './answers.ts';
import { greeting, patienceMs, wanted } from './messages.ts';

type Agent = Awaited<ReturnType<typeof greeted>>;

export type AnswerOf<Name extends keyof Calls> = Awaited<ReturnType<Calls[Name]>>;

/** Runs the agent from the remote user's cache. Asks for the file if it is missing. */
function startScript(hash: string, bytes: number): string {
  return `command -v node >/dev/null || { echo "there is no Node there" >&2; exit 90; }
node -e '${fits}' || { echo "the Node there is too old: bakeoff needs 20.19 or newer" >&2; exit 93; }
${keepScript(`agent-${hash}/lib/hosts`, 'agent.mjs', bytes)}
exec node "$d/agent.mjs"`;
}

/** The versions of Node that bin/bakeoff.mjs accepts. */
const fits =
  'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)';

/** Unused agents and k6 are deleted. Each use sets a folder's time. */
const unusedDays = 30;

/**
 * A shell script that stores its input in a folder of the remote user's cache, unless it is there. Sets `$d` to the folder.
 * @param folder agent-… or k6-…, or a folder below it
 */
export function keepScript(folder: string, name: string, bytes: number): string {
  return `c="\${XDG_CACHE_HOME:-$HOME/.cache}/bakeoff"
d="$c/${folder}"
touch -c "$c/${folder.split('/')[0]}" 2>/dev/null
if ! [ -f "$d/${name}" ]; then
  trap 'rm -f "$d/$$.tmp"' EXIT
  trap 'exit 91' HUP INT TERM
  mkdir -p "$d" && echo ${wanted} && head -c ${bytes} >"$d/$$.tmp" && [ "$(wc -c <"$d/$$.tmp")" = ${bytes} ] && chmod 755 "$d/$$.tmp" && mv "$d/$$.tmp" "$d/${name}" || exit 91
  find "$c"/agent-* "$c"/k6-* -prune -type d -mtime +${unusedDays} -exec rm -rf {} \\; 2>/dev/null
fi`;
}

const usualLimitMs = 30_000;

export const keepLimitMs = 120_000;

/** The agent ends if it hears nothing for patienceMs. */
const heartbeatMs = patienceMs / 6;

const greetingLimitMs = 60_000;

/**
 * Connects, and starts the agent there.
 * @throws UserError with the remedy
 */
export async function openAgent(name: string) {
  const text = await bundledAgent();
  // Agents of different versions lie side by side.
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const connection = await connect(name, startScript(hash, text.length));
  try {
    const agent = await greeted(name, connection, text);
    const facts = await agent.ask('facts', undefined);
    await requireAway(name, facts.address);
    return { ...agent, facts };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Throws UserError if the address that a host gives itself leads to this machine: the load goes there. */
async function requireAway(name: string, address: string): Promise<void> {
  const interfaces = Object.values(networkInterfaces()).flat();
  const isHere = interfaces.some((one) => one?.address === address);
  // Who names an address of this machine means this machine.
  const isMeant = async () => (await addressesOf(name)).includes(address);
  if (!isLoopback(address) && (!isHere || (await isMeant()))) return;
  throw new UserError(
    `${name} says that its address is ${address}, which is one of this machine: nothing else than the host is loaded`,
  );
}

/** Needs only Node. Contains the shipped configs by path, in base64. */
async function bundledAgent(): Promise<Buffer> {
  const shippedFiles: Record<string, string> = {};
  for (const file of await filesBelow(shippedConfigs))
    shippedFiles[path.join('server-configs', file)] = await readFile(
      path.join(shippedConfigs, file),
      'base64',
    );
  return Buffer.from(await bundledForNode(new URL('agent.ts', import.meta.url), { shippedFiles }));
}

async function greeted(name: string, connection: Connection, text: Buffer) {
  const asked = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>();
  const deaths = new Map<number, (how: string) => void>();
  const listeners = new Map<number, (text: string) => void>();
  let count = 0;
  /** Questions under way whose answers may be long. */
  let longAsked = 0;
  const allowLines = () => connection.allowLines(longAsked > 0 ? longLineBytes : usualLineBytes);
  const remedy = 'install it (Debian: apt-get install nodejs), version 20.19 or newer';
  const ended = connection.ended.then((how) =>
    how.replace(/: there is no Node there$/, `$&: ${remedy}`),
  );
  let over: string | undefined;
  void ended.then((how) => {
    over = how;
    for (const { reject } of asked.values()) reject(new UserError(how));
    for (const tell of deaths.values()) tell(how);
  });

  const ready = new Promise<void>((resolve) => {
    connection.onLine((line) => {
      if (connection.sendsIfWanted(line, text)) return;
      if (line === greeting) resolve();
      // Other lines come from the shell's start-up files.
      else if (line.startsWith('{')) hear(line);
    });
  });
  // Texts from there appear in messages and tables.
  const plain = (key: string, value: unknown) =>
    typeof value === 'string' && !asItIs.has(key) ? inOneLine(value) : value;
  function hear(line: string) {
    let said: unknown;
    try {
      said = JSON.parse(line, plain);
    } catch {
      return;
    }
    const checked = check(replyForm, said);
    if (!('value' in checked)) return;
    const reply = checked.value;
    if ('died' in reply) return deaths.get(reply.died)?.(reply.how.slice(0, longestSaid));
    if ('printed' in reply) return listeners.get(reply.printed)?.(reply.text);
    if ('told' in reply) return tell(reply.told);
    const question = asked.get(reply.id);
    asked.delete(reply.id);
    if ('problem' in reply)
      question?.reject(new UserError(`${name}: ${reply.problem}`, reply.exitCode === 2 ? 2 : 1));
    else question?.resolve(reply.answer);
  }
  let toldCharacters = 0;
  function tell(told: string) {
    toldCharacters += told.length;
    if (toldCharacters > mostTold)
      return connection.refuse(`${name}: bakeoff's agent there prints lines without end`);
    console.error(`${name}: ${printable(told).trimEnd()}`);
  }
  const slow = `${name}: bakeoff's agent does not start there within ${greetingLimitMs / 1000} s`;
  const late = delay(greetingLimitMs, slow, { ref: false });
  const failed = await Promise.race([ready, ended, late]);
  if (failed !== undefined) throw new UserError(failed);
  const heartbeat = setInterval(() => connection.write('\n'), heartbeatMs);
  heartbeat.unref();
  void ended.then(() => clearInterval(heartbeat));
  return {
    /** Throws UserError with the agent's message, the connection's end, or after `limitMs`, which ends it; or the signal's reason. */
    async ask<Name extends keyof Calls>(
      call: Name,
      given: Parameters<Calls[Name]>[0],
      { limitMs = usualLimitMs, signal }: { limitMs?: number; signal?: AbortSignal } = {},
    ): Promise<AnswerOf<Name>> {
      signal?.throwIfAborted();
      if (over !== undefined) throw new UserError(over);
      const id = ++count;
      const isLong = longAnswers.has(call);
      const answer = new Promise<unknown>((resolve, reject) => asked.set(id, { resolve, reject }));
      const stop = (): void => asked.get(id)?.reject(signal?.reason as Error);
      signal?.addEventListener('abort', stop);
      const giveUp = () => {
        const late = `${name}: bakeoff's agent there does not answer within ${limitMs / 1000} s`;
        asked.get(id)?.reject(new UserError(late));
        void connection.close();
      };
      const tooLate = limitMs === Infinity ? undefined : setTimeout(giveUp, limitMs);
      if (isLong) longAsked++;
      allowLines();
      try {
        connection.write(`${JSON.stringify({ id, name: call, given })}\n`);
        const checked = check<AnswerOf<Name>>(answerForms[call], await answer);
        if ('value' in checked) return checked.value;
        throw new UserError(
          `${name}: bakeoff's agent there gives no right answer to "${call}": ${checked.problem}`,
        );
      } finally {
        if (isLong) longAsked--;
        allowLines();
        clearTimeout(tooLate);
        signal?.removeEventListener('abort', stop);
      }
    },
    /** Settles when the server with that id ends by itself, or the connection does. */
    died: (server: number) =>
      new Promise<string>((resolve) => {
        if (over === undefined) deaths.set(server, resolve);
        else resolve(over);
      }),
    /** Listens to the output of the script of the k6 with that id. */
    onPrinted: (k6: number, listen: (text: string) => void) => void listeners.set(k6, listen),
    /** Ends the agent and everything that it started. Never throws; may be called twice. */
    close: () => connection.close(),
  };
}

/** In characters. An installation tells a few lines. */
const mostTold = 100_000;

/** Of a message, in characters. */
const longestSaid = 4000;

/** Calls whose answers have samples, or a complete record of k6. */
const longAnswers: ReadonlySet<keyof Calls> = new Set(['watched', 'k6']);

/** Properties that keep all characters: bodies of requests, files, and the output of scripts. */
const asItIs = new Set(['body', 'console', 'log', 'record', 'text']);

const clockTries = 8;

/** How far an agent's clocks are ahead of this machine's, in ms. */
export interface ClocksAhead {
  monotonicMs: number;
  wallMs: number;
}

/** Takes the quickest of some answers, whose error is at most half its time. */
export async function clocksAhead(agent: Agent): Promise<ClocksAhead> {
  let quickest = { tookMs: Infinity, monotonicMs: 0, wallMs: 0 };
  for (let tries = 0; tries < clockTries; tries++) {
    const [beganMs, beganWallMs] = [machineClock.monotonicMs(), machineClock.wallMs()];
    const theirs = await agent.ask('clocks', undefined);
    const tookMs = machineClock.monotonicMs() - beganMs;
    const monotonicMs = theirs.monotonicMs - beganMs - tookMs / 2;
    const wallMs = theirs.wallMs - beganWallMs - tookMs / 2;
    if (tookMs < quickest.tookMs) quickest = { tookMs, monotonicMs, wallMs };
  }
  return quickest;
}

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

type Connection = Awaited<ReturnType<typeof connect>>;

function sshWords(): string[] {
  const said = process.env[sshVariable]?.trim() || 'ssh';
  return asWords(() => commandWords(said, 0, homedir()), `${sshVariable}: `);
}

/** The addresses of a host's name here, by ssh's configuration; [] if unknown. */
export async function addressesOf(host: string): Promise<string[]> {
  const [command = '', ...words] = sshWords();
  const limit = { seconds: 5, words: 'ssh -G' };
  const asked = run({ command, args: [...words, '-G', '--', host], limit });
  const settings = await asked.catch(() => undefined);
  const name = /^hostname (\S+)$/m.exec(settings?.stdout ?? '')?.[1] ?? host.replace(/^.*@/, '');
  const found = await lookup(name, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}

/** For the agent's end; servers get 5 s. */
const closeMs = 10_000;

/** Of a line of the agent, and of one whose answer may be long. */
const usualLineBytes = 4e6;
const longLineBytes = 256e6;

/** Runs a script there in sh. Throws UserError without ssh, or for a wrong BAKEOFF_SSH. */
export async function connect(host: string, script: string) {
  const [program = '', ...words] = sshWords();
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
        `${host} prints a line without end: see what its shell prints at its start (ssh ${host} true)`,
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
    /** How long a line may be from now on. */
    allowLines: (bytes: number) => void (mostLineBytes = bytes),
    /** Ends the connection for this reason. */
    refuse,
    /** Settles at the connection's end, with the reason in a line. */
    ended: child.exited.then(async ({ code }) => {
      await drained;
      return refusal ?? explained(host, code, said);
    }),
    /** Ends the command's input, then the connection. Never throws; may be called twice. */
    close: () => (closing ??= end()),
  };
}

/** Messages by ssh's output; the first match counts. HOST is the host's name. */
const reasons: readonly [RegExp, string][] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED/,
    'HOST has another host key than it had: somebody may be in between; if you know why, remove the old one (ssh-keygen -R NAME) and connect once by hand',
  ],
  [
    /Host key verification failed/,
    'the host key of HOST is not known here: connect once by hand (ssh HOST) and compare it',
  ],
  [/Could not resolve hostname/i, 'there is no host HOST: see that its name resolves'],
  [
    /Permission denied/,
    "HOST refuses this user's keys: have ssh HOST work without a password (ssh-copy-id)",
  ],
  [
    /Connection timed out|Operation timed out|timed out during banner/i,
    'HOST does not answer: see that it is up, and that no firewall is before its ssh',
  ],
  [
    /Connection refused/,
    `HOST refuses connections to its ssh: see that sshd runs there, and on which port (${sshVariable}="ssh -p PORT", or ~/.ssh/config)`,
  ],
  [
    /No route to host|Network is unreachable/,
    'there is no way to HOST from here: see to the network between',
  ],
];

const fullDisk: (typeof reasons)[number] = [
  /No space left on device/,
  'the disk of HOST is full: bakeoff needs some megabytes in ~/.cache and /tmp there',
];

function explained(host: string, code: number | null, said: string): string {
  // 255 is ssh's own error; other codes are the remote script's.
  const reason = (code === 255 ? reasons : [fullDisk]).find(([words]) => words.test(said))?.[1];
  if (reason !== undefined) return reason.replaceAll('HOST', () => host);
  const lines = said.split('\n').map((line) => printable(line).trim());
  const last = lines.findLast((line) => line !== '' && !/^(?:at |Node\.js v)/.test(line));
  return `the connection to ${host} ended${code ? ` with code ${code}` : ''}${last === undefined ? '' : `: ${last}`}`;
}

const roundTrips = 500;
const roundTripsMs = 2000;
const limitMs = 5000;
const chunkBytes = 256 * 1024;
const throughputMs = 500;

/** Measures round trips and throughput over the agent's echo. Throws the system's error. */
export async function measureLink({ address, port }: Address): Promise<LinkFigures> {
  const socket = connectTo({ host: address, port, noDelay: true });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(limitMs) });
    const cut = once(socket, 'close').then(() => {
      throw new Error('the connection was cut');
    });
    const roundTripMs = await Promise.race([cut, roundTripTimes(socket)]);
    return { roundTripMs, bytesPerSecond: await Promise.race([cut, throughput(socket)]) };
  } catch (error) {
    throw (error as Error).name === 'AbortError'
      ? new Error(`no answer within ${limitMs / 1000} s`)
      : error;
  } finally {
    socket.destroy();
  }
}

async function roundTripTimes(socket: Socket): Promise<LinkFigures['roundTripMs']> {
  const times: number[] = [];
  const endMs = performance.now() + roundTripsMs;
  while (times.length < roundTrips && (times.length === 0 || performance.now() < endMs)) {
    const beganMs = performance.now();
    socket.write('.');
    await once(socket, 'data', { signal: AbortSignal.timeout(limitMs) });
    times.push(performance.now() - beganMs);
  }
  times.sort((a, b) => a - b);
  const quantile = (part: number) => times[Math.ceil(part * times.length) - 1] as number;
  return { p50: quantile(0.5), p99: quantile(0.99) };
}

/** In bytes/s. */
async function throughput(socket: Socket): Promise<number> {
  const chunk = Buffer.alloc(chunkBytes);
  const beganMs = performance.now();
  const receivedBefore = socket.bytesRead;
  const send = () => {
    while (socket.write(chunk));
  };
  socket.on('drain', send);
  send();
  await delay(throughputMs);
  socket.off('drain', send);
  return (socket.bytesRead - receivedBefore) / ((performance.now() - beganMs) / 1000);
}
