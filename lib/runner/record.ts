// Reads what k6 writes while it runs: its record of samples (--out json) and what the script printed.
import { closeSync, openSync, readFileSync, readSync, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { phaseBeginsLine, phaseLinePrefix } from '../k6/load-plan.ts';
import type { LoadResult } from './result.ts';

/**
 * A second's samples: first the time under load, then the responses by class, at last the connections. k6 writes the keys in this
 * order; what does not look like it (half a line on a full disk) is passed over.
 */
const sampleLine = /^\{"metric":"loadgen_(seconds|responses|connections)","type":"Point","data":\{.*?"value":([\d.e+-]+)/;

/** A shorter rest of a second has too few responses to say how many there are in one. */
const shortestSeconds = 0.1;

/**
 * Calls `begins` at the begin of each phase, as soon as the script has printed so, and returns a function that ends this. Where the
 * kernel has no watch to give (inotify's limits) it never calls.
 * @param file the script's console output; its folder exists
 */
export function watchPhaseBegins(file: string, begins: () => void): () => void {
  let seen = 0;
  try {
    const watcher = watch(path.dirname(file), (_, name) => {
      if (name !== path.basename(file)) return;
      const lines = linesOf(file).filter((line) => line === phaseBeginsLine).length;
      for (; seen < lines; seen++) begins();
    });
    watcher.on('error', () => watcher.close());
    return () => watcher.close();
  } catch {
    return () => undefined;
  }
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return []; // It was there a moment ago.
  }
}

/** Follows a record that k6 is writing. */
export class RecordTail {
  readonly #file: string;
  #offset = 0;
  #rest = '';
  #buffer = Buffer.alloc(64 * 1024);
  /** Of the second whose samples are being read. */
  #seconds = 0;
  #responses = 0;
  #rps: number | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  /** Responses per second under load, by the newest whole second's samples; null before the first. */
  responsesPerSecond(): number | null {
    for (const line of this.#newLines()) {
      const [, metric, value] = sampleLine.exec(line) ?? [];
      if (metric === 'seconds') [this.#seconds, this.#responses] = [Number(value), 0];
      else if (metric === 'responses') this.#responses += Number(value);
      else if (metric === 'connections' && this.#seconds >= shortestSeconds) this.#rps = this.#responses / this.#seconds;
    }
    return this.#rps;
  }

  #newLines(): string[] {
    let descriptor;
    try {
      descriptor = openSync(this.#file, 'r');
    } catch {
      return []; // k6 has not made it yet.
    }
    try {
      for (;;) {
        const length = readSync(descriptor, this.#buffer, 0, this.#buffer.length, this.#offset);
        if (length === 0) break;
        this.#offset += length;
        this.#rest += this.#buffer.toString('latin1', 0, length);
      }
    } finally {
      closeSync(descriptor);
    }
    const lines = this.#rest.split('\n');
    this.#rest = lines.pop() ?? '';
    return lines;
  }
}

/** The results of the phases, in order, each with one for each side, from the script's console output. None when the file is not there. */
export async function readPhaseResults(file: string): Promise<LoadResult[][]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return text.split('\n')
    .filter((line) => line.startsWith(phaseLinePrefix))
    .map((line) => JSON.parse(line.slice(phaseLinePrefix.length)) as LoadResult[]);
}
