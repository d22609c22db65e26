// The time that errors in h2o's YAML take.
import path from 'node:path';
import { parseDocument, type Document } from 'yaml';
import { expect, it, vi } from 'vitest';
import { readOwnConfig } from '../../lib/servers/index.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { refusalOf } from '../fixtures/refused.ts';

vi.mock(import('yaml'), async (original) => {
  const yaml = await original();
  return { ...yaml, parseDocument: vi.fn(yaml.parseDocument) as typeof yaml.parseDocument };
});

it('an h2o config with many errors is refused without a stack trace for each', async () => {
  const before = Error.stackTraceLimit;
  const folder = await ownFiles({ 'own.conf': 'listen: 80\nhosts: [] ] ] ]' });
  expect(await refusalOf(readOwnConfig(path.join(folder, 'own.conf')))).toContain('own.conf:2: ');
  const document = vi.mocked(parseDocument).mock.results[0]?.value as Document;
  expect(document.errors.length).toBeGreaterThan(1);
  for (const { stack, message } of document.errors)
    expect(stack).toBe(`YAMLParseError: ${message}`);
  expect(Error.stackTraceLimit).toBe(before);
});
