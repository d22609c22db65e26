// npm run scenario -- NAME --k6-script FILE: writes a scenario as a k6 script for servers that already run.
import { fileURLToPath } from 'node:url';
import { inOneLine, messageOf, usageError, systemError } from '../errors.ts';
import { enumeration } from '../format.ts';
import type { ScenarioScript, ScriptSide } from '../k6/scenario-script.ts';
import { divideCores, generatorCores } from '../machine/cores.ts';
import { readProcessors } from '../machine/processors.ts';
import { firstOf, present, zip } from '../present.ts';
import { metricWords } from '../report/metric-words.ts';
import { bundledForK6 } from '../runner/k6.ts';
import { expectedOf, loadPlanFor } from '../runner/k6-plan.ts';
import { mixFileOf } from '../runner/mix-files.ts';
import { makePlan } from '../runner/make-plan.ts';
import type { Group, PlanDraft, PlannedVariant } from '../runner/plan.ts';
import { latencyMetrics } from '../scenario/latency-metrics.ts';
import { findVariants } from '../scenario/catalogue.ts';
import { needsTls } from '../scenario/load.ts';
import type { Scenario } from '../scenario/model.ts';
import { pathOfPage } from '../scenario/pages.ts';
import { baselineName, programOf } from '../scenario/variants.ts';
import { keptLoad } from '../secrets.ts';
import { fromCallersFolder, typed } from '../setup/paths.ts';
import { writeForUser } from '../writing.ts';
import type { CoreFlag } from './run-options.ts';
import type { ScenarioOptions } from './run-scenario.ts';
import type { Flag } from './arguments.ts';

const source = fileURLToPath(new URL('../k6/scenario-script.ts', import.meta.url));

/** Flags for servers that bakeoff starts, and for the results of runs. */
const flagsOfRuns: readonly CoreFlag[] = [
  'max-time',
  'fail-if',
  'wait',
  'prepare',
  'host',
  'out',
  'keep-secrets',
  'json',
  'export-markdown',
  'export-json',
  'export-csv',
];

/** @param added the flags of the features */
export function k6ScriptFlag(added: Readonly<Record<string, Flag>>) {
  const ofRuns = Object.keys(added).filter((name) => added[name]?.inScripts !== true);
  return {
    'k6-script': {
      help: 'only write a k6 script for servers that run already, to FILE (NAME.k6.js)',
      without: [...flagsOfRuns, ...ofRuns],
    },
  } satisfies Record<string, Flag>;
}

/**
 * Writes the script, and prints how to run it.
 * @param file absent: NAME.k6.js, in the caller's folder
 * @throws UserError for a scenario that one k6 script cannot load, and a file that cannot be written
 */
export async function writeK6Script(
  scenario: Scenario,
  options: ScenarioOptions,
  file = `${scenario.name}.k6.js`,
): Promise<void> {
  const asked = { server: options.serverCpus, generator: options.generatorCpus };
  const cores = divideCores(readProcessors(), asked, scenario);
  const shown = findVariants(scenario, options.variants);
  const draft = makePlan(scenario, shown, cores, { ...options, atAddresses: true });
  requireScript(draft);
  const script = scriptOf(draft);
  const run = `run ${file} ${script.sides.map(({ target, example }) => `-e ${target}=${example}`).join(' ')}`;
  const text = await bundledForK6(source, banner(draft, script, run), {
    scenarioScript: JSON.stringify(script),
  });
  try {
    await writeForUser(fromCallersFolder(file), text, isK6Script);
  } catch (error) {
    const { code } = systemError(error);
    const why = code === 'ENOENT' ? 'its folder is not there' : messageOf(error);
    throw usageError(`--k6-script ${file} cannot be written: ${why}`);
  }
  console.log(inOneLine(`${typed('k6')} ${run}`));
}

/** Ends of the variables with the servers' addresses. */
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

function requireScript({ scenario, variants, stepped, metric }: PlanDraft): void {
  const unknown = metric && metricWords[metric].ofProcesses;
  if (unknown !== undefined)
    throw usageError(
      `--metric ${metric}: a k6 script knows no ${unknown} of servers: take ${enumeration(['rps', ...latencyMetrics], 'or')}`,
    );
  const refuse = (what: string) => {
    throw usageError(
      `--k6-script: ${scenario.name} ${what}: take another scenario, or other --variants`,
    );
  };
  if (stepped !== undefined) refuse(`${stepped.does}, which a script does not`);
  if (scenario.phases !== undefined)
    refuse('has several load phases on newly started servers, and a script starts none');
  const enclosure = firstOf(variants, (planned) => planned.enclosure);
  if (enclosure !== undefined) refuse(`has ${enclosure.name}, and a script makes none`);
  if (scenario.prepare !== undefined)
    refuse('has a command before each round (prepare), and a script runs none');
  if (variants.length === 0) refuse('has no variant to load');
  if (variants.length > letters.length)
    refuse(`has ${variants.length} variants, and a script ${letters.length} at most`);
}

function scriptOf(draft: PlanDraft): ScenarioScript {
  const { scenario, variants, groups, cores } = draft;
  const { quick, sameWithin, looks, metric, precision } = draft;
  return {
    name: scenario.name,
    title: scenario.title,
    sides: variants.map((planned, index) => sideOf(draft, planned, index)),
    groups: groups.map((group) => {
      const { phases, warmUps } = planOf(draft, group);
      const sides = group.sides.map((side) => variants.indexOf(side));
      return { sides, ...present({ slice: phases[0]?.slice, warmUps }) };
    }),
    facts: {
      quick,
      sameWithin,
      looks,
      metric,
      // Unknown for these servers.
      serverCores: 1,
      generatorCores: generatorCores(cores),
      sharedCores: false,
    },
    asked: present({ alsoCompare: scenario.alsoCompare, control: scenario.control }),
    maxDurationSeconds:
      draft.rounds *
      groups.reduce((sum, group) => sum + planOf(draft, group).maxDurationSeconds, 0),
    ...present({ precision }),
  };
}

/** Plans targets over TLS, so that the plan has the TLS options; a script for http leaves them out. */
const planOf = ({ scenario, cores }: PlanDraft, group: Group) =>
  loadPlanFor(
    // The servers may be on the same cores, so that no thread may spin.
    { run: 'script', scenario, cores: { ...cores, serverCpus: cores.generatorCpus } },
    group,
    1,
    group.sides.map(() => ({ url: 'https://localhost/' })),
  );

function sideOf(draft: PlanDraft, planned: PlannedVariant, index: number): ScriptSide {
  const { scenario } = draft;
  const { variant, load, page } = planned;
  const [phase] = planOf(draft, { sides: [planned] }).phases;
  const { url: _, ...options } = phase?.sides[0] ?? {};
  return {
    target: `TARGET_${letters[index]}`,
    example: `http${needsTls(load.protocol) ? 's' : ''}://127.0.0.1:${8081 + index}/`,
    path: pathOfPage(page),
    options: { ...options, ...present({ mix: mixFileOf(page)?.text }) },
    expected: expectedOf(planned),
    measured: {
      name: variant.name,
      load: { ...keptLoad(load), page: pathOfPage(page), bodyBytes: page.bodyBytes },
      ...present({ against: baselineName(scenario, variant), series: variant.series }),
    },
  };
}

/** Recognises a script by the first line of its banner. */
const isK6Script = (text: string): boolean =>
  /^\/\/ .*\. Written by bakeoff; needs a k6 /.test(text);

function banner({ scenario, variants }: PlanDraft, { sides }: ScenarioScript, run: string): string {
  const lines = [
    `${scenario.name}: ${scenario.title}. Written by bakeoff; needs a k6 with the module k6/x/loadgen, and servers that run:`,
    `k6 ${run}`,
    ...zip(sides, variants).map(
      ([{ target, measured, path }, { variant }]) =>
        `${target}: ${measured.name} (${programOf(variant.server)}), ${path} unless the address has a path`,
    ),
  ];
  return lines.map((line) => `// ${inOneLine(line)}`).join('\n');
}
