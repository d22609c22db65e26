// Articles that published the figures of scenarios, and their claims.
import * as v from 'valibot';
import { inOneLine, UserError } from '../errors.ts';
import {
  closed,
  each,
  list,
  oneOf,
  orAbsent,
  problemIn,
  text,
  trueOrAbsent,
  upTo,
  within,
  type Of,
} from '../form.ts';

/** It is shown in terminals and pages. */
const line = v.pipe(
  text,
  v.check((value) => inOneLine(value) === value, 'has to be one line of visible characters'),
);
const lines = list(line);

/** A comparison behind a claim: two variants of a scenario, and the claim on the first. */
const restFields = {
  scenario: line,
  variant: line,
  against: line,
  is: orAbsent(oneOf(['faster', 'slower', 'same', 'not slower', 'not faster'])),
  /** The size that is claimed beside `is`: 1.46 is "46 % faster". */
  about: orAbsent(upTo(1e6)),
  /** The article's figures for the two variants do not measure this claim. */
  unpublished: orAbsent(trueOrAbsent),
  /** Header bytes or packets of a request, as a share of the other side's: 1 / 15 is "a fifteenth". */
  ...each(['headersAbout', 'packetsAbout'], orAbsent(within(0, 1))),
  /** Its success ratio is higher than the other side's. */
  moreSucceed: orAbsent(trueOrAbsent),
  /** The unused part of its server's cores, 0 to 1. */
  idleAtLeast: orAbsent(within(0, 1)),
};
export interface ClaimRest extends Of<typeof restFields> {}
/** One of these has to be there. */
const statements = ['is', 'headersAbout', 'packetsAbout', 'moreSucceed', 'idleAtLeast'] as const;

const claimFields = {
  /** The article's exact words, in its language. */
  quote: line,
  /** Where they stand: the heading above them, as in the article. */
  place: line,
  /** The claim as a plain sentence, without its full stop. */
  text: line,
  /** The article's figures for the claim, and the actual result from them. */
  figures: line,
  /** What it depends on here, if the article does not say it: "with a queue of 1,000 packets". */
  condition: orAbsent(line),
  /** All have to hold. */
  rests: list(closed(restFields)),
};
export interface Claim extends Of<typeof claimFields> {}

const articleFields = {
  /** A part of file names and tags. */
  id: v.pipe(
    text,
    v.regex(/^[\w.-]{1,63}$/, 'may have letters, digits, _, . and - only, at most 63'),
  ),
  title: line,
  /** The article's own title in its language, and how its date is known if it states none. */
  source: orAbsent(line),
  author: orAbsent(line),
  /** The date, as precise as it is known: 2017, 2015-05-06. */
  date: line,
  url: orAbsent(v.pipe(line, v.regex(/^https?:\/\//, 'has to begin with http:// or https://'))),
  machine: orAbsent(
    closed({
      hardware: orAbsent(line),
      os: orAbsent(line),
      kernel: orAbsent(line),
      compiler: orAbsent(line),
      servers: orAbsent(line),
    }),
  ),
  /** Command lines of its loads and servers. */
  commands: orAbsent(lines),
  /** Names of the scenarios, in its order. */
  scenarios: orAbsent(lines),
  claims: orAbsent(list(closed(claimFields))),
  /** A smaller difference counts as none for the article: 0.01 is 1 %. */
  resolution: orAbsent(within(0, 1)),
  /** Tested statements of the article that are no claims here, and why. */
  leftOut: orAbsent(list(closed({ quote: line, why: line }))),
};
/** An article that published figures of scenarios. Fields are absent if the article does not state them. */
export interface Article extends Of<typeof articleFields> {}
export const articleForm = closed(articleFields);

/**
 * Checks an article and returns it unchanged.
 * @param text of the article as its author published it; absent: quotes are not checked
 * @throws UserError that names the wrong field, or a quote that is not in the text, with the words there that are nearest
 */
export function defineArticle(article: Article, text?: string): Article {
  const problem =
    problemIn(articleForm, article) ?? problemOfClaims(article) ?? problemOfQuotes(article, text);
  if (problem === undefined) return article;
  throw new UserError(`article ${(article as Partial<Article> | null)?.id}: ${problem}`);
}

function problemOfClaims({ claims = [] }: Article): string | undefined {
  for (const { text: claim, rests } of claims) {
    const isEmpty = rests.some((rest) => statements.every((name) => rest[name] === undefined));
    if (isEmpty)
      return `the claim "${claim}" rests on a comparison that claims nothing: give it "is", "headersAbout" or the like`;
  }
  return undefined;
}

function problemOfQuotes(
  { claims = [], leftOut = [] }: Article,
  text?: string,
): string | undefined {
  if (text === undefined) return undefined;
  const words = wordsOf(text);
  const whole = words.join(' ');
  for (const { quote } of [...claims, ...leftOut]) {
    const quoted = wordsOf(quote);
    if (!whole.includes(quoted.join(' ')))
      return `its text has no "${quote}": nearest is "${nearestWords(words, quoted)}"`;
  }
  return undefined;
}

const wordsOf = (text: string): string[] => text.split(/\s+/).filter(Boolean);

/** As many words of the text in a row as are quoted, of which most are the same. */
function nearestWords(words: readonly string[], quoted: readonly string[]): string {
  const alike = new Set(quoted);
  const has = (word: string | undefined) => (word !== undefined && alike.has(word) ? 1 : 0);
  let [same, most, at] = [0, 0, 0];
  for (const [index, word] of words.entries()) {
    same += has(word) - has(words[index - quoted.length]);
    if (same > most) [most, at] = [same, index - quoted.length + 1];
  }
  return words.slice(Math.max(0, at), Math.max(0, at) + quoted.length).join(' ');
}
