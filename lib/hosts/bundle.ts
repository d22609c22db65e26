// Makes the agent: one file that needs Node alone, with the shipped configs in it.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { bundledForNode } from '../setup/bundle.ts';
import { projectRoot } from '../setup/paths.ts';

export interface Bundle {
  text: Buffer;
  /** Of the text: agents of different versions lie side by side. */
  hash: string;
}

/** Throws the file system's error. */
export async function bundleAgent(): Promise<Bundle> {
  const text = Buffer.from(await bundledForNode(new URL('agent.ts', import.meta.url), { shippedFiles: await shippedFiles() }));
  return { text, hash: createHash('sha256').update(text).digest('hex').slice(0, 16) };
}

/** server-configs/, by path, in base64. */
async function shippedFiles(): Promise<Record<string, string>> {
  const folder = 'server-configs';
  const found = await readdir(path.join(projectRoot, folder), { recursive: true, withFileTypes: true });
  const files = found.filter((one) => one.isFile()).map((one) => path.relative(projectRoot, path.join(one.parentPath, one.name))).sort();
  return Object.fromEntries(await Promise.all(files.map(async (name) => [name, (await readFile(path.join(projectRoot, name))).toString('base64')])));
}
