// Several builds of a commit, whose code lies elsewhere in memory: that alone may change a server's speed by some percent.
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import type { Observer } from '../../runner/observers/observer.ts';

/** As many as a usual run has rounds. */
export const layoutsOfCommit = 10;
/** The placeholder in a build command for the number of the layout. */
export const salt = '{salt}';

/** The builds of a side. The server starts in `link`, which leads to one of them. */
interface Layouts {
  link: string;
  trees: readonly string[];
  /** Which of them. */
  at: number;
}

const bySide = new Map<string, Layouts>();

/** The side starts in the first of these builds, and after each load in the next one. */
export function startInTurn(side: string, link: string, trees: readonly string[]): void {
  const layouts = { link, trees, at: 0 };
  bySide.set(side, layouts);
  pointTo(layouts);
}

function pointTo({ link, trees, at }: Layouts): void {
  const made = `${link}-next`;
  rmSync(made, { force: true });
  symlinkSync(trees[at % trees.length] ?? '', made);
  renameSync(made, link);
}

/** Each round starts the servers anew, so its ratio is one of two other builds, and the interval is one over builds. */
export const nextLayout: Observer = {
  name: 'the next layout',
  begin: ({ stages }) => ({
    end() {
      for (const { planned } of stages) {
        const layouts = bySide.get(planned.variant.name);
        if (layouts === undefined) continue;
        layouts.at++;
        pointTo(layouts);
      }
      return [];
    },
  }),
};
