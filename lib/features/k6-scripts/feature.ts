import type { Feature } from '../../cli/feature.ts';
import { usageError } from '../../errors.ts';
import { textOf } from '../../files.ts';
import { sendIfThere, startChild, withUserUmask } from '../../process.ts';
import { underSignals } from '../../signals.ts';
import { fromCallersFolder, typed } from '../../setup/paths.ts';
import { thisMachine } from '../../setup/machine.ts';
import { ensureTools } from '../../setup/tools.ts';

/** k6 scripts of one's own: xk6-loadgen/README.md. */
export const k6Scripts: Feature = {
  commands: {
    k6: {
      help: 'run the k6 with k6/x/loadgen (run script.js), or print its path',
      run: k6Command,
    },
  },
};

/**
 * Without arguments prints the path of k6, built first if necessary; else runs k6 with these arguments in the caller's folder and
 * returns its exit code. A signal ends k6 in order, by TERM.
 * @throws UserError for a scenario (exit code 2), and without Go to build k6; Interrupted
 */
async function k6Command(args: readonly string[]): Promise<number> {
  requireScript(args);
  return underSignals('ending k6 cleanly; again to end it at once', async (signal) => {
    const { k6 } = await ensureTools(['k6'], thisMachine(), signal);
    if (args.length === 0) {
      console.log(k6);
      return 0;
    }
    const child = await startChild({
      command: k6,
      args,
      before: withUserUmask,
      cwd: fromCallersFolder('.'),
      stdio: 'inherit',
      orphanedBy: 'TERM',
    });
    const end = () => sendIfThere(child.pid, 'SIGTERM');
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    const { code } = await child.exited;
    return code ?? 1;
  });
}

/** k6 drops an import of types. */
const scenarioImport = /^import (?!type\b|\{\s*type\b)[^;'"]*\bfrom ['"]server-bakeoff['"]/m;

/** Refuses a scenario file, which k6 cannot load. */
function requireScript(args: readonly string[]): void {
  const scenario = args.find(
    (arg) => /\.[cm]?[jt]s$/.test(arg) && scenarioImport.test(textOf(fromCallersFolder(arg))),
  );
  if (scenario === undefined) return;
  const run = `${typed('scenario')} ${scenario}`;
  throw usageError(
    `${scenario} is a scenario: ${run} runs it, and with --k6-script writes it for k6`,
  );
}
