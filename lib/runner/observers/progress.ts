// Reports the present rate of a load, and each of its steps.
import { followPhases, followRate } from '../k6.ts';
import type { RunningK6 } from '../k6.ts';
import type { ObservedLoad, Observer } from './observer.ts';

const reportIntervalMs = 500;

export const progress: Observer = {
  name: 'the progress',
  begin(load) {
    let stop: (() => void) | undefined;
    return {
      started(generator) {
        stop = report(load, generator);
      },
      end() {
        stop?.();
        return [];
      },
    };
  },
};

/** Reports until the returned function is called, and a last time then. */
function report({ plan, stages, attempt }: ObservedLoad, { files }: RunningK6): () => void {
  const { stepped } = plan;
  const { round, onLoad, onStep } = attempt;
  const rate = followRate(files.record);
  const phases = followPhases(files.console);
  const reportSteps = () => {
    if (stepped === undefined) return;
    for (const outcome of phases()) {
      const steps = stages.flatMap(({ planned }, side) =>
        stepped.stepsIn(outcome, side, planned.variant.name, round),
      );
      onStep?.(steps);
    }
  };
  const timer = setInterval(() => {
    onLoad(rate());
    reportSteps();
  }, reportIntervalMs);
  return () => {
    clearInterval(timer);
    reportSteps();
  };
}
