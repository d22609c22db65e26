// What code in a stranger's config leaves and does to root's files; test/rare/hostile.test.ts has more ways.
import { it } from 'vitest';
import { expectHarmless } from '../fixtures/attack.ts';
import { useServers } from '../fixtures/servers.ts';

const test = useServers();

it('code that leaves a server ends with it, and deletes nothing', () =>
  expectHarmless(test, { server: 'h2o' }));
