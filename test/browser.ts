// A headless Chromium for tests, where there is one.
import { chromium, type Browser } from 'playwright-core';
import { find, isExecutableFile, thisMachine } from '../lib/setup/machine.ts';
import { toolVariable } from '../lib/setup/tools.ts';

/** CHROMIUM_BIN, or `chromium` on PATH. Undefined when there is none: `npm test` gets one before it starts, if it can. */
export async function findChromium(): Promise<string | undefined> {
  const named = process.env[toolVariable('chromium')];
  if (named !== undefined && named !== '')
    return (await isExecutableFile(named)) ? named : undefined;
  return find('chromium', thisMachine());
}

export function startChromium(executablePath: string): Promise<Browser> {
  // Root may not have Chromium's own sandbox; what is opened here are our own files.
  return chromium.launch({
    executablePath,
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
}
