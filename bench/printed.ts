// What the generators print of a run, read into one form.
import { UserError } from '../lib/errors.ts';
import { lastLine } from '../lib/process.ts';

export interface Printed {
  requests: number;
  /** Requests/s. */
  rps: number;
  /** Everything but 2xx and 3xx. */
  errors: number;
  /** The text of one of them. */
  errorExample?: string;
  /** The bodies' bytes, those of responses that were not finished included; absent where the generator does not say. */
  bodyBytes?: number;
  /** CPU seconds of the load without start and end; absent where the generator does not say. */
  cpuSeconds?: number;
  /** Requests/s of the connection that had the fewest: above 0, all of them were open and answered. */
  minConnectionRps?: number;
  /** As negotiated: version, cipher and key exchange in OpenSSL's names, and the protocol. */
  tls?: string;
  /** In the open model, in milliseconds. */
  atRate?: { sendDelayP99Ms: number; latencyP50Ms: number; latencyP99Ms: number };
}

/** Reads what wrk prints. Throws UserError when it is not what wrk 4 prints. */
export function readWrk(output: string): Printed {
  const errors = [
    ...output.matchAll(/(?:connect|read|write|timeout|Non-2xx or 3xx responses:) (\d+)/g),
  ];
  return {
    requests: Number(match(output, /(\d+) requests in/)),
    rps: Number(match(output, /Requests\/sec: +([\d.]+)/)),
    errors: sum(errors.map(([, n]) => Number(n))),
  };
}

/** Reads what ab prints; the line on other answers than 2xx is only there when there were some. Throws UserError as readWrk. */
export function readAb(output: string): Printed {
  return {
    requests: Number(match(output, /Complete requests: +(\d+)/)),
    rps: Number(match(output, /Requests per second: +([\d.]+)/)),
    errors:
      Number(match(output, /Failed requests: +(\d+)/)) +
      Number(/Non-2xx responses: +(\d+)/.exec(output)?.[1] ?? 0),
  };
}

/** OpenSSL has two names for each, and h2load prints one or the other by OpenSSL's version. */
const curveNames: Readonly<Record<string, string>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};

/** Reads what one or more runs of h2load print, as one. Throws UserError when it is not what h2load 1.52 prints. */
export function readH2load(output: string): Printed {
  const figures = (pattern: RegExp): number[] => matches(output, pattern).map(Number);
  const totals = figures(/^requests: (\d+) total/m);
  const rates = figures(/^finished in [^,]+, ([\d.]+) req\/s/m);
  // Of h2c it names the protocol only.
  const tls = !/^TLS Protocol: /m.test(output)
    ? []
    : [
        /^TLS Protocol: (\S+)/m,
        /^Cipher: (\S+)/m,
        /^Server Temp Key: (?:ECDH )?(\S+)/m,
        /^Application protocol: (\S+)/m,
      ]
        .flatMap((pattern) => pattern.exec(output)?.[1] ?? [])
        .map((name) => curveNames[name] ?? name);
  return {
    requests: sum(totals),
    // A run's time is its requests by its rate: in "finished in" the end of a timed run counts too.
    rps: sum(totals) / sum(totals.map((requests, run) => requests / (rates[run] as number))),
    // What was not done, or answered with 4xx or 5xx, has not succeeded.
    errors: sum(totals) - sum(figures(/^requests: .* (\d+) succeeded/m)),
    bodyBytes: sum(figures(/^traffic: .*\((\d+)\) data/m)),
    minConnectionRps: Math.min(...figures(/^req\/s +: +([\d.]+)/m)),
    ...(tls.length === 0 ? {} : { tls: tls.join(' ') }),
  };
}

/** Both k6 scripts print one line of JSON, each k6 that makes a part of the load its own. Throws UserError when there is none. */
export function readK6(output: string): Printed {
  const parts = matches(output, /BENCH (\{.*\})/).map((json) => JSON.parse(json) as Printed);
  const [first] = parts as [Printed, ...Printed[]];
  if (parts.length === 1) return first;
  const total = (of: (part: Printed) => number): number => sum(parts.map(of));
  return {
    ...first,
    requests: total(({ requests }) => requests),
    rps: total(({ rps }) => rps),
    errors: total(({ errors }) => errors),
    cpuSeconds: total(({ cpuSeconds = NaN }) => cpuSeconds),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}

function match(output: string, pattern: RegExp): string {
  return matches(output, pattern)[0] as string;
}

/** What stands in the pattern's brackets, each time that it is found: once at least. */
function matches(output: string, pattern: RegExp): string[] {
  const found = [...output.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map(
    ([, text]) => text as string,
  );
  if (found.length === 0)
    throw new UserError(
      `a load generator printed nothing like ${pattern}: is it another version? ${lastLine(output)}`,
    );
  return found;
}
