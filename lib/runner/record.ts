// Reads what k6 writes while it runs: its record of samples (--out json) and what the script printed.
import { closeSync, openSync, readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { phaseLinePrefix } from '../k6/load-plan.ts';
import type { LoadResult } from './result.ts';

/** k6 writes the keys in this order; what does not look like it (half a line on a full disk) is passed over. */
const requestsLine = /^\{"metric":"loadgen_requests","type":"Point","data":\{.*?"value":([\d.e+]+)/;

/** Follows a record that k6 is writing. */
export class RecordTail {
  readonly #file: string;
  #offset = 0;
  #rest = '';
  #buffer = Buffer.alloc(64 * 1024);
  #rps: number | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  /** requests/s by the newest sample of loadgen_requests, which are one a second; null before the first. */
  requestsPerSecond(): number | null {
    for (const line of this.#newLines()) {
      const value = requestsLine.exec(line)?.[1];
      if (value !== undefined) this.#rps = Number(value);
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

/** The results of the phases, in order, from the script's console output. None when the file is not there. */
export async function readPhaseResults(file: string): Promise<LoadResult[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return text.split('\n')
    .filter((line) => line.startsWith(phaseLinePrefix))
    .map((line) => JSON.parse(line.slice(phaseLinePrefix.length)) as LoadResult);
}
