// Gets the tools of tests with servers, before the first of them.
import { UserError } from '../lib/errors.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { ensureTools, type ToolName } from '../lib/setup/tools.ts';

const needed = ['k6', 'nginx', 'h2o', 'nghttpd', 'h2load', 'wrk', 'openssl', 'influxd'] as const;

/** Without these some tests are skipped. */
const optional: readonly (readonly [tools: readonly ToolName[], what: string])[] = [
  [['chromium'], 'the tests in a browser'],
  [['caddy', 'lighttpd', 'apache2', 'haproxy'], 'some of examples/any-server'],
  [['sshd'], 'the tests with other hosts'],
  [['perf'], 'the causes of verdicts'],
];

export default async function getTools(): Promise<void> {
  const machine = thisMachine();
  await ensureTools(needed, machine);
  for (const [tools, what] of optional)
    await ensureTools(tools, machine).catch((error: unknown) => {
      if (!(error instanceof UserError)) throw error;
      machine.progress.print(`SKIPPED, ${what}: ${error.message}`);
    });
}
