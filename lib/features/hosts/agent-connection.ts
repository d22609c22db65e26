// bakeoff's agent on another host: started over ssh, asked, and held to the forms of its answers.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, inOneLine, printable } from '../../errors.ts';
import { filesBelow } from '../../files.ts';
import { check, type Form } from '../../form.ts';
import { liveLines } from '../../live-lines.ts';
import { machineClock } from '../../machine/usage.ts';
import { configsFolder } from '../../servers/config-files.ts';
import { isLoopback } from '../../servers/ports.ts';
import { bundledForNode } from '../../../bin/bundle.mjs';
import type { Calls } from './agent.ts';
import { answerForms, greeting, patienceMs, replyForm, wanted } from './messages.ts';
import { addressesOf, connect, usualLineBytes, type Connection } from './ssh.ts';

type Agent = Pick<Session, 'ask'>;

export type AnswerOf<Name extends keyof Calls> = Awaited<ReturnType<Calls[Name]>>;

const forms: { [Name in keyof Calls]: Form<AnswerOf<Name>> } = answerForms;

/**
 * Returns a script that runs the agent from the remote user's cache, two folders below its projectRoot (lib/setup/paths.ts). The script
 * asks for the agent's file if it is missing.
 */
function startScript(hash: string, bytes: number): string {
  return `command -v node >/dev/null || { echo "there is no Node there" >&2; exit 90; }
node -e '${fits}' || { echo "the Node there is too old: bakeoff needs 20.19 or newer" >&2; exit 93; }
${keepScript(`agent-${hash}/lib/agent`, 'agent.mjs', bytes)}
exec node "$d/agent.mjs"`;
}

/** The versions of Node that bin/bakeoff.mjs accepts. */
const fits =
  'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)';

/** Agents that were not used for this time are deleted. Each use sets the folder's time. */
const unusedDays = 30;

/**
 * Returns a shell script that stores its input in a folder of the remote user's cache, unless it is there. The script sets `$d` to the
 * folder. Folders above it may be writable for a group of the user's name that lists no other member, unless they have an access list.
 * @param folder agent-…, or a folder below it
 */
export function keepScript(folder: string, name: string, bytes: number): string {
  return `umask 077
c="\${XDG_CACHE_HOME:-$HOME/.cache}/bakeoff"
d="$c/${folder}"
for at in "$c" "$c/${folder.split('/')[0]}" "$d" "$d/${name}"; do
  [ -e "$at" ] || [ -L "$at" ] || continue
  if [ -L "$at" ] || ! [ -O "$at" ] || [ -n "$(find "$at" -prune -perm /022)" ]; then
    echo "$at there is not yours alone: remove it" >&2
    exit 94
  fi
done
mkdir -p "$c" || exit 91
me=$(id -u) && own=$(id -gn) && at=$(cd -P "$c" && pwd -P) || exit 91
[ "$own" = "$(id -un)" ] && members=$(getent group "$own") && case \${members##*:} in ''|"$own") true;; *) false;; esac || own=root
while at=\${at%/*}; [ "$at" != "" ]; do
  safe="! -group 0 ! -group $own"; [ "$(ls -ld "$at" | cut -c 11)" = + ] && safe=
  if [ -n "$(find "$at" -prune \\( ! -user 0 ! -user "$me" -o ! -perm -1000 \\( -perm -002 -o -perm -020 $safe \\) \\))" ]; then
    echo "other users may change $at there: set XDG_CACHE_HOME to a folder of your own" >&2
    exit 94
  fi
done
touch -c "$c/${folder.split('/')[0]}" 2>/dev/null
if ! [ -f "$d/${name}" ]; then
  trap 'rm -f "$d/$$.tmp"' EXIT
  trap 'exit 91' HUP INT TERM
  mkdir -p "$d" && chmod go-w "$c" "$c/${folder.split('/')[0]}" "$d" && echo ${wanted} && head -c ${bytes} >"$d/$$.tmp" && [ "$(wc -c <"$d/$$.tmp")" = ${bytes} ] && chmod 755 "$d/$$.tmp" && mv "$d/$$.tmp" "$d/${name}" || exit 91
  find "$c"/agent-* -prune -type d -mtime +${unusedDays} -exec rm -rf {} \\; 2>/dev/null
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
    const session = new Session(name, connection);
    await session.greeted(text);
    const { ask, lost, died, close } = session;
    const facts = await ask('facts', undefined);
    await requireAway(name, facts.address);
    return { ask, lost, died, close, facts };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Throws UserError if the address that a host gives itself leads to this machine: the load goes there. */
async function requireAway(name: string, address: string): Promise<void> {
  const interfaces = Object.values(networkInterfaces()).flat();
  const isLocal = interfaces.some((networkInterface) => networkInterface?.address === address);
  // A host that is named by an address of this machine is this machine.
  const isMeant = async () => (await addressesOf(name)).includes(address);
  if (!isLoopback(address) && (!isLocal || (await isMeant()))) return;
  throw new UserError(
    `${name} says that its address is ${address}, which is one of this machine: nothing else than the host is loaded`,
  );
}

/** Needs only Node. Contains the shipped configs by path, in base64. */
async function bundledAgent(): Promise<Buffer> {
  const shippedFiles: Record<string, string> = {};
  for (const file of await filesBelow(configsFolder))
    shippedFiles[path.join('server-configs', file)] = await readFile(
      path.join(configsFolder, file),
      'base64',
    );
  return Buffer.from(await bundledForNode(new URL('agent.ts', import.meta.url), { shippedFiles }));
}

interface Question {
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

interface AskOptions {
  limitMs?: number;
  /** Limit of the answer's line, where it may be longer than usual. */
  mostBytes?: number;
  signal?: AbortSignal;
}

/** The connection's calls and answers. Its public functions may be passed on by themselves. */
class Session {
  readonly #name: string;
  readonly #connection: Connection;
  readonly #ended: Promise<string>;
  readonly #questions = new Map<number, Question>();
  #count = 0;
  readonly #deaths = new Map<number, (how: string) => void>();
  /** Size limits of responses in progress. */
  readonly #bounds = new Map<number, number>();
  /** Why nothing can be asked any more. */
  #over: string | undefined;
  #toldCharacters = 0;

  constructor(name: string, connection: Connection) {
    this.#name = name;
    this.#connection = connection;
    const remedy = 'install it (Debian: apt-get install nodejs), version 20.19 or newer';
    this.#ended = connection.ended.then((how) =>
      how.replace(/: there is no Node there$/, `$&: ${remedy}`),
    );
    void this.#ended.then((how) => this.#end(how));
  }

  /** Sends the agent's file if it is asked for, and waits for its greeting. @throws UserError */
  async greeted(file: Buffer): Promise<void> {
    const ready = new Promise<void>((resolve) => {
      this.#connection.onLine((line) => {
        if (this.#connection.sendsIfWanted(line, file)) return;
        if (line === greeting) resolve();
        else this.#hear(line);
      });
    });
    const slow = `${this.#name}: bakeoff's agent does not start there within ${greetingLimitMs / 1000} s`;
    const late = delay(greetingLimitMs, slow, { ref: false });
    const failed = await Promise.race([ready, this.#ended, late]);
    if (failed !== undefined) throw new UserError(failed);
    const heartbeat = setInterval(() => this.#connection.write('\n'), heartbeatMs);
    heartbeat.unref();
    void this.#ended.then(() => clearInterval(heartbeat));
  }

  /** @throws UserError with the agent's message, the connection's end, or after `limitMs`, which ends it; or the signal's reason */
  readonly ask = async <Name extends keyof Calls>(
    call: Name,
    given: Parameters<Calls[Name]>[0],
    { limitMs = usualLimitMs, mostBytes = usualLineBytes, signal }: AskOptions = {},
  ): Promise<AnswerOf<Name>> => {
    signal?.throwIfAborted();
    if (this.#over !== undefined) throw new UserError(this.#over);
    const id = ++this.#count;
    const answer = new Promise<unknown>((resolve, reject) =>
      this.#questions.set(id, { resolve, reject }),
    );
    const stop = (): void => this.#questions.get(id)?.reject(signal?.reason);
    signal?.addEventListener('abort', stop);
    const tooLate =
      limitMs === Infinity ? undefined : setTimeout(() => this.#giveUp(id, limitMs), limitMs);
    this.#bounds.set(id, mostBytes);
    this.#allowLines();
    try {
      this.#connection.write(`${JSON.stringify({ id, name: call, given })}\n`);
      const checked = check<AnswerOf<Name>>(forms[call], await answer);
      if ('value' in checked) return checked.value;
      throw new UserError(
        `${this.#name}: bakeoff's agent there gives no right answer to "${call}": ${checked.problem}`,
      );
    } finally {
      this.#bounds.delete(id);
      this.#allowLines();
      clearTimeout(tooLate);
      signal?.removeEventListener('abort', stop);
    }
  };

  /** Why the connection has ended; undefined while it lasts. */
  readonly lost = (): string | undefined => this.#over;

  /** Settles when the server with that id ends by itself, or the connection does. */
  readonly died = (server: number): Promise<string> =>
    new Promise<string>((resolve) => {
      if (this.#over === undefined) this.#deaths.set(server, resolve);
      else resolve(this.#over);
    });

  /** Ends the agent and everything that it started. Never throws; may be called twice. */
  readonly close = (): Promise<void> => this.#connection.close();

  #end(how: string): void {
    this.#over ??= how;
    for (const { reject } of this.#questions.values()) reject(new UserError(how));
    for (const tell of this.#deaths.values()) tell(how);
  }

  #giveUp(id: number, limitMs: number): void {
    const late = `${this.#name}: bakeoff's agent there does not answer within ${limitMs / 1000} s`;
    this.#over ??= late;
    this.#questions.get(id)?.reject(new UserError(late));
    void this.#connection.close();
  }

  #allowLines(): void {
    this.#connection.allowLines(Math.max(usualLineBytes, ...this.#bounds.values()));
  }

  #hear(line: string): void {
    const reply = replyIn(line);
    if (reply === undefined) return;
    if ('died' in reply) return this.#deaths.get(reply.died)?.(reply.how.slice(0, longestSaid));
    if ('told' in reply) return this.#print(reply.told);
    const question = this.#questions.get(reply.id);
    this.#questions.delete(reply.id);
    if ('problem' in reply) {
      const exitCode = reply.exitCode === 2 ? 2 : 1;
      question?.reject(new UserError(`${this.#name}: ${reply.problem}`, exitCode));
    } else question?.resolve(reply.answer);
  }

  #print(told: string): void {
    this.#toldCharacters += told.length;
    if (this.#toldCharacters > mostTold)
      return this.#connection.refuse(`${this.#name}: bakeoff's agent there prints endless lines`);
    const line = `${this.#name}: ${printable(told).trimEnd()}`;
    liveLines(process.stderr).above(() => console.error(line));
  }
}

/** The agent's message in a line; undefined for other lines, such as those of the shell's start-up files. */
function replyIn(line: string) {
  if (!line.startsWith('{')) return undefined;
  let message: unknown;
  try {
    message = JSON.parse(line, plain);
  } catch {
    return undefined;
  }
  const checked = check(replyForm, message);
  return 'value' in checked ? checked.value : undefined;
}

/** Makes texts of the host printable, because they appear in messages and tables; bodies of requests keep all characters. */
function plain(key: string, value: unknown): unknown {
  return typeof value === 'string' && key !== 'body' ? inOneLine(value) : value;
}

/** Limit of progress text in characters; an installation prints a few lines. */
const mostTold = 100_000;

/** Limit of a message in characters. */
const longestSaid = 4000;

const clockTries = 8;

/**
 * Returns how far an agent's monotonic clock is ahead, in ms. It takes the quickest of several answers: its error is at most half the
 * time it took.
 */
export async function clockAheadMs(agent: Agent): Promise<number> {
  let quickest = { tookMs: Infinity, aheadMs: 0 };
  for (let tries = 0; tries < clockTries; tries++) {
    const beganMs = machineClock.monotonicMs();
    const theirsMs = await agent.ask('clock', undefined);
    const tookMs = machineClock.monotonicMs() - beganMs;
    if (tookMs < quickest.tookMs) quickest = { tookMs, aheadMs: theirsMs - beganMs - tookMs / 2 };
  }
  return quickest.aheadMs;
}
