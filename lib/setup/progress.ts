// Progress of steps that run side by side: on a terminal one live line per running step, in a pipe a plain line at each
// step's start and end.

export interface Step {
  /** Changes what the step is said to be doing. */
  doing(what: string): void;
  /** What the step's last line says instead of "done". */
  result(what: string): void;
}

export interface ProgressStream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

interface RunningStep {
  name: string;
  what: string;
  startedAt: number;
}

export class Progress {
  readonly #stream: ProgressStream;
  readonly #running = new Set<RunningStep>();
  #drawnLines = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: ProgressStream = process.stderr) {
    this.#stream = stream;
  }

  /** Does `work` as a step named `name`; passes its result or failure on. */
  async step<T>(name: string, what: string, work: (step: Step) => Promise<T>): Promise<T> {
    const running: RunningStep = { name, what, startedAt: performance.now() };
    let outcome = 'done';
    this.#running.add(running);
    this.#announce(running);
    try {
      return await work({
        doing: (now) => {
          running.what = now;
          this.#announce(running);
        },
        result: (text) => {
          outcome = text;
        },
      });
    } catch (error) {
      outcome = 'failed';
      throw error;
    } finally {
      this.#running.delete(running);
      this.print(`${name}: ${outcome}, ${elapsed(running)}`);
    }
  }

  /** Prints a line that stays, above the live ones. */
  print(line: string): void {
    this.#draw(`${line}\n`);
  }

  #announce(step: RunningStep): void {
    this.#draw(this.#stream.isTTY ? '' : `${step.name}: ${step.what} …\n`);
  }

  /** Writes a text in the place of the live lines, and these anew below it. */
  #draw(text: string): void {
    this.#stream.write((this.#drawnLines > 0 ? `\x1b[${this.#drawnLines}A\x1b[J` : '') + text);
    if (!this.#stream.isTTY) return;
    // A line that wraps would be erased only in part; some terminals say 0.
    const width = (this.#stream.columns || 80) - 1;
    for (const step of this.#running)
      this.#stream.write(`${`${step.name}: ${step.what} … ${elapsed(step)}`.slice(0, width)}\n`);
    this.#drawnLines = this.#running.size;
    if (this.#running.size > 0) this.#timer ??= setInterval(() => this.#draw(''), 1000).unref();
    else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}

function elapsed(step: RunningStep): string {
  const seconds = (performance.now() - step.startedAt) / 1000;
  return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}
