// An agent on another host that answers questions.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { filesBelow } from '../files.ts';
import { machineClock } from '../machine/clock.ts';
import { shippedConfigs } from '../servers/config-layers.ts';
import { bundledForNode } from '../setup/bundle.ts';
import {
  greeting,
  patienceMs,
  wanted,
  type Calls,
  type HostFacts,
  type Reply,
} from './messages.ts';
import { connect, type Connection } from './ssh.ts';

export interface Agent {
  facts: HostFacts;
  /**
   * Throws UserError with what is wrong there, with how the connection ended, or that it does not answer in time, which ends the connection;
   * the signal's reason after it.
   */
  ask<Name extends keyof Calls>(
    call: Name,
    given: Calls[Name]['given'],
    within?: { limitMs?: number; signal?: AbortSignal | undefined },
  ): Promise<Calls[Name]['answer']>;
  /** Settles when the server with that id has ended by itself, or the connection has. */
  died(server: number): Promise<string>;
  /** Called with what the script of the k6 with that id prints. */
  onPrinted(k6: number, listen: (text: string) => void): void;
  /** Ends the agent with all that it started. Never throws; may be called twice. */
  close(): Promise<void>;
}

/** A host with an agent. */
export interface Host extends Pick<HostFacts, 'address' | 'files'>, Pick<Agent, 'close'> {
  /** As the person named it. */
  name: string;
  bootId: string;
}

/** In the remote user's shell: the agent, sent where it is not there. Its folder is the user's cache. */
function startScript(hash: string, bytes: number): string {
  return `command -v node >/dev/null || { echo "there is no Node there" >&2; exit 90; }
node -e '${fits}' || { echo "the Node there is too old: bakeoff needs 20.19 or newer" >&2; exit 93; }
${keepScript(`agent-${hash}/lib/hosts`, 'agent.mjs', bytes)}
exec node "$d/agent.mjs"`;
}

/** As bin/bakeoff.mjs has it. */
const fits =
  'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)';

/** What nobody has come for in so long is of another version. Each use sets a folder's time. */
const unusedDays = 30;

/**
 * Keeps a file of so many bytes in a folder of the remote user's cache, from the input, where it is not there. `$d` is the folder then.
 * @param folder agent-… or k6-…, or one below it
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

/** What takes no longer than a look, or the end of a server, has so long. */
const usualLimitMs = 30_000;

/** What the sending of files to be kept may take. */
export const keepLimitMs = 120_000;

/** How often an agent hears of us at least. */
const heartbeatMs = patienceMs / 6;

/** What an agent may take to greet, its sending included. */
const greetingLimitMs = 60_000;

/**
 * Connects, and starts the agent there.
 * @throws UserError in one line that says what to do
 */
export async function openAgent(name: string): Promise<Agent> {
  const text = await bundledAgent();
  // Agents of different versions lie side by side.
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const connection = await connect(name, startScript(hash, text.length));
  try {
    const agent = await greeted(name, connection, text);
    return { ...agent, facts: await agent.ask('facts', null) };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** One file that needs Node alone, with the shipped configs in it: each file by its path, in base64. */
async function bundledAgent(): Promise<Buffer> {
  const shipped = await Promise.all(
    (await filesBelow(shippedConfigs)).map(
      async (file) =>
        [
          path.join('server-configs', file),
          (await readFile(path.join(shippedConfigs, file))).toString('base64'),
        ] as const,
    ),
  );
  return Buffer.from(
    await bundledForNode(new URL('agent.ts', import.meta.url), {
      shippedFiles: Object.fromEntries(shipped),
    }),
  );
}

async function greeted(
  name: string,
  connection: Connection,
  text: Buffer,
): Promise<Omit<Agent, 'facts'>> {
  const asked = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>();
  const deaths = new Map<number, (how: string) => void>();
  const listeners = new Map<number, (text: string) => void>();
  let count = 0;
  const ended = connection.ended.then((how) =>
    how.replace(
      /: there is no Node there$/,
      ': there is no Node there: install it (Debian: apt-get install nodejs), version 20.19 or newer',
    ),
  );
  let over: string | undefined;
  void ended.then((how) => {
    over = how;
    for (const { reject } of asked.values()) reject(new UserError(how));
    for (const tell of deaths.values()) tell(how);
  });

  const ready = new Promise<void>((resolve) => {
    connection.onLine((line) => {
      if (line === wanted) connection.write(text);
      else if (line === greeting) resolve();
      // What a shell's start prints is none of ours.
      else if (line.startsWith('{')) hear(line);
    });
  });
  function hear(line: string): void {
    let reply: Reply;
    try {
      // What comes from there stands in messages and tables.
      reply = JSON.parse(line, (key, value: unknown) =>
        typeof value === 'string' && !asItIs.has(key) ? value.replace(/\p{Cc}/gu, ' ') : value,
      ) as Reply;
    } catch {
      return;
    }
    if ('died' in reply) return deaths.get(reply.died)?.(reply.how);
    if ('printed' in reply) return listeners.get(reply.printed)?.(reply.text);
    if ('told' in reply) return console.error(`${name}: ${reply.told.trimEnd()}`);
    const question = asked.get(reply.id);
    asked.delete(reply.id);
    if ('problem' in reply)
      question?.reject(new UserError(`${name}: ${reply.problem}`, reply.exitCode));
    else question?.resolve(reply.answer);
  }
  const late = delay(
    greetingLimitMs,
    `${name}: bakeoff's agent does not start there within ${greetingLimitMs / 1000} s`,
    { ref: false },
  );
  await Promise.race([
    ready,
    Promise.race([ended, late]).then((how) => {
      throw new UserError(how);
    }),
  ]);
  const heartbeat = setInterval(() => connection.write('\n'), heartbeatMs);
  heartbeat.unref();
  void ended.then(() => clearInterval(heartbeat));
  return {
    async ask(call, given, { limitMs = usualLimitMs, signal } = {}) {
      signal?.throwIfAborted();
      if (over !== undefined) throw new UserError(over);
      const id = ++count;
      const answer = new Promise<unknown>((resolve, reject) => asked.set(id, { resolve, reject }));
      const stop = (): void => asked.get(id)?.reject(signal?.reason as Error);
      signal?.addEventListener('abort', stop);
      const tooLate =
        limitMs === Infinity
          ? undefined
          : setTimeout(() => {
              asked
                .get(id)
                ?.reject(
                  new UserError(
                    `${name}: bakeoff's agent there does not answer within ${limitMs / 1000} s`,
                  ),
                );
              void connection.close();
            }, limitMs);
      try {
        connection.write(`${JSON.stringify({ id, name: call, given })}\n`);
        return (await answer) as Calls[typeof call]['answer'];
      } finally {
        clearTimeout(tooLate);
        signal?.removeEventListener('abort', stop);
      }
    },
    died: (server) =>
      new Promise((resolve) => {
        if (over === undefined) deaths.set(server, resolve);
        else resolve(over);
      }),
    onPrinted: (k6, listen) => void listeners.set(k6, listen),
    close: () => connection.close(),
  };
}

/** What has these names is kept as it is: files, and what scripts print. */
const asItIs = new Set(['console', 'log', 'record', 'text']);

const clockTries = 8;

/** How far an agent's clocks are ahead of this machine's, in milliseconds. */
export interface ClocksAhead {
  monotonicMs: number;
  wallMs: number;
}

/** By the quickest of some answers: wrong by half of its time at most. */
export async function clocksAhead(agent: Pick<Agent, 'ask'>): Promise<ClocksAhead> {
  let quickestMs = Infinity;
  let ahead: ClocksAhead = { monotonicMs: 0, wallMs: 0 };
  for (let tries = 0; tries < clockTries; tries++) {
    const [beganMs, beganWallMs] = [machineClock.monotonicMs(), machineClock.wallMs()];
    const theirs = await agent.ask('clocks', null);
    const tookMs = machineClock.monotonicMs() - beganMs;
    if (tookMs >= quickestMs) continue;
    quickestMs = tookMs;
    ahead = {
      monotonicMs: theirs.monotonicMs - beganMs - tookMs / 2,
      wallMs: theirs.wallMs - beganWallMs - tookMs / 2,
    };
  }
  return ahead;
}
