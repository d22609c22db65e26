// Formats figures for people. If a column's heading has the unit, its figures have none; the `scaled…` functions add a unit.

/** Puts commas between thousands. toLocaleString does not do so in k6, which has no locales. */
function grouped(digits: string): string {
  const [integer = '', ...fraction] = digits.split('.');
  return [integer.replaceAll(/\B(?=(\d{3})+$)/g, ','), ...fraction].join('.');
}

/** 60411.8 is "60,412". */
export function whole(value: number): string {
  return grouped(String(Math.round(value)));
}

/** Rates in a column: 60,412, but below 1000 with two decimals: 221.86. */
export function perSecond(value: number): string {
  return value < 1000 ? hundredths(value) : whole(value);
}

/** Formats with two decimals: 1,237.36. */
export function hundredths(value: number): string {
  return grouped(value.toFixed(2));
}

/** A time with a fitting unit, scaled as in h2load: 516 µs, 74.59 ms, 446.96 s. */
export function scaledTime(ms: number): string {
  const micros = Math.round(ms * 1000);
  if (micros < 1000) return `${micros} µs`;
  return Math.round(ms * 100) < 100_000 ? `${ms.toFixed(2)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

/** A latency bucket by its ends: "300–450 µs", "900 µs–1 ms", "over 5 ms". */
export function bucketLabel({ fromMs, toMs }: { fromMs: number; toMs: number | null }): string {
  if (toMs === null) return `over ${tick(fromMs)}`;
  const [from, to] = [tick(fromMs), tick(toMs)];
  const unit = to.slice(to.indexOf(' '));
  if (fromMs === 0) return `0–${to}`;
  return `${from.endsWith(unit) ? from.slice(0, -unit.length) : from}–${to}`;
}

function tick(ms: number): string {
  const [value, unit] = scaledTime(ms).split(' ');
  return `${Number(value)} ${unit}`;
}

/** Scales in steps of 1024 like h2load and wrk, but with the correct unit names. */
export function scaledBytesPerSecond(bytesPerSecond: number): string {
  let value = bytesPerSecond;
  let unit = 'B';
  for (const larger of ['KiB', 'MiB', 'GiB']) {
    if (value < 1023.995) break;
    value /= 1024;
    unit = larger;
  }
  return `${unit === 'B' ? whole(value) : value.toFixed(2)} ${unit}/s`;
}

/** Thousands of bytes: 23,600, but 426.9. */
export function kilobytes(bytes: number): string {
  return bytes < 999_950 ? (bytes / 1000).toFixed(1) : whole(bytes / 1000);
}

/** Times with three digits and at most two decimals: 0.43, 8.4, 206. */
export function short(value: number): string {
  if (value < 0.995) return value.toFixed(2);
  return value.toFixed(value < 99.95 ? 1 : 0);
}

/**
 * Writes a ratio as an effect: "+33 % [31, 35]", and from 2 on "6.1 times [5.9, 6.3]". Percentages have enough digits to show on which side
 * of 0 an end is, that −99.6 % is not −100 %, and that a narrow interval has a width: "−16.4 % [−16.5, −16.3]". If the interval's ends
 * differ by a factor of a thousand, it is "[too wide]".
 */
export function effect(ratio: number, interval?: readonly [number, number]): string {
  if (interval === undefined) return amount(ratio);
  const among = (ends: string[]) => ` [${ends.join(', ')}]`;
  if (isTooWide(interval)) return amount(ratio) + among(['too wide']);
  if (ratio >= 2) return amount(ratio) + among(interval.map((end) => inTimes(end)));
  const percents = [ratio, ...interval].map((value) => (value - 1) * 100);
  const usual = percents.every((value) => Math.abs(value) < 9.95) ? 1 : 0;
  const showsWidth = (count: number) => percents[1]?.toFixed(count) !== percents[2]?.toFixed(count);
  const fewest = !showsWidth(usual) && showsWidth(usual + 1) ? usual + 1 : usual;
  const decimals = [fewest, 1, 2, 3].find((count) =>
    percents.every((value) => value === 0 || ![0, -100].includes(Number(value.toFixed(count)))),
  );
  const [shown, ...ends] = percents.map((value) => value.toFixed(decimals ?? 3).replace('-', '−'));
  const isNothing = Number(percents[0]?.toFixed(decimals ?? 3)) === 0;
  if (isNothing) return `±${shown?.replace('−', '')} %${among(ends)}`;
  return `${ratio > 1 ? '+' : ''}${shown} %${among(ends)}`;
}

/** Returns whether an interval of ratios is so wide that its ends tell nothing. */
export function isTooWide([low, high]: readonly [number, number]): boolean {
  return high > 1000 * low;
}

/**
 * Writes "+8.9 %", and from 2 on "6 times"; with `isShare` "22 %". @param as the ratio that decides the form; for an interval's end, the
 * ratio itself
 */
export function amount(ratio: number, isShare = false, as = ratio): string {
  if (as >= 2) return `${inTimes(ratio)} times`;
  if (!isShare) return change(ratio);
  return Math.abs(as - 1) < 0.1 ? `${Number((100 * ratio).toFixed(1))} %` : percent(ratio);
}

function inTimes(ratio: number): string {
  return grouped(String(Number(ratio.toPrecision(3))));
}

/** 1.33 is "+33 %", 0.998 is "−0.2 %". Up to three decimals avoid "±0 %", and up to ten avoid "−100 %". */
function change(ratio: number): string {
  const percent = (ratio - 1) * 100;
  const size = Math.abs(percent);
  const rounded = (decimals: number) => Number(size.toFixed(decimals));
  const near0 = [1, 2, 3].find((decimals) => rounded(decimals) > 0);
  const near100 = [...Array(11).keys()].find((decimals) => rounded(decimals) < 100);
  let count = percent < 0 ? near100 : 0;
  if (size < 9.95) count = near0;
  const text = size.toFixed(count ?? 0);
  let sign = percent < 0 ? '−' : '+';
  if (Number(text) === 0) sign = '±';
  return `${sign}${text.replace(/\.0$/, '')} %`;
}

/** Errors per million; "<1" for a few that would round to 0. */
export function perMillion(value: number): string {
  return value > 0 && value < 1 ? '<1' : whole(value);
}

/** A share as percent, rounded down, so that "100 %" means all. */
export function success(ratio: number): string {
  // 0.57 times 10,000 is a little less than 5700 in binary.
  if (ratio === 1) return '100 %';
  return `${(Math.floor(Number((ratio * 10_000).toPrecision(12))) / 100).toFixed(2)} %`;
}

/** Percent with two decimals, as h2load prints them: 39.64 %. */
export function exactPercent(percents: number): string {
  return `${percents.toFixed(2)} %`;
}

/** A ratio with five digits after the point, rounded down: 1, 0.15386. The article on nghttpd prints success like this. */
export function fiveDigits(ratio: number): string {
  return String(Math.floor(Number((ratio * 1e5).toPrecision(12))) / 1e5);
}

/** A share as a fraction of 1: 0.0181 is "1/55.3". */
export function fraction(share: number): string {
  return `1/${Number((1 / share).toFixed(1))}`;
}

/** A share as percent, below 10 % with one decimal. */
export function percent(share: number): string {
  return `${share < 0 ? '−' : ''}${Math.abs(share * 100).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)} %`;
}

/** The range of shares: "12 %", "9.1 to 34 %". */
export function percentRange(shares: readonly number[]): string {
  const [low, high] = [percent(Math.min(...shares)), percent(Math.max(...shares))];
  return low === high ? low : `${low.replace(' %', '')} to ${high}`;
}

/** A share as a person gives it, without trailing zeros: 1 %, 0.25 %. */
export function tolerance(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}

/** A bar of blocks, `width` characters long for a share of 1. Any share above 0 is visible. */
export function bar(share: number, width: number): string {
  const eighths = share > 0 ? Math.max(1, Math.round(share * width * 8)) : 0;
  return '█'.repeat(eighths >> 3) + ' ▏▎▍▌▋▊▉'.charAt(eighths & 7).trim();
}

/** ["5", "10", "20"] and "or" are "5, 10 or 20". */
export function enumeration(
  texts: readonly (string | number)[],
  last: 'and' | 'or' = 'and',
): string {
  if (texts.length < 2) return texts.join('');
  return `${texts.slice(0, -1).join(', ')} ${last} ${texts.at(-1)}`;
}

/** Lists names of variants; "every variant" if these are all and three or more. @param all how many there are */
export function variantsText(names: readonly string[], all: number): string {
  return names.length > 2 && names.length === all ? 'every variant' : enumeration(names);
}

/** "1 error", "1,200 errors". */
export function counts(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** 2.003 is "2", 0.497 is "0.5", 104 is "104". */
export const amountText = (value: number): string => hundredths(value).replace(/\.?0+$/, '');

const signedText = (value: number): string =>
  `${value < 0 ? '−' : '+'}${amountText(Math.abs(value))}`;

/** "+3", "+0.02 [−0.5, +0.54]". */
export function differenceText({
  difference,
  low,
  high,
}: Readonly<Record<'difference' | 'low' | 'high', number>>): string {
  const text = difference === 0 ? '0' : signedText(difference);
  return low === high ? text : `${text} [${signedText(low)}, ${signedText(high)}]`;
}

/** 1.5 is "1.5 cores", 1 is "1 core"; with at most two decimals. */
export function coreCount(count: number): string {
  const cores = Number(count.toFixed(2));
  return `${cores} ${cores === 1 ? 'core' : 'cores'}`;
}

/** 140 is "2 min 20 s". */
export function duration(seconds: number): string {
  const rounded = Math.max(1, Math.round(seconds));
  const minutes = Math.floor(rounded / 60);
  const rest = rounded % 60;
  return [minutes > 0 ? `${minutes} min` : '', rest > 0 ? `${rest} s` : '']
    .filter((part) => part !== '')
    .join(' ');
}

/** Writes [0, 1, 2, 5] as "0-2,5". */
export function formatCpuList(cpus: readonly number[]): string {
  const ranges: { from: number; to: number }[] = [];
  for (const cpu of cpus) {
    const last = ranges.at(-1);
    if (last?.to === cpu - 1) last.to = cpu;
    else ranges.push({ from: cpu, to: cpu });
  }
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join(',');
}
