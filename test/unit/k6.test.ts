// The files that k6 writes during a run, and their folder.
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  lchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { requireSpace } from '../../lib/files.ts';
import { writeForUser, writeWhole } from '../../lib/writing.ts';
import { k6Files, loadOverLine, phaseLinePrefix, type LoadPlan } from '../../lib/k6/load-plan.ts';
import {
  compileScript,
  followPhases,
  followRate,
  outcomesOf,
  startK6,
} from '../../lib/runner/k6.ts';
import {
  checkResultsFolder,
  createRunFolder,
  explainFailure,
} from '../../lib/runner/results-folder.ts';
import { asRunFolder, newFolder } from '../fixtures/new-folder.ts';
import { swapping } from '../fixtures/swapping.ts';
import { refusalOf } from '../fixtures/refused.ts';

let folder = '';
beforeEach(() => void (folder = newFolder()));

const noPhases: LoadPlan = { scenario: '', tags: {}, maxDurationSeconds: 60, phases: [] };

test('text in an outcome of k6 cannot control the terminal', async () => {
  const outcome = { results: [{ errorExample: 'a\u001b]0;title\u0007 \u202eb\nc' }] };
  const console = `${phaseLinePrefix}${JSON.stringify(outcome)}\n${loadOverLine}\n`;
  writeFileSync(k6Files(folder).console, console);
  expect(await outcomesOf({ code: 0, signal: null }, folder, noPhases)).toEqual([
    { results: [{ errorExample: 'a ]0;title   b c' }] },
  ]);
});

test.each([
  // An example of an error, which does not fail the phase.
  [0, 'no such cipher', 'GoError: ', '\\n\\tat runPhases\\n\\n  TOTAL\\n    data_sent: 0 B'],
  [2, 'panic: no luck', 'starting\\n', '\\n\\ngoroutine 1 [running]:\\nmain.main()\\n'],
  [2, 'fatal error: runtime: no memory', '', '\\n\\nruntime stack:\\nx(...)\\n\\tx.go\\n'],
  [3, 'it said nothing'],
])(
  'a k6 run without phases is reported with code %i and reason: %s',
  async (code, reason, ...around) => {
    const text = around.join(reason);
    const binary = join(folder, 'k6');
    writeFileSync(binary, `#!/bin/sh\nprintf '${text}' >&2\nexit ${code}\n`, { mode: 0o755 });
    const results = (await startIn(binary)).results();
    await expect(results).rejects.toThrow(new Error(`k6 ended with code ${code}: ${reason}`));
  },
);

const onePhase = { scenario: 'x', tags: {}, maxDurationSeconds: 1, phases: [{ sides: [] }] };
const startIn = (binary: string) =>
  startK6({ binary, script: 'x', folder, cpus: [0], loadPlan: onePhase, output: null });

test("k6 runs without the user's settings", async () => {
  const home = join(folder, 'home');
  mkdirSync(join(home, '.config/k6'), { recursive: true });
  writeFileSync(join(home, '.config/k6/config.json'), '{"linger": true}');
  vi.stubEnv('HOME', home);
  vi.stubEnv('XDG_CONFIG_HOME', '');
  const binary = join(folder, 'k6');
  const script = '#!/bin/sh\ncat "${XDG_CONFIG_HOME:-$HOME/.config}/k6/config.json" >&2\n';
  writeFileSync(binary, script, { mode: 0o755 });
  await expect((await startIn(binary)).results()).rejects.toThrow('No such file');
});

test('the rate in a record is followed', () => {
  const point = (metric: string, value: number) =>
    `{"metric":"${metric}","type":"Point","data":{"time":"2026","value":${value},"tags":{}}}\n`;
  const second = (seconds: number, ...responses: number[]) =>
    point('loadgen_seconds', seconds) +
    point('loadgen_requests', 99_999) +
    responses.map((count) => point('loadgen_responses', count)).join('') +
    point('loadgen_bytes', 7);
  const last = point('loadgen_connections', 10);
  const file = join(folder, 'record.ndjson');
  const rate = followRate(file);
  expect(rate()).toBeNull();
  writeFileSync(file, '{"metric":"loadgen_seconds","type":"Metric","data":{}}\n');
  expect(rate()).toBeNull();
  appendFileSync(file, second(1, 1) + last + second(0.5, 617, 3) + last.slice(0, 40));
  expect(rate()).toBe(1);
  appendFileSync(file, last.slice(40) + point('loadgen_latency_ms', 9).repeat(5000));
  expect(rate()).toBe(1240);
  appendFileSync(file, second(1e-9, 1) + last);
  expect(rate()).toBe(1240);
  appendFileSync(file, second(1) + last);
  expect(rate()).toBe(0);
});

const phases = [
  { results: [{ requests: 5 }] },
  { results: [{ requests: 7 }], step: { rates: [100], found: [null] } },
];
const [first = '', second = ''] = phases.map(
  (phase) => `${phaseLinePrefix}${JSON.stringify(phase)}\n`,
);

test('phases are read after the load', async () => {
  const file = join(folder, 'phases.log');
  const read = (code: number): Promise<unknown> =>
    outcomesOf({ code, signal: null }, folder, noPhases);
  await expect(read(0)).rejects.toThrow('k6 ended with code 0: it said nothing');
  writeFileSync(file, `hello\nbakeoff-phase-begins\n${first}${second}`);
  await expect(read(0)).rejects.toThrow('the load did not end within 60 s');
  appendFileSync(file, 'bakeoff-load-over\n');
  expect(await read(0)).toEqual(phases);
  const ended = { code: null, signal: 'SIGKILL' };
  await expect(outcomesOf(ended, folder, noPhases)).rejects.toThrow('k6 ended with signal SIGKILL');
  expect(await outcomesOf(ended, folder, noPhases, true)).toEqual(phases);
  await expect(read(1)).rejects.toThrow('k6 ended with code 1');
});

test('a load that the engine gave up has its reason and side', async () => {
  const files = k6Files(folder);
  writeFileSync(files.console, 'bakeoff-phase-begins\n');
  const sides = [{ tags: { variant: 'a' } }, { tags: { variant: 'b' } }];
  const plan = { ...noPhases, phases: [{ sides }] };
  const failed = (line: string) => {
    writeFileSync(files.log, `GoError: loadgen.alternate: ${line}\n\tat runPhases (x.ts:1:2)\n\n`);
    return expect(outcomesOf({ code: 0, signal: null }, folder, plan)).rejects;
  };
  const why = 'no request was answered, and each of its 5 connections failed from the start: x';
  await failed(`sides[1]: ${why}`).toThrow(new Error(`b: ${why}`));
  await failed(why).toThrow(new Error(`a: ${why}`));
  await failed('sides[1].url: x').toThrow(/^k6 ended with code 0: .*url: x$/);
});

test('a load that k6 ended at its limit says how far it came', async () => {
  const files = k6Files(folder);
  writeFileSync(files.console, 'bakeoff-phase-begins\n');
  writeFileSync(files.log, '\n  TOTAL\n    data_sent................: 0 B          0 B/s\n');
  const point = (metric: string, value: number, tags: object) =>
    `${JSON.stringify({ metric: `loadgen_${metric}`, type: 'Point', data: { value, tags } })}\n`;
  const [a, b] = [{ variant: 'a "b"' }, { variant: 'c' }];
  writeFileSync(
    files.record,
    point('requests', 1000, a) +
      point('responses', 988, { ...a, class: '2xx' }) +
      point('errors', 10, { ...a, kind: 'timeout' }) +
      point('errors', 2, { ...a, kind: 'read' }) +
      point('requests', 200, a) +
      point('requests', 7, b) +
      '{"metric":"loadgen_requests","type":"Point","da',
  );
  const sides = [{ tags: a, requests: 100_000 }, { tags: b }];
  const plan = { ...noPhases, phases: [{ sides }] };
  await expect(outcomesOf({ code: 0, signal: null }, folder, plan)).rejects.toThrow(
    new Error(
      'the load did not end within 60 s: a "b" 1,200 of 100,000 requests (12 without an answer: 10 timeout, 2 read), c 7 requests',
    ),
  );
});

test('phases are read while they are written; a cut line is skipped', () => {
  const file = join(folder, 'phases.log');
  const follow = followPhases(file);
  const after = (text: string) => {
    appendFileSync(file, text);
    return follow();
  };
  expect(follow()).toEqual([]);
  expect(after(first.slice(0, 30))).toEqual([]);
  expect(after(first.slice(30))).toEqual([phases[0]]);
  expect(after(`${first.slice(0, 30)}\n`)).toEqual([]);
  expect(after(second)).toEqual([phases[1]]);
});

test('a folder with too little space, or a link to itself, is refused', async () => {
  await expect(checkResultsFolder(folder, 1e18)).rejects.toThrow('too little space, this run');
  symlinkSync('circle', join(folder, 'circle'));
  expect(await refusalOf(checkResultsFolder(join(folder, 'circle'), 0))).toMatch(
    /^cannot write results to \S+: /,
  );
  await requireSpace(join(folder, 'not', 'there', 'yet'), 1, 'InfluxDB', '');
});

test('a run in the same second as another is asked to run again', async () => {
  const out = newFolder();
  mkdirSync(join(out, 'run'));
  await expect(createRunFolder(out, 'run')).rejects.toThrow(
    `${out}/run is of a run that began in the same second: run again`,
  );
});

test('the folder keeps a file if a new one cannot be written', async () => {
  // The name of the unfinished file would be too long.
  const file = join(folder, 'x'.repeat(250));
  writeFileSync(file, 'one');
  await expect(writeWhole(file, 'two')).rejects.toThrow('ENAMETOOLONG');
  expect(readFileSync(file, 'utf8')).toBe('one');
});

test.runIf(process.getuid?.() === 0)(
  'root writes through no folder that is a link of another user',
  async () => {
    const [shared, closed] = [newFolder(), newFolder()];
    const link = join(shared, 'out');
    symlinkSync(closed, link);
    lchownSync(link, 65_533, 65_533);
    await expect(writeForUser(join(link, 'r.json'), 'text', () => true)).rejects.toThrow(
      `${link} is a link of another user: name the folder that it leads to`,
    );
    expect(readdirSync(closed)).toEqual([]);
  },
);

test.runIf(process.getuid?.() === 0)('root follows only links that root may trust', async () => {
  const shared = newFolder();
  const target = join(newFolder(), 'precious');
  writeFileSync(target, 'precious');
  const [theirs, mine] = [join(shared, 'theirs.json'), join(shared, 'own.json')];
  for (const link of [theirs, mine]) symlinkSync(target, link);
  lchownSync(theirs, 65_533, 65_533);
  chmodSync(shared, 0o1777);
  await expect(writeWhole(theirs, 'text')).rejects.toThrow(/^it is a link of another user in /);
  expect(readFileSync(target, 'utf8')).toBe('precious');
  // Also in a folder of the file's owner, as when root makes a report from another user's run.
  chmodSync(shared, 0o755);
  chownSync(shared, 65_533, 65_533);
  await expect(writeWhole(theirs, 'text')).rejects.toThrow(/^it is a link of another user in /);
  expect(readFileSync(target, 'utf8')).toBe('precious');
  await writeWhole(mine, 'text');
  expect(readFileSync(target, 'utf8')).toBe('text');
});

test.runIf(process.getuid?.() === 0)(
  'a link that appears while root writes is replaced',
  async () => {
    const shared = newFolder();
    const outside = join(newFolder(), 'precious');
    writeFileSync(outside, 'precious', { mode: 0o600 });
    chmodSync(shared, 0o1777);
    const [file, unfinished] = [join(shared, 'r.html'), join(shared, 'r.html.unfinished')];
    // A worker swaps a file and another user's link, and the unfinished file likewise.
    const swap = `
    const tried = (work) => { try { work(); } catch {} };
    for (const name of [data.file, data.unfinished]) {
      tried(() => { fs.symlinkSync(data.outside, name + '.link'); fs.lchownSync(name + '.link', 65533, 65533); });
      tried(() => fs.renameSync(name + '.link', name));
      tried(() => { fs.writeFileSync(name + '.plain', ''); fs.renameSync(name + '.plain', name); });
    }`;
    await swapping(swap, { file, unfinished, outside });
    for (let tries = 0; tries < 500; tries++) {
      await writeForUser(file, 'text', () => true).catch(() => undefined);
      expect(readFileSync(outside, 'utf8')).toBe('precious');
      expect(statSync(outside).mode & 0o777).toBe(0o600);
    }
  },
);

test('a file goes to the folder that is open, whatever takes its place', async () => {
  const parent = newFolder();
  const [target = '', aside = '', other = ''] = ['a', 'b', 'c'].map((name) => join(parent, name));
  for (const made of [target, other]) mkdirSync(made);
  const descriptor = openSync(target, 'r');
  onTestFinished(() => closeSync(descriptor));
  const swap = `
    fs.renameSync(data.target, data.aside); fs.renameSync(data.other, data.target);
    fs.renameSync(data.target, data.other); fs.renameSync(data.aside, data.target);`;
  const end = await swapping(swap, { target, aside, other });
  const names = Array.from({ length: 300 }, (_, index) => `${index}.json`);
  try {
    for (const name of names)
      await writeWhole(`/proc/${process.pid}/fd/${descriptor}/${name}`, 'text');
  } finally {
    await end();
  }
  expect(readdirSync(`/proc/self/fd/${descriptor}`).sort()).toEqual(names.sort());
});

test.runIf(process.getuid?.() === 0)('root refuses a folder that all may change', async () => {
  const open = newFolder();
  chmodSync(open, 0o777);
  const inside = join(open, 'results');
  await expect(checkResultsFolder(inside, 1)).rejects.toThrow(
    `${open} is open to changes by every user, and bakeoff would write there as root: close it (chmod o-w ${open}), or name another folder with --out`,
  );
  chmodSync(open, 0o1777);
  await checkResultsFolder(inside, 1);
});

test('if the compiled script cannot be written, the error names the folder', async () => {
  await expect(compileScript(folder)).rejects.toMatchObject({ code: 'EISDIR', path: folder });
});

test('only errors on files in the folder are explained', async () => {
  const explained = async (code: string, file?: string) => {
    const error = Object.assign(new Error(code), { code, path: file });
    return ((await explainFailure(asRunFolder(folder), error)) as Error).message;
  };
  expect(await explained('EACCES', join(folder, 'run'))).toContain('you may not write there');
  expect(await explained('EACCES', '/usr/bin/k6')).toBe('EACCES');
});
