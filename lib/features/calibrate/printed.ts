// Parses the output of the generators into one type.
import { UserError } from '../../errors.ts';
import { lastLine } from '../../process.ts';

export interface Printed {
  requests: number;
  /** Requests/s. */
  rps: number;
  /** Responses other than 2xx and 3xx. */
  errors: number;
  errorExample?: string;
  /** Bytes of all bodies, including those of unfinished responses; absent if the generator does not report them. */
  bodyBytes?: number;
  /** The negotiated version, cipher, key exchange (OpenSSL's names) and protocol. */
  tls?: string;
  /** As the generator prints it; h2load has no percentiles. */
  latencyMs?: { mean: number; p50?: number; p99?: number };
}

/** Units of the times that wrk and h2load print. */
const millisecondsOf: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };

function timeMs(output: string, pattern: RegExp): number {
  const [value = NaN, unit = ''] = match(output, pattern).split(/(?<=\d)(?=[a-z])/);
  return Number(value) * (millisecondsOf[unit] ?? NaN);
}

/** Parses the output of wrk and wrk2 with --latency. Throws UserError if it is not the output of wrk 4. */
export function readWrk(output: string): Printed {
  const errors = [
    ...output.matchAll(/(?:connect|read|write|timeout|Non-2xx or 3xx responses:) (\d+)/g),
  ];
  return {
    requests: Number(match(output, /(\d+) requests in/)),
    rps: Number(match(output, /Requests\/sec: +([\d.]+)/)),
    errors: sum(errors.map(([, n]) => Number(n))),
    latencyMs: {
      mean: timeMs(output, /^ +Latency +(\S+)/m),
      p50: timeMs(output, /^ +50(?:\.000)?% +(\S+)/m),
      p99: timeMs(output, /^ +99(?:\.000)?% +(\S+)/m),
    },
  };
}

/** Parses ab's output. ab prints the line on non-2xx responses only if there were any. Throws UserError as readWrk does. */
export function readAb(output: string): Printed {
  return {
    requests: Number(match(output, /Complete requests: +(\d+)/)),
    rps: Number(match(output, /Requests per second: +([\d.]+)/)),
    errors:
      Number(match(output, /Failed requests: +(\d+)/)) +
      Number(/Non-2xx responses: +(\d+)/.exec(output)?.[1] ?? 0),
    latencyMs: {
      mean: Number(match(output, /^Time per request: +([\d.]+) \[ms\] \(mean\)/m)),
      p50: Number(match(output, /^ +50% +(\d+)/m)),
      p99: Number(match(output, /^ +99% +(\d+)/m)),
    },
  };
}

/** OpenSSL has two names for each curve; which of them h2load prints depends on OpenSSL's version. */
const curveNames: Readonly<Record<string, string>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};

/** Parses the output of h2load. Throws UserError if it is not the output of h2load 1.52. */
export function readH2load(output: string): Printed {
  const figure = (pattern: RegExp): number => Number(match(output, pattern));
  const requests = figure(/^requests: (\d+) total/m);
  const printed: Printed = {
    requests,
    rps: figure(/^finished in [^,]+, ([\d.]+) req\/s/m),
    // Unfinished requests and 4xx and 5xx responses count as errors.
    errors: requests - figure(/^requests: .* (\d+) succeeded/m),
    bodyBytes: figure(/^traffic: .*\((\d+)\) data/m),
    latencyMs: { mean: timeMs(output, /^time for request: +\S+ +\S+ +(\S+)/m) },
  };
  // For h2c, h2load prints the protocol only.
  if (/^TLS Protocol: /m.test(output)) printed.tls = tlsIn(output);
  return printed;
}

/** The negotiated version, cipher, key exchange and protocol, as far as h2load prints them. */
function tlsIn(output: string): string {
  const names: string[] = [];
  for (const pattern of [
    /^TLS Protocol: (\S+)/m,
    /^Cipher: (\S+)/m,
    /^Server Temp Key: (?:ECDH )?(\S+)/m,
    /^Application protocol: (\S+)/m,
  ]) {
    const name = pattern.exec(output)?.[1];
    if (name !== undefined) names.push(curveNames[name] ?? name);
  }
  return names.join(' ');
}

/** Parses the line of JSON that both k6 scripts print. Throws UserError if there is none. */
export function readK6(output: string): Printed {
  return JSON.parse(match(output, /FIGURES (\{.*\})/)) as Printed;
}

interface VegetaReport {
  latencies: Record<'mean' | '50th' | '99th', number>;
  bytes_in: { total: number };
  requests: number;
  throughput: number;
  status_codes: Record<string, number>;
  errors: string[];
}

/** Parses `vegeta report -type json`. Throws UserError if it is not JSON. */
export function readVegeta(output: string): Printed {
  const report = JSON.parse(match(output, /^(\{"latencies".*\})$/m)) as VegetaReport;
  const { latencies, requests, status_codes: statuses } = report;
  // vegeta prints nanoseconds.
  const ms = (name: keyof typeof latencies): number => latencies[name] / 1e6;
  const failed = Object.entries(statuses).filter(([status]) => !/^[23]/.test(status));
  return {
    requests,
    // Successful responses up to the last one; `rate` is that of the requests sent.
    rps: report.throughput,
    errors: sum(failed.map(([, count]) => count)),
    bodyBytes: report.bytes_in.total,
    latencyMs: { mean: ms('mean'), p50: ms('50th'), p99: ms('99th') },
    ...(report.errors[0] === undefined ? {} : { errorExample: report.errors[0] }),
  };
}

interface OhaReport {
  summary: Record<'requestsPerSec' | 'average' | 'total' | 'totalData', number>;
  latencyPercentiles: Record<'p50' | 'p99', number>;
  statusCodeDistribution: Record<string, number>;
}

/** Parses the JSON of oha 1.4 and later. Throws UserError if it is not JSON. */
export function readOha(output: string): Printed {
  const start = output.indexOf('{');
  const end = output.lastIndexOf('}');
  if (start < 0) match(output, /(\{)/);
  const report = JSON.parse(output.slice(start, end + 1)) as OhaReport;
  const { summary, latencyPercentiles } = report;
  const statuses = Object.entries(report.statusCodeDistribution);
  const failed = statuses.filter(([status]) => !/^[23]/.test(status));
  return {
    requests: sum(statuses.map(([, count]) => count)),
    rps: summary.requestsPerSec,
    errors: sum(failed.map(([, count]) => count)),
    bodyBytes: summary.totalData,
    // oha prints seconds.
    latencyMs: {
      mean: 1000 * summary.average,
      p50: 1000 * latencyPercentiles.p50,
      p99: 1000 * latencyPercentiles.p99,
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}

/** Returns the first capture group; throws UserError if there is no match. */
function match(output: string, pattern: RegExp): string {
  const text = pattern.exec(output)?.[1];
  if (text === undefined)
    throw new UserError(
      `a load generator printed nothing like ${pattern}: is it another version? ${lastLine(output)}`,
    );
  return text;
}
