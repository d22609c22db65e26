// How many tests passed and failed, read from what the test runners write.

export interface Counts {
  passed: number;
  failed: number;
}

/** `output` is shown if something failed; the lines of `skipped` always. */
export interface Outcome extends Counts {
  output: string;
  skipped?: readonly string[];
}

/** The part of vitest's JSON report that is read. */
export interface VitestReport {
  numPassedTests: number;
  numFailedTests: number;
  testResults: { status: string; assertionResults: { status: string }[] }[];
}

/** A file that fails without a failed test in it (it cannot be loaded, or a hook failed) counts as one failure. */
export function countVitest(report: VitestReport): Counts {
  const brokenFiles = report.testResults.filter(
    (file) =>
      file.status === 'failed' && file.assertionResults.every(({ status }) => status !== 'failed'),
  );
  return { passed: report.numPassedTests, failed: report.numFailedTests + brokenFiles.length };
}

/** Returns the lines in which tests say what they skip and why, each once. They contain "SKIPPED". */
export function skippedLines(output: string): string[] {
  return [...new Set(output.match(/SKIPPED[,:].*$/gm))];
}

interface GoTestEvent {
  Action: string;
  Package?: string;
  ImportPath?: string;
  Test?: string;
  Output?: string;
}

/**
 * Reads `go test -json`. Counts top-level tests. A package that fails without a failed test (it does not compile, or
 * panics) counts as one failure. `output` is what failed tests printed; `skipped` has the lines of all tests.
 */
export function countGoTests(stdout: string): Required<Outcome> {
  const events = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as GoTestEvent);
  const ended = (action: string): GoTestEvent[] =>
    events.filter((event) => event.Action === action);
  const topLevel = (event: GoTestEvent): boolean =>
    event.Test !== undefined && !event.Test.includes('/');
  const failedTests = ended('fail').filter(topLevel);
  const packagesWithFailedTest = new Set(failedTests.map((event) => event.Package));
  const brokenPackages = ended('fail').filter(
    (event) => event.Test === undefined && !packagesWithFailedTest.has(event.Package),
  );

  const passed = ended('pass').filter(topLevel);
  const quiet = new Set([...passed, ...ended('skip').filter(topLevel)].map(testKey));
  const passedPackages = new Set(
    ended('pass')
      .filter((event) => event.Test === undefined)
      .map((event) => event.Package),
  );
  const output = events
    .filter(
      (event) =>
        /output$/.test(event.Action) &&
        !passedPackages.has(event.Package) &&
        !quiet.has(testKey(event)),
    )
    .map(printed)
    .filter((text) => !text.startsWith('=== '))
    .join('');
  return {
    passed: passed.length,
    failed: failedTests.length + brokenPackages.length,
    output,
    skipped: skippedLines(events.map(printed).join('')),
  };
}

function printed({ Output = '' }: GoTestEvent): string {
  return Output;
}

/** The key of the top-level test that an event belongs to. */
function testKey(event: GoTestEvent): string {
  return `${event.Package ?? event.ImportPath} ${event.Test?.split('/')[0] ?? ''}`;
}
