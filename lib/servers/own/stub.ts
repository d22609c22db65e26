// Stands in for a backend of a user's config: answers each request after a set time, in a thread of its own.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** As text, since other hosts have no files of bakeoff. The server could be about to use an idle connection. */
const source = `
const { parentPort, workerData: { ms, bytes } } = require('node:worker_threads');
const body = Buffer.alloc(bytes, 'x');
const server = require('node:http').createServer((request, response) => {
  request.resume();
  setTimeout(() => response.end(body), ms);
});
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

const factors: Record<string, number> = { ms: 1, s: 1000, b: 1, kb: 1e3, mb: 1e6 };

/** Reads stub:50ms or stub:50ms:2KB, up to 100 MB; undefined for any other text. */
export function readStub(text: string) {
  const [, time, unit = '', size = 1000, kind = 'b'] =
    /^stub:(\d{1,5})(ms|s)(?::(\d{1,6})(b|kb|mb))?$/.exec(text.toLowerCase()) ?? [];
  const [ms, bytes] = [
    Number(time) * (factors[unit] ?? NaN),
    Number(size) * (factors[kind] ?? NaN),
  ];
  return ms >= 0 && bytes <= 100e6 ? { ms, bytes } : undefined;
}

const stubs = new Map<string, Promise<string>>();

/** Returns HOST:PORT of the stub, which ends with this process; any other text as it is. */
export function addressFor(text: string): Promise<string> {
  const stub = readStub(text);
  const address = stubs.get(text) ?? (stub === undefined ? Promise.resolve(text) : startStub(stub));
  stubs.set(text, address);
  return address;
}

async function startStub(workerData: { ms: number; bytes: number }): Promise<string> {
  const worker = new Worker(source, { eval: true, workerData });
  const [port] = (await once(worker, 'message')) as [number];
  worker.unref();
  return `127.0.0.1:${port}`;
}
