// Arguments of calibrate that do not go together.
import { expect, test } from 'vitest';
import { additions } from '../../cli/main.ts';
import { calibrateCommand } from './command.ts';

test.each([
  ['wrk', /^calibrate takes no words but its flags: leave out "wrk"/],
  [
    '--only waits-nothing',
    /^--only waits-nothing: no server's name begins so\. They are "waits 50 ms", /,
  ],
  ['--blind 0', /^--blind 0: /],
  ['--blind 3 --disturb 3', /^--blind, --disturb: name one of them$/],
  ['--blind 3 --quick', /^--quick: a part of the table, .*leave it out$/],
  ['--seed 3', /^--seed: belongs to --blind, --disturb or --effect/],
  ['--resume', /^--resume: belongs to --blind, --disturb or --effect/],
  ['--effect open-file-cach', /"open-file-cach": did you mean open-file-cache\?$/],
  ['--effect tcp-nopush --pairs 0', /^--pairs 0: give a whole number from 1 to 1000$/],
  ['--effect tcp-nopush --peers none', /^--peers none: --effect needs another generator/],
  ['--effect tcp-nopush --blind 3', /^--blind, --effect: name one of them$/],
  ['--pairs 3', /^--pairs: belongs to --effect: name one$/],
  ['--peers wrk,h2lod', /^there is no generator "h2lod": did you mean h2load\?$/],
  ['--record /dev/full', /^--record \/dev\/full cannot be written: .*: name another folder$/],
  ['--effect tcp-nopush --peers wrk --record /proc/x', /^--record \/proc\/x cannot be written: /],
  ['--cost --peers none', /^--peers none: --cost needs another generator: name one$/],
  ['--cost --only HTTP/3', /^--only HTTP\/3: no load's name begins so\. They are "HTTP\/1\.1", /],
  ['--peers wrk,', /^--peers: name generators, with commas between$/],
])('calibrate %s is refused', async (line, message) => {
  const refused = { message: expect.stringMatching(message), exitCode: 2 };
  await expect(calibrateCommand(line.split(' '), additions)).rejects.toMatchObject(refused);
});
