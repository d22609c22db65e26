import { expect, test } from 'vitest';
import { countGoTests, countVitest, skippedLines } from '../counts.ts';

const events = (...list: object[]): string =>
  list.map((event) => `${JSON.stringify(event)}\n`).join('');

test('go: top-level tests are counted, subtests and skipped ones are not', () => {
  expect(
    countGoTests(
      events(
        { Action: 'start', Package: 'p' },
        { Action: 'run', Package: 'p', Test: 'TestA' },
        { Action: 'output', Package: 'p', Test: 'TestA', Output: '=== RUN   TestA\n' },
        { Action: 'pass', Package: 'p', Test: 'TestA/one' },
        { Action: 'pass', Package: 'p', Test: 'TestA' },
        { Action: 'skip', Package: 'p', Test: 'TestB' },
        { Action: 'output', Package: 'p', Output: 'ok  \tp\t0.01s\n' },
        { Action: 'pass', Package: 'p' },
        { Action: 'output', Package: 'empty', Output: '?   \tempty\t[no test files]\n' },
        { Action: 'skip', Package: 'empty' },
      ),
    ),
  ).toMatchObject({ passed: 1, failed: 0 });
});

test('go: what a failed test printed is kept, what the others printed is not', () => {
  expect(
    countGoTests(
      events(
        { Action: 'output', Package: 'p', Test: 'TestGood', Output: 'chatter\n' },
        { Action: 'pass', Package: 'p', Test: 'TestGood' },
        { Action: 'output', Package: 'p', Test: 'TestBad/two', Output: '=== RUN   TestBad/two\n' },
        {
          Action: 'output',
          Package: 'p',
          Test: 'TestBad/two',
          Output: '    bad_test.go:3: 1 is not 2\n',
        },
        { Action: 'fail', Package: 'p', Test: 'TestBad/two' },
        { Action: 'fail', Package: 'p', Test: 'TestBad' },
        { Action: 'output', Package: 'p', Output: 'FAIL\tp\t0.01s\n' },
        { Action: 'fail', Package: 'p' },
        { Action: 'output', Package: 'q', Output: 'ok  \tq\t0.01s\n' },
        { Action: 'pass', Package: 'q' },
      ),
    ),
  ).toMatchObject({
    passed: 1,
    failed: 1,
    output: '    bad_test.go:3: 1 is not 2\nFAIL\tp\t0.01s\n',
  });
});

test('go: a package that does not compile, or panics outside a test, is one failure with its output', () => {
  expect(
    countGoTests(
      `not JSON\n${events(
        { ImportPath: 'p [p.test]', Action: 'build-output', Output: './p.go:3: syntax error\n' },
        { ImportPath: 'p [p.test]', Action: 'build-fail' },
        { Action: 'fail', Package: 'p' },
        { Action: 'output', Package: 'q', Output: 'panic: init\n' },
        { Action: 'fail', Package: 'q' },
      )}`,
    ),
  ).toMatchObject({ passed: 0, failed: 2, output: './p.go:3: syntax error\npanic: init\n' });
});

test('go: a test that was still running when its package ended shows what it printed', () => {
  expect(
    countGoTests(
      events(
        { Action: 'output', Package: 'p', Test: 'TestHangs', Output: 'panic: test timed out\n' },
        { Action: 'fail', Package: 'p' },
      ),
    ),
  ).toMatchObject({ passed: 0, failed: 1, output: 'panic: test timed out\n' });
});

test('what tests leave out is named once, though they passed', () => {
  expect(
    countGoTests(
      events(
        {
          Action: 'output',
          Package: 'p',
          Test: 'TestA',
          Output: '    a_test.go:7: SKIPPED: no namespaces\n',
        },
        { Action: 'skip', Package: 'p', Test: 'TestA' },
        {
          Action: 'output',
          Package: 'p',
          Test: 'TestB',
          Output: '    b_test.go:9: SKIPPED: no namespaces\n',
        },
        { Action: 'pass', Package: 'p' },
      ),
    ),
  ).toMatchObject({ skipped: ['SKIPPED: no namespaces'] });
  expect(
    skippedLines(
      'stderr | test/a.test.ts\nSKIPPED, what needs a network: not allowed\n\n ✓ passed\n',
    ),
  ).toEqual(['SKIPPED, what needs a network: not allowed']);
  expect(skippedLines('all passed, none SKIPPED\n')).toEqual([]);
});

test('vitest: a file that fails without a failed test is one failure', () => {
  expect(
    countVitest({
      numPassedTests: 5,
      numFailedTests: 1,
      testResults: [
        { status: 'passed', assertionResults: [{ status: 'passed' }] },
        { status: 'failed', assertionResults: [{ status: 'passed' }, { status: 'failed' }] },
        { status: 'failed', assertionResults: [] },
        { status: 'failed', assertionResults: [{ status: 'passed' }] },
      ],
    }),
  ).toEqual({ passed: 5, failed: 3 });
});
