// The first answers of a run's sides and their differences, said before the first load.
import { answerColumns, differencesTable, differencesTitle } from '../report/differences.ts';
import { requestLines } from '../report/pages.ts';
import { terminalTable } from '../report/table.ts';
import type { Attempt, RunBase } from './plan.ts';

export class FirstAnswers {
  /** Filled by the rounds. */
  readonly bySide: NonNullable<Attempt['answers']>;
  readonly #context: RunBase;
  readonly #print: (line: string) => void;
  #printed: readonly string[] = [];

  /** @param print is given each line once */
  constructor(context: RunBase, print: (line: string) => void) {
    this.bySide = new Map(context.answers);
    this.#context = context;
    this.#print = print;
  }

  /** See requestLines. */
  lines(): string[] {
    return requestLines(this.#answered());
  }

  /** Prints what is known by now, and was not printed before. */
  say(): void {
    const lines = [...this.lines(), ...this.#table()];
    for (const line of lines) if (!this.#printed.includes(line)) this.#print(line);
    this.#printed = lines;
  }

  /** The sides that have answered; none for compare, which has already printed the differences. */
  #answered() {
    const { answers, plan } = this.#context;
    if (answers !== undefined) return [];
    return plan.variants.flatMap(({ variant: { name }, page }) => {
      const answer = this.bySide.get(name);
      return answer === undefined ? [] : [{ name, given: name, page, answer }];
    });
  }

  /** Lines with the differences of the answers; none until all sides have answered. */
  #table(): string[] {
    const { variants } = this.#context.plan;
    const sides = this.#answered();
    if (sides.length < variants.length) return [];
    const { bytes, compression } = answerColumns;
    // Lengths that the scenario states differ on purpose.
    const areStated = variants.every(({ page }) => page.bodyBytes !== undefined);
    const table = differencesTable(sides, areStated ? [compression] : [compression, bytes]);
    if (table === undefined) return [];
    return [differencesTitle, ...terminalTable(table, { width: Infinity, colour: false })];
  }
}
