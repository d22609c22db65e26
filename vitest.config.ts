import { join } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import {
  BaseSequencer,
  ForksPoolWorker,
  type PoolOptions,
  type TestSpecification,
} from 'vitest/node';

/** Long tests begin first. Unit tests keep the cores busy, so they come last. */
const order = ['rare-sources', 'rare', 'runs', 'integration', 'unit'];

class LongProjectsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const place = ({ project }: TestSpecification) => order.indexOf(project.name);
    return sorted.sort((a, b) => place(a) - place(b));
  }
}

/** Runs tests in a network of their own, because bakeoff lets one run measure at a time on a network. */
class OwnNetworkWorker extends ForksPoolWorker {
  override readonly name = 'own-network';

  override start(): Promise<void> {
    const { execPath } = process;
    // The worker is forked before the first await.
    process.execPath = join(import.meta.dirname, 'test/node-in-own-network.sh');
    const started = super.start();
    process.execPath = execPath;
    return started;
  }
}

const inOwnNetwork = {
  pool: {
    name: 'own-network',
    createPoolWorker: (options: PoolOptions) => new OwnNetworkWorker(options),
  },
};

/** The path of a file. A name alone is looked for among the packages of all folders above. */
const inTests = (file: string): string => join(import.meta.dirname, 'test', file);

const withServers = {
  globalSetup: [inTests('tools.ts')],
  // On a busy machine rounds are repeated.
  testTimeout: 240_000,
  hookTimeout: 300_000,
};

/** The tests of a folder of test. */
const project = (name: string, options: NonNullable<TestProjectInlineConfiguration['test']>) => ({
  extends: true as const,
  test: { name, include: [`test/${name}/**/*.test.ts`], ...options },
});

export default defineConfig({
  // Else vite may run a postcss.config.js of the folders above the checkout.
  css: { postcss: {} },
  test: {
    // Several runs share the cores. And else tsx, which tests start, takes compiled files from a folder that another user may have made in /tmp.
    env: { TSX_DISABLE_CACHE: '1', BAKEOFF_PRIORITY: 'no' },
    // Most tests wait for servers or timers, so four workers share two cores.
    maxWorkers: 4,
    // A worker's files share their modules: reading them anew for each takes longer than most tests.
    isolate: false,
    experimental: {
      fsModuleCache: true,
      // Else a pnpm-workspace.yaml in a folder above the checkout says in whose node_modules it is.
      fsModuleCachePath: join(import.meta.dirname, 'node_modules/.experimental-vitest-cache'),
    },
    sequence: { sequencer: LongProjectsFirst },
    projects: [
      project('unit', {
        include: ['test/unit/**/*.test.ts', 'lib/features/**/*.test.ts'],
        setupFiles: inTests('restore.ts'),
        testTimeout: 30_000,
      }),
      project('integration', withServers),
      project('runs', { ...withServers, ...inOwnNetwork }),
      project('alone', {
        ...withServers,
        ...inOwnNetwork,
        fileParallelism: false,
        sequence: { groupOrder: 1 },
      }),
      project('rare', { ...withServers, ...inOwnNetwork }),
      project('rare-sources', { testTimeout: 900_000 }),
      project('rare-alone', {
        ...withServers,
        ...inOwnNetwork,
        fileParallelism: false,
        sequence: { groupOrder: 2 },
      }),
    ],
  },
});
