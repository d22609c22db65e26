// Hostile code in an untrusted config: leftover processes and attacks on root's files; more cases in test/rare/hostile.test.ts.
import { it } from 'vitest';
import { expectHarmless } from '../fixtures/attack.ts';
import { useServers } from '../fixtures/servers.ts';

const test = useServers();

it('code that escapes a server ends with the server, and deletes nothing', () =>
  expectHarmless(test, { server: 'h2o' }));
