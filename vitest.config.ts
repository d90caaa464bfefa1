import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/property-seed.ts'],
    // Processes, not threads: a test of the addon that ends a process must not end the others.
    pool: 'forks',
    // Most of their time is waiting for other processes, so the core that vitest leaves free by default is used too.
    maxWorkers: availableParallelism(),
    // Generous: no timing decides a test, and a busy machine is no failure.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    server: {
      deps: {
        // What is shipped is tested as Node loads it, not as vite would transform it.
        external: [/\/dist\//, /\.node$/],
      },
    },
  },
});
