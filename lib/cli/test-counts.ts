// How many tests passed and failed, read from what the test runners write.

export interface Counts { passed: number; failed: number }

/** `output` is shown when something failed, `skipped` in any case, a line each. */
export interface Outcome extends Counts { output: string; skipped?: readonly string[] }

/** What of vitest's JSON report is needed. */
export interface VitestReport {
  numPassedTests: number;
  numFailedTests: number;
  testResults: { status: string; assertionResults: { status: string }[] }[];
}

/** A file that fails without a failed test in it (it cannot be loaded, a hook failed) counts as one failure. */
export function countVitest(report: VitestReport): Counts {
  const brokenFiles = report.testResults.filter((file) => file.status === 'failed' && file.assertionResults.every(({ status }) => status !== 'failed'));
  return { passed: report.numPassedTests, failed: report.numFailedTests + brokenFiles.length };
}

/** Lines, each once, in which tests say what they leave out and why: they hold "SKIPPED". */
export function skippedLines(output: string): string[] {
  return [...new Set(output.match(/SKIPPED[,:].*$/gm))];
}

interface GoTestEvent { Action: string; Package?: string; ImportPath?: string; Test?: string; Output?: string }

/**
 * Reads `go test -json`. Counts top-level tests; a package that fails without a failed test (it does not compile, it
 * panics) counts as one failure. `output` is what the failed ones printed, `skipped` is of all.
 */
export function countGoTests(stdout: string): Required<Outcome> {
  const events = stdout.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as GoTestEvent);
  const ended = (action: string): GoTestEvent[] => events.filter((event) => event.Action === action);
  const topLevel = (event: GoTestEvent): boolean => event.Test !== undefined && !event.Test.includes('/');
  const failedTests = ended('fail').filter(topLevel);
  const packagesWithFailedTest = new Set(failedTests.map((event) => event.Package));
  const brokenPackages = ended('fail').filter((event) => event.Test === undefined && !packagesWithFailedTest.has(event.Package));

  const passed = ended('pass').filter(topLevel);
  const quiet = new Set([...passed, ...ended('skip').filter(topLevel)].map(testKey));
  const passedPackages = new Set(ended('pass').filter((event) => event.Test === undefined).map((event) => event.Package));
  const output = events.filter((event) => /output$/.test(event.Action) && !passedPackages.has(event.Package) && !quiet.has(testKey(event)))
    .map(printed).filter((text) => !text.startsWith('=== ')).join('');
  return { passed: passed.length, failed: failedTests.length + brokenPackages.length, output, skipped: skippedLines(events.map(printed).join('')) };
}

function printed({ Output = '' }: GoTestEvent): string {
  return Output;
}

/** The top-level test that an event belongs to. */
function testKey(event: GoTestEvent): string {
  return `${event.Package ?? event.ImportPath} ${event.Test?.split('/')[0] ?? ''}`;
}
