// What a run found, as values and in sentences.
import { expect, test } from 'vitest';
import { sentencesOf, withFindings, type Templates } from '../../lib/report/finding-words.ts';
import { terminalReport } from '../../lib/report/texts.ts';
import type { Finding } from '../../lib/result/finding.ts';
import { checkResult, resultJson } from '../../lib/result/result-file.ts';
import { changed, openFileCache, result, workers } from '../fixtures/result.ts';

const hanging = [workers, openFileCache].map((side) => changed(side, () => ({ hung: 2 })));
const rounds = workers.rounds.length;

test('a result has a finding for each side, and a sentence for both', () => {
  const { findings, warnings } = result(hanging);
  const hung = { code: 'hung', requests: 2 * rounds, isOverflowed: false };
  expect(findings).toEqual([
    { ...hung, variant: 'workers' },
    { ...hung, variant: 'open-file-cache' },
  ]);
  const start = `workers and open-file-cache: ${2 * rounds} requests were never answered`;
  expect(warnings).toEqual([expect.stringContaining(start)]);
});

test('a result is read with the findings of another bakeoff, or of an earlier one, with its sentences', () => {
  const of = result(hanging);
  const other = { code: 'new-code', variant: 'workers', shareOfAll: 0.2 };
  const read = (json: string) => checkResult(json, 'result.json');
  expect(read(resultJson({ ...of, findings: [other] })).findings).toEqual([other]);
  const { findings: _, ...earlier } = of;
  const whole = read(JSON.stringify(earlier));
  expect(whole.findings).toEqual([]);
  const lines = terminalReport(whole, [], [], { width: 1000, colour: false, verbose: false });
  expect(lines).toContain(`Note: ${of.warnings[0]}`);
});

test('features have the sentences of their findings', () => {
  const ofFeature = { code: 'hot', variant: 'workers', kelvins: 350 };
  const quick: Finding = { code: 'quick-run' };
  const templates: Templates<typeof ofFeature> = {
    hot: ({ kelvins }, who) => `${who} was at ${kelvins} K`,
  };
  const found = withFindings(result(hanging), [ofFeature, quick], templates);
  expect(found.findings).toEqual([ofFeature, quick]);
  expect(found.warnings).toEqual([
    'workers was at 350 K',
    'quick run with short rounds: a first look, not a measurement',
  ]);
});

test('a sentence names all variants with the same finding, and each is there once', () => {
  const few = (variant: string, streams = 10) =>
    ({ code: 'few-streams', variant, streams, allowedStreams: 8 }) satisfies Finding;
  expect(sentencesOf([few('a'), few('b', 20), few('c'), few('a')], 3)).toEqual([
    expect.stringMatching(/^a and c: .* asks for 10: 8 were used$/),
    expect.stringMatching(/^b: /),
  ]);
  expect(
    sentencesOf(
      ['a', 'b', 'c'].map((name) => few(name)),
      3,
    ),
  ).toEqual([expect.stringMatching(/^every variant: /)]);
});
