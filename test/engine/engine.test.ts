// The tests of the load engine, which npm run test:all runs with the race detector instead (test/rare-sources/race.test.ts).
import { test } from 'vitest';
import { runGo } from '../go.ts';

test('go test', () => runGo(['test', '-vet=off', './engine']));
