// Reads what k6 writes while it runs: its record of samples (--out json) and what the script printed.
import { closeSync, openSync, readSync, watch } from 'node:fs';
import path from 'node:path';
import { ifThere, textOf } from '../read-if-there.ts';
import { loadOverLine, phaseLinePrefix, type PhaseOutcome } from '../k6/load-plan.ts';

/**
 * A second's samples: first the time under load, then the responses by class, at last the connections. k6 writes the keys in this
 * order; what does not look like it (half a line on a full disk) is passed over.
 */
const sampleLine =
  /^\{"metric":"loadgen_(seconds|responses|connections)","type":"Point","data":\{.*?"value":([\d.e+-]+)/;

/** A shorter rest of a second has too few responses to say how many there are in one. */
const shortestSeconds = 0.1;

/**
 * Tells of each phase that is over, as soon as the script has printed its outcome, and returns a function that ends this. Where the
 * kernel has no watch to give (inotify's limits) it never does.
 * @param file the script's console output; its folder exists
 */
export function watchConsole(file: string, over: (outcome: PhaseOutcome) => void): () => void {
  let seen = 0;
  const watcher = ifThere(() =>
    watch(path.dirname(file), (_, name) => {
      if (name !== path.basename(file)) return;
      const lines = linesOf(file);
      for (; seen < lines.length; seen++) {
        const line = lines[seen] as string;
        try {
          if (line.startsWith(phaseLinePrefix)) over(outcomeIn(line));
        } catch (error) {
          // Half a line of a full disk: readPhases tells of it.
          if (!(error instanceof SyntaxError)) throw error;
        }
      }
    }),
  );
  watcher?.on('error', () => watcher.close());
  return () => watcher?.close();
}

function outcomeIn(line: string): PhaseOutcome {
  return JSON.parse(line.slice(phaseLinePrefix.length)) as PhaseOutcome;
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
      else if (metric === 'connections' && this.#seconds >= shortestSeconds)
        this.#rps = this.#responses / this.#seconds;
    }
    return this.#rps;
  }

  #newLines(): string[] {
    const descriptor = ifThere(() => openSync(this.#file, 'r'));
    if (descriptor === undefined) return []; // k6 has not made it yet.
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

/** The outcomes of the phases, in order, from the script's console output, and whether they are all. None when the file is not there. */
export function readPhases(file: string): { phases: PhaseOutcome[]; over: boolean } {
  const lines = linesOf(file);
  return {
    phases: lines.filter((line) => line.startsWith(phaseLinePrefix)).map(outcomeIn),
    over: lines.includes(loadOverLine),
  };
}

/** Whether the script has told the results of all phases. */
export function isLoadOver(file: string): boolean {
  return linesOf(file).includes(loadOverLine);
}

/** The last one is half a line, or none. */
function linesOf(file: string): string[] {
  return textOf(file).split('\n').slice(0, -1);
}
