// A server with known service time and work: node known.mjs [--wait MS [--every N] [--spread]] [--work MICROSECONDS] [--burn MS]
//   --wait   delay between a request and its response; with --every, only for each Nth response;
//            with --spread, a connection's first response is later by a fraction of it, different for each connection
//   --work   CPU time per response
//   --burn   CPU time used per second, even without requests
// It listens on 127.0.0.1:PORT and supports the part of HTTP/1.1 that a load generator needs: requests without a body, one at a
// time on a connection.
import { connect, createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** A clock that both threads share. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6;

/** Same length as server-configs/www/nginx/index.html, so that a proxy to this server passes the check for that page. */
const bodyBytes = 612;
const answer = `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${bodyBytes}\r\n\r\n${'.'.repeat(bodyBytes - 1)}\n`;

/** Linux wakes a sleeping thread up to this much late (timer slack). */
const slackMs = 0.05;

/** Maximum number of waiting responses. */
const places = 4096;

if (isMainThread) serve();
else keepTime(workerData);

async function serve() {
  const { wait, every, spread, work, burn } = readOptions();
  const delay = { ms: 1 };
  const answerLater = wait > 0 ? waiting(delay) : undefined;
  const queue = firstComeFirstServed();
  let [asked, connections] = [0, 0];
  const server = createServer((socket) => {
    let unread = '';
    // Multiples of the golden ratio are spread evenly for any number of connections.
    let laterMs = spread ? wait * ((connections++ * 0.618034) % 1) : 0;
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      const parts = (unread + text).split('\r\n\r\n');
      unread = parts.pop();
      for (let left = parts.length; left > 0; left--) {
        const later = laterMs;
        laterMs = 0;
        queue(() => {
          asked++;
          if (work > 0) spin(work / 1000);
          if (answerLater === undefined || asked % every > 0) socket.write(answer);
          else if (later === 0) answerLater(socket);
          else setTimeout(answerLater, later, socket);
        });
      }
    });
  });
  await warmUp(server);
  delay.ms = wait;
  [asked, connections] = [0, 0];
  server.listen(Number(process.env.PORT), '127.0.0.1');
  if (burn > 0) burnEachSecond(burn);
}

/** Warm up the JIT compiler, which would otherwise slow down the first seconds of a load. */
const warmUpMs = 1500;

async function warmUp(server) {
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const until = nowMs() + warmUpMs;
  await Promise.all(
    Array.from(
      { length: 20 },
      () =>
        new Promise((done) => {
          const socket = connect(server.address().port, '127.0.0.1');
          const ask = () => {
            if (nowMs() < until) socket.write('GET / HTTP/1.1\r\n\r\n');
            else {
              socket.destroy();
              done();
            }
          };
          socket.on('connect', ask).on('data', ask);
        }),
    ),
  );
  await new Promise((closed) => server.close(closed));
}

/**
 * Responses leave in order of arrival, and new requests are read after each response. With batches, a request that just misses a
 * batch waits for the next two, so that p50 would depend on the batches.
 */
function firstComeFirstServed() {
  const waiting = [];
  const next = () => {
    waiting.shift()();
    if (waiting.length > 0) setImmediate(next);
  };
  return (answer) => {
    if (waiting.push(answer) === 1) setImmediate(next);
  };
}

function readOptions() {
  const option = { type: 'string' };
  const { values } = parseArgs({
    options: {
      wait: option,
      every: option,
      spread: { type: 'boolean' },
      work: option,
      burn: option,
    },
  });
  const { wait = '0', every = '1', spread = false, work = '0', burn = '0' } = values;
  return {
    wait: Number(wait),
    every: Number(every),
    spread,
    work: Number(work),
    burn: Number(burn),
  };
}

/**
 * Node's timers have a resolution of 1 ms and are up to 1 ms early or late. A thread that sleeps on a futex is 0.1 ms late. All
 * responses have the same delay, so they leave in order of arrival.
 */
function waiting(delay) {
  const counts = new Int32Array(new SharedArrayBuffer(8));
  const dues = new Float64Array(new SharedArrayBuffer(8 * places));
  const sockets = [];
  let [came, left] = [0, 0];
  new Worker(new URL(import.meta.url), { workerData: { counts, dues } }).on('message', () => {
    const socket = sockets[left % places];
    left++;
    if (socket.writable) socket.write(answer);
  });
  return (socket) => {
    if (came - left === places) throw new Error(`more than ${places} answers wait`);
    sockets[came % places] = socket;
    dues[came % places] = nowMs() + delay.ms;
    came++;
    Atomics.store(counts, 0, came);
    Atomics.notify(counts, 0);
  };
}

/** Wakes the main thread when a response is due. */
function keepTime({ counts, dues }) {
  for (let left = 0; ; left++) {
    while (Atomics.load(counts, 0) === left) Atomics.wait(counts, 0, left);
    for (let restMs; (restMs = dues[left % places] - nowMs()) > slackMs;)
      Atomics.wait(counts, 1, 0, restMs - slackMs);
    parentPort.postMessage(null);
  }
}

/** Wall-clock time, which equals CPU time if the server has the core to itself. */
function spin(ms) {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** CPU time, because other threads may use the core meanwhile. */
function burnEachSecond(ms) {
  let due = nowMs();
  const burn = () => {
    const spent = () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    };
    const until = spent() + ms;
    while (spent() < until);
    due += 1000;
    setTimeout(burn, due - nowMs());
  };
  burn();
}
