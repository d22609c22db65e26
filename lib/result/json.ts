// How a result is written.
import type { Result } from './result.ts';

/** Of no text in a result: it is for private use. */
const mark = '\u{e000}';

/** Indented, but for histograms: thousands of bars, each in four lines, would be ten times the rest. */
export function resultJson(result: Result): string {
  const text = JSON.stringify(result, (key, value: unknown) => (key === 'histogram' ? `${mark}${JSON.stringify(value)}${mark}` : value), 2);
  return `${text.replaceAll(new RegExp(`"${mark}(.*?)${mark}"`, 'g'), '$1')}\n`;
}
