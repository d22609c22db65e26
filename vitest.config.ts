import { spawnSync } from 'node:child_process';
import { defineConfig } from 'vitest/config';

// Whole runs start again in a network of their own, because bakeoff lets one run measure at a time on a network. Without root they
// stay, and fail beside another run.
const ownNetwork = ['--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
const variable = 'BAKEOFF_TEST_NETWORK';
if (
  process.env[variable] === undefined &&
  process.argv.some((word) =>
    /(^|=)(runs|rare|rare-alone)$|test\/(runs|rare|rare-alone)\//.test(word),
  ) &&
  spawnSync('unshare', [...ownNetwork, 'true']).status === 0
) {
  const { status } = spawnSync(
    'unshare',
    [...ownNetwork, process.execPath, ...process.argv.slice(1)],
    {
      stdio: 'inherit',
      env: { ...process.env, [variable]: 'own' },
    },
  );
  process.exit(status ?? 1);
}

// The files of a project share their modules: reading them anew for each takes longer than most tests.

/** They pin processes to cores and share the machine, where one run at a time may measure. On a busy one rounds are repeated. */
const oneAtATime = {
  fileParallelism: false,
  isolate: false,
  testTimeout: 240_000,
  hookTimeout: 300_000,
};

export default defineConfig({
  test: {
    // npm test starts vitest some thirty times; node_modules keeps what it has compiled.
    experimental: { fsModuleCache: true },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'lib/features/**/*.test.ts'],
          setupFiles: 'test/restore.ts',
          testTimeout: 30_000,
          isolate: false,
          maxWorkers: '100%',
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          ...oneAtATime,
        },
      },
      {
        test: {
          name: 'runs',
          include: ['test/runs/**/*.test.ts'],
          ...oneAtATime,
        },
      },
      {
        test: {
          name: 'rare',
          include: ['test/rare/**/*.test.ts'],
          ...oneAtATime,
        },
      },
      {
        test: {
          name: 'rare-alone',
          include: ['test/rare-alone/**/*.test.ts'],
          ...oneAtATime,
        },
      },
      {
        test: {
          name: 'alone',
          include: ['test/alone/**/*.test.ts'],
          ...oneAtATime,
        },
      },
    ],
  },
});
