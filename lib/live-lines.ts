// The live lines of a terminal: they stand below all others and are rewritten while work goes on. Each stream has one writer for them.

export interface LineStream {
  write(text: string): unknown;
  columns?: number | undefined;
  isTTY?: boolean | undefined;
}

/** Work with live lines. */
interface Work {
  /** Called at each tick. */
  lines(): readonly string[];
}

/** How often live lines are rewritten, since they show times. */
const tickMs = 500;

const writers = new WeakMap<LineStream, LiveLines>();

/** Returns the writer of a stream, always the same one. */
export function liveLines(stream: LineStream): LiveLines {
  const writer = writers.get(stream) ?? new LiveLines(stream);
  writers.set(stream, writer);
  return writer;
}

class LiveLines {
  readonly #stream: LineStream;
  /** The works in the order in which they began. */
  readonly #works = new Set<Work>();
  #drawnLines = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: LineStream) {
    this.#stream = stream;
  }

  get isTerminal(): boolean {
    return this.#stream.isTTY === true;
  }

  /** Undefined where lines need not be cut. */
  get columns(): number | undefined {
    // Some terminals say 0.
    return this.isTerminal ? this.#stream.columns || 80 : undefined;
  }

  /**
   * Shows the lines of a work until end(), anew at each tick. If several works have lines, those of the last one to begin are on the
   * screen: the others wait for it. In a pipe there are no live lines.
   */
  show(work: Work): void {
    if (!this.isTerminal) return;
    this.#works.add(work);
    this.#timer ??= setInterval(() => this.#draw(), tickMs).unref();
    this.#draw();
  }

  end(work: Work): void {
    if (!this.#works.delete(work)) return;
    if (this.#works.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#draw();
  }

  /** Prints lines that stay, above the live ones. */
  print(lines: readonly string[]): void {
    this.above(() => this.#stream.write(lines.map((line) => `${line}\n`).join('')));
  }

  /** Calls what writes complete lines to this terminal in another way. */
  above(write: () => unknown): void {
    const erasing = this.#erasing();
    if (erasing !== '') this.#stream.write(erasing);
    write();
    this.#draw();
  }

  /**
   * What takes the drawn lines off the screen; '' if there are none. It erases line by line: tmux keeps in its history what an erasure of
   * the whole screen removes.
   */
  #erasing(): string {
    if (this.#drawnLines === 0) return '';
    const above = '\u001b[1A\u001b[2K'.repeat(this.#drawnLines - 1);
    this.#drawnLines = 0;
    return `\r\u001b[2K${above}`;
  }

  /** The cursor stays behind the last line, so that the lines of another program that writes here are not erased. */
  #draw() {
    const erasing = this.#erasing();
    const lines = [...this.#works].at(-1)?.lines() ?? [];
    // A line that wraps would be erased only in part.
    const width = (this.columns ?? Infinity) - 1;
    const text = erasing + lines.map((line) => line.slice(0, width)).join('\n');
    if (text !== '') this.#stream.write(text);
    this.#drawnLines = lines.length;
  }
}
