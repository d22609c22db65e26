// A whole run whose database answers pings, and hangs over queries from its first point on.
import { expect, test } from 'vitest';
import { influxProxy } from '../fixtures/influx-proxy.ts';
import {
  keptRounds,
  newOut,
  readResult,
  startScenario,
  storeOf,
  useHome,
} from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'influxd']);

test('it costs the run none of its figures, and is named once', async () => {
  let hangs = false;
  const url = await influxProxy((await storeOf(home)).influx, (_, path) => {
    hangs ||= path.startsWith('/write');
    return hangs && path.startsWith('/query') ? 'hang' : 'pass';
  });
  const out = newOut();
  const run = startScenario(
    [
      'nginx-open-file-cache',
      '--rounds',
      '2',
      '--duration',
      '500ms',
      '--influx',
      url,
      '--out',
      out,
    ],
    home.env,
  );
  expect(await run.ended, run.stderr()).toBe(0);
  const result = readResult(out);
  expect(result.state).toBe('complete');
  expect(keptRounds(result)).toHaveLength(2);
  expect(result.warnings.filter((warning) => warning.includes(url))).toEqual([
    `InfluxDB at ${url} does not answer: it hangs`,
  ]);
});
