import { defineConfig } from 'vitest/config';

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
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
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
          name: 'alone',
          include: ['test/alone/**/*.test.ts'],
          ...oneAtATime,
        },
      },
    ],
  },
});
