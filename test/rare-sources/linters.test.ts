// Linters of Go code and workflows. Compiling them takes minutes. A module of their own keeps their dependencies out of the k6 build.
import { test } from 'vitest';
import { runGo, quickly, withoutK6 } from '../go.ts';

const tool = ['tool', '-modfile=../test/linters/go.mod'];

test('staticcheck', () => runGo([...tool, 'staticcheck', ...withoutK6], quickly));

// actionlint would also run linters for scripts if they are on PATH.
test('actionlint', () => runGo([...tool, 'actionlint', '-shellcheck=', '-pyflakes='], quickly));
