// A headless Chromium for tests, if installed.
import { chromium, type Browser } from 'playwright-core';
import { find, isExecutableFile, thisMachine } from '../lib/setup/machine.ts';
import { toolVariable } from '../lib/setup/tools.ts';

/** CHROMIUM_BIN, or `chromium` on PATH; undefined without Chromium. `npm test` installs Chromium first, if possible. */
export async function findChromium(): Promise<string | undefined> {
  const named = process.env[toolVariable('chromium')];
  if (named !== undefined && named !== '')
    return (await isExecutableFile(named)) ? named : undefined;
  return find('chromium', thisMachine());
}

export function startChromium(executablePath: string): Promise<Browser> {
  // Chromium's sandbox does not work as root; tests open only trusted files.
  return chromium.launch({
    executablePath,
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
}
