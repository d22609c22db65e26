// bakeoff's agent on another host: started over ssh, asked, and held to the forms of its answers.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, inOneLine, printable } from '../errors.ts';
import { filesBelow } from '../files.ts';
import { check } from '../form.ts';
import { machineClock } from '../machine/usage.ts';
import { shippedConfigs } from '../servers/config-files.ts';
import { isLoopback } from '../servers/ports.ts';
import { bundledForNode } from '../../bin/bundle.mjs';
import type { Calls } from './agent.ts';
import { answerForms, replyForm } from './answers.ts';
import { greeting, patienceMs, wanted } from './messages.ts';
import { addressesOf, connect, usualLineBytes, type Connection } from './ssh.ts';

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
  /** Size limits of responses in progress. */
  const bounds = new Map<number, number>();
  const allowLines = () => connection.allowLines(Math.max(usualLineBytes, ...bounds.values()));
  const remedy = 'install it (Debian: apt-get install nodejs), version 20.19 or newer';
  const ended = connection.ended.then((how) =>
    how.replace(/: there is no Node there$/, `$&: ${remedy}`),
  );
  let over: string | undefined;
  void ended.then((how) => {
    over ??= how;
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
    /**
     * @param options.mostBytes of the answer's line, where it may be longer than usual
     * @throws UserError with the agent's message, the connection's end, or after `limitMs`, which ends it; or the signal's reason
     */
    async ask<Name extends keyof Calls>(
      call: Name,
      given: Parameters<Calls[Name]>[0],
      {
        limitMs = usualLimitMs,
        mostBytes = usualLineBytes,
        signal,
      }: { limitMs?: number; mostBytes?: number; signal?: AbortSignal } = {},
    ): Promise<AnswerOf<Name>> {
      signal?.throwIfAborted();
      if (over !== undefined) throw new UserError(over);
      const id = ++count;
      const answer = new Promise<unknown>((resolve, reject) => asked.set(id, { resolve, reject }));
      const stop = (): void => asked.get(id)?.reject(signal?.reason as Error);
      signal?.addEventListener('abort', stop);
      const giveUp = () => {
        const late = `${name}: bakeoff's agent there does not answer within ${limitMs / 1000} s`;
        over ??= late;
        asked.get(id)?.reject(new UserError(late));
        void connection.close();
      };
      const tooLate = limitMs === Infinity ? undefined : setTimeout(giveUp, limitMs);
      bounds.set(id, mostBytes);
      allowLines();
      try {
        connection.write(`${JSON.stringify({ id, name: call, given })}\n`);
        const checked = check<AnswerOf<Name>>(answerForms[call], await answer);
        if ('value' in checked) return checked.value;
        throw new UserError(
          `${name}: bakeoff's agent there gives no right answer to "${call}": ${checked.problem}`,
        );
      } finally {
        bounds.delete(id);
        allowLines();
        clearTimeout(tooLate);
        signal?.removeEventListener('abort', stop);
      }
    },
    /** Why the connection has ended; undefined while it lasts. */
    lost: () => over,
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

/** Limit of progress text in characters; an installation prints a few lines. */
const mostTold = 100_000;

/** Limit of a message in characters. */
const longestSaid = 4000;

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
