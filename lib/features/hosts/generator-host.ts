// --generator-host: a host whose k6 makes a part of the load, started by an agent.
import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../../errors.ts';
import { localRun } from '../../machine/locks.ts';
import { cpusOf } from '../../machine/processors.ts';
import { clocksAhead, keepLimitMs, keepScript, openAgent } from './agent-connection.ts';
import { measureLink } from './link.ts';
import type { RemoteK6, SentFile } from './messages.ts';
import { connect } from './ssh.ts';
import type { GeneratorHostFacts } from '../../result/environment.ts';

export type GeneratorHost = Awaited<ReturnType<typeof openGeneratorHost>>;

/** Opens all hosts, or closes them if one cannot be used, or two are the same. Throws UserError. */
export async function openGeneratorHosts(names: readonly string[]): Promise<GeneratorHost[]> {
  const opened = await Promise.allSettled(names.map(openGeneratorHost));
  const hosts = opened.flatMap((outcome) =>
    outcome.status === 'fulfilled' ? [outcome.value] : [],
  );
  try {
    for (const outcome of opened) if (outcome.status === 'rejected') throw outcome.reason;
    const same = hosts.find(
      ({ address }, index) => hosts.findIndex((other) => other.address === address) < index,
    );
    if (same !== undefined)
      throw new UserError(`--generator-host ${same.name}: ${same.address} is named twice`, 2);
    return hosts;
  } catch (error) {
    await Promise.all(hosts.map((host) => host.close()));
    throw error;
  }
}

async function openGeneratorHost(name: string) {
  const agent = await openAgent(name);
  const { address, architecture, processors, environment, files } = agent.facts;
  if (architecture !== os.arch()) {
    await agent.close();
    throw new UserError(
      `--generator-host ${name} is ${architecture}, and the k6 here is for ${os.arch()}: generate on machines of one architecture`,
    );
  }
  const cores = Math.max(
    1,
    Math.floor(Math.min(processors.quota ?? Infinity, cpusOf(processors.cores).length)),
  );
  let there: string | undefined;
  let count = 0;
  return {
    /** The name as given by the user. */
    name,
    address,
    /** CPUs that k6 may use there. */
    cores,
    files,
    bootId: environment.bootId,
    /** Its facts for the result; measures the link. */
    async facts(): Promise<GeneratorHostFacts> {
      const { cpuModel, kernel, memoryBytes } = environment;
      const token = randomUUID();
      const port = await agent.ask('echo', token);
      const link = await measureLink({ address, port }, token).catch(() => ({}));
      return { name, address, architecture, cores, cpuModel, kernel, memoryBytes, ...link };
    },
    clocks: () => clocksAhead(agent),
    /** Reserves the host for this run and sends this machine's k6 if it is missing there. Throws UserError or the signal's reason. */
    async have(binary: string, signal: AbortSignal) {
      await agent.ask('alone', localRun(), { signal });
      there ??= await sendBinary(name, binary, signal);
    },
    /** Stores files in a new folder for k6 and returns its path. */
    keep: (sent: readonly SentFile[]) =>
      agent.ask('keep', { files: sent, open: false }, { limitMs: keepLimitMs }),
    /**
     * Runs its k6. Returns the outcome, and a function to end k6 early.
     * @param printed gets the output of the script
     * @throws UserError if the connection ends
     */
    async run(
      { args, env, folder }: Omit<RemoteK6, 'k6' | 'binary'>,
      printed: (text: string) => void,
    ) {
      if (there === undefined) throw new Error(`${name} has no k6 yet`);
      const k6 = ++count;
      agent.onPrinted(k6, printed);
      return {
        // The runner limits its time.
        ended: agent.ask(
          'k6',
          { k6, binary: there, args, env, folder },
          { limitMs: Infinity, mostBytes: mostRecordBytes },
        ),
        end: (graceMs: number) => agent.ask('endK6', { k6, graceMs }).catch(() => undefined),
      };
    },
    lost: agent.lost,
    close: () => agent.close(),
  };
}

/** Limit of a response with k6's complete record. */
const mostRecordBytes = 256e6;

/** k6 has about 65 MB. */
const sendLimitMs = 600_000;

async function sendBinary(host: string, binary: string, signal: AbortSignal): Promise<string> {
  const text = await readFile(binary);
  const hash = createHash('sha256').update(text).digest('hex');
  const check = `[ "$(sha256sum <"$d/k6" | cut -d " " -f 1)" = ${hash} ] || { rm -f "$d/k6"; echo "k6 did not come there whole" >&2; exit 92; }`;
  signal.throwIfAborted();
  const connection = await connect(
    host,
    `${keepScript(`k6-${hash.slice(0, 16)}`, 'k6', text.length)}\n${check}\necho "$d/k6"`,
  );
  let place = '';
  connection.onLine((line) => {
    if (!connection.sendsIfWanted(line, text)) place = line;
  });
  const late = delay(sendLimitMs, `it takes longer than ${sendLimitMs / 1000} s`, {
    ref: false,
    signal,
  }).catch(() => '');
  const how = await Promise.race([connection.ended, late]);
  await connection.close();
  signal.throwIfAborted();
  if (!place.endsWith('/k6')) throw new UserError(`k6 could not be sent to ${host}: ${how}`);
  return place;
}
