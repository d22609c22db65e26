// The messages between bakeoff and its agent on another host: a JSON object per line. The host may be hostile, so messages of any other
// form are refused.
import { isIPv4 } from 'node:net';
import * as v from 'valibot';
import {
  count,
  each,
  nonNegative,
  flag,
  list,
  oneOf,
  open,
  optional,
  orNull,
  signed,
  text,
  texts,
  integer,
  type Form,
} from '../../form.ts';
import { environmentForm } from '../../result/environment.ts';
import { requestsForm } from '../../scenario/model.ts';
import { serverNames } from '../../setup/servers.ts';

/** A user's file or link, with its path in the sent folder. */
export type SentFile =
  { path: string; mode: number; base64: string } | { path: string; link: string };

/** Between samples of a server's use. */
export const watchMs = 20;

/** Size of a sample as JSON. */
export const mostSampleBytes = 1000;

/** An answer, a server that has ended by itself, or a line for the user. */
export type Reply =
  | { id: number; answer?: unknown }
  | { id: number; problem: string; exitCode?: number | undefined }
  | { died: number; how: string }
  | { told: string };

/** The agent's first line. */
export const greeting = 'bakeoff-agent';

/** Printed by the start script if the agent must be sent. */
export const wanted = 'bakeoff-agent-wanted';

/** An ssh server does not notice a cut connection: the agent ends after this silence. */
export const patienceMs = 30_000;

const nothing: Form<void> = v.pipe(
  v.unknown(),
  v.transform(() => undefined),
);
/** Linux takes 0.0.0.0 for this machine; from 224.0.0.0 on an address is of many. */
function isHost(address: string): boolean {
  const first = Number(address.split('.')[0]);
  return isIPv4(address) && first > 0 && first < 224;
}

const port = integer(1, 65_535);

const body = { status: count, bytes: nonNegative, hash: text, encoding: text };
const answer = open({
  ...body,
  sdBytes: optional(nonNegative),
  requests: optional(requestsForm),
  each: optional(list(open(body))),
  otherStatuses: optional(text),
  type: text,
  location: text,
});

const coreSeconds = orNull(
  open({ processes: nonNegative, interrupts: nonNegative, steal: nonNegative, idle: nonNegative }),
);
const machine = open({
  server: coreSeconds,
  generator: coreSeconds,
  loadAverage: nonNegative,
  // JSON leaves undefined out.
  serverMhz: v.optional(orNull(nonNegative)),
});
const sample = open({
  atMs: signed,
  cpuSeconds: nonNegative,
  waitedSeconds: nonNegative,
  rssBytes: nonNegative,
  quotaThrottledMs: nonNegative,
  quotas: text,
  stopped: flag,
  machine: optional(machine),
});

export const answerForms = {
  facts: open({
    address: v.pipe(text, v.check(isHost, 'has to be the IPv4 address of a host')),
    processors: open({
      cores: v.pipe(
        list(open({ cpus: list(count), node: count, capacity: nonNegative })),
        v.minLength(1, 'has to have a core'),
      ),
      quota: orNull(nonNegative),
    }),
    environment: environmentForm,
    files: count,
  }),
  keep: text,
  tools: open({
    binaries: open(each(serverNames, optional(text))),
    versions: open(each(serverNames, optional(text))),
  }),
  alone: nothing,
  start: open({
    id: count,
    name: oneOf(serverNames),
    version: text,
    origin: v.pipe(text, v.regex(/^https?:\/\/[\d.]+:\d+$/, 'has to be http://ADDRESS:PORT')),
    workers: count,
    redirections: texts,
    upstreams: list(v.union([open({ port }), open({ socket: text })])),
    runsCode: flag,
    answer,
  }),
  stop: nothing,
  watch: nothing,
  watched: v.pipe(list(sample), v.minLength(2, 'has to have two samples')),
  alarms: open({
    crash: optional(text),
    alarm: optional(text),
    last: optional(text),
    clientErrors: optional(v.record(text, count, 'has to be an object')),
  }),
  clock: signed,
  echo: port,
};

/** The form of a line of the agent. */
export const replyForm: Form<Reply> = v.union([
  open({ died: count, how: text }),
  open({ told: text }),
  open({ id: count, problem: text, exitCode: v.optional(signed) }),
  open({ id: count, answer: v.optional(v.unknown()) }),
]);
