// What a comparison can be called by.
import { findVariants, isOwn } from './catalogue.ts';
import type { Scenario } from './model.ts';

/**
 * The knob in words, where the variants shown are all of the scenario's, one step from the first to the second, so that it
 * says what was compared; undefined otherwise, and of configs of a person's own: they may differ in more than one knob.
 */
export function knobOf(scenario: Scenario, shown: readonly { name: string }[]): string | undefined {
  const variants = findVariants(scenario);
  const own = variants.some(({ server }) => typeof server !== 'string' && isOwn(server));
  const isTheStep = variants.length === 2 && shown.length === 2 && variants.every(({ name }, index) => name === shown[index]?.name);
  return isTheStep && !own ? scenario.knob : undefined;
}
