// The connection to an agent on another host, and what it says.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { nginx } from '../../scenario/index.ts';
import { agentOf, agentThat, factsAt } from '../../../test/fixtures/fake-agent.ts';
import { listening } from '../../../test/fixtures/listening.ts';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { refusalOf } from '../../../test/fixtures/refused.ts';
import { keepScript, openAgent } from './agent-connection.ts';
import { measureLink } from './link.ts';
import { wanted } from './messages.ts';
import { openServerHost } from './server-host.ts';
import { addressesOf, connect } from './ssh.ts';

const keeping = (cache: string, ...file: Parameters<typeof keepScript>) =>
  spawn('sh', ['-c', keepScript(...file)], {
    env: { PATH: process.env.PATH, XDG_CACHE_HOME: cache },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });

test('a file is cached once; month-old files are removed', async () => {
  const cache = newFolder();
  const longAgo = Date.now() / 1000 - 31 * 24 * 3600;
  for (const name of ['agent-old', 'agent-used', 'mine']) {
    const folder = join(cache, 'bakeoff', name);
    mkdirSync(join(folder, 'lib'), { recursive: true });
    writeFileSync(join(folder, 'lib/file'), 'text');
    utimesSync(folder, longAgo, longAgo);
  }
  const kept = async (input: string, ...file: Parameters<typeof keepScript>) => {
    const child = keeping(cache, ...file);
    child.stdin.on('error', () => undefined).end(input);
    return ((await once(child, 'close')) as unknown[])[0];
  };
  // A cached file is used and not sent again.
  expect(await kept('', 'agent-used/lib', 'file', 4)).toBe(0);
  expect(readdirSync(join(cache, 'bakeoff'))).toHaveLength(3);
  expect(await kept('k666', 'agent-also', 'k6', 4)).toBe(0);
  expect(readdirSync(join(cache, 'bakeoff')).sort()).toEqual(['agent-also', 'agent-used', 'mine']);
  expect(readFileSync(join(cache, 'bakeoff/agent-also/k6'), 'utf8')).toBe('k666');
  expect(await kept('k6', 'agent-fresh', 'k6', 4)).toBe(91);
  expect(readdirSync(join(cache, 'bakeoff/agent-fresh'))).toEqual([]);
  // A file that other users may change is not run.
  chmodSync(join(cache, 'bakeoff/agent-used/lib'), 0o777);
  expect(await kept('', 'agent-used/lib', 'file', 4)).toBe(94);
  symlinkSync(join(cache, 'bakeoff/agent-also'), join(cache, 'bakeoff/agent-new'));
  expect(await kept('text', 'agent-new', 'file', 4)).toBe(94);
  // They could put another cache in its place.
  chmodSync(cache, 0o777);
  expect(await kept('', 'agent-also', 'k6', 4)).toBe(94);
  chmodSync(cache, 0o1777);
  expect(await kept('', 'agent-also', 'k6', 4)).toBe(0);
});

test.runIf(process.getuid?.() === 0).each([
  ['', '', 0],
  ['daemon', '', 0],
  ['alice', '', 94],
  ['', 'drwxrwxr-x+', 94],
])(
  "a cache in a folder of the user's group, with the members '%s' and '%s'",
  async (members, mode, code) => {
    const [cache, programs] = [newFolder(), newFolder()];
    chownSync(cache, 0, 1);
    chmodSync(cache, 0o775);
    const answers = {
      id: 'case $1 in -u) echo 0;; *) echo daemon;; esac',
      getent: `echo daemon:x:1:${members}`,
      ...(mode === '' ? {} : { ls: `echo ${mode}` }),
    };
    for (const [name, script] of Object.entries(answers))
      writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    vi.stubEnv('PATH', `${programs}:${process.env.PATH}`);
    const child = keeping(cache, 'agent-new', 'k6', 4);
    child.stdin.on('error', () => undefined).end('text');
    expect(((await once(child, 'close')) as unknown[])[0]).toBe(code);
  },
);

test.each(['SIGHUP', 'SIGTERM'])(
  'a transfer ended by %s leaves no partial file',
  async (signal) => {
    const cache = newFolder();
    const child = keeping(cache, 'agent-new', 'k6', 9);
    child.stdin.write('k6');
    const folder = join(cache, 'bakeoff/agent-new');
    await vi.waitFor(() => expect(readdirSync(folder)).toHaveLength(1), 10_000);
    process.kill(-(child.pid as number), signal);
    child.stdin.destroy(); // Like ssh, because the shell may not have started the reading process yet.
    await once(child, 'close');
    expect(readdirSync(folder)).toEqual([]);
  },
);

async function sshWith(text: string) {
  vi.stubEnv('BAKEOFF_SSH', text);
  const connection = await connect('web1', 'true');
  const lines: string[] = [];
  connection.onLine((line) => lines.push(line));
  await connection.ended;
  return lines.join(' ');
}

test('BAKEOFF_SSH sets the ssh command', async () => {
  const home = newFolder(' with a blank');
  for (const name of ['ssh', 'own'])
    writeFileSync(join(home, name), `#!/bin/sh\necho ${name} "$@"\n`, { mode: 0o755 });
  vi.stubEnv('HOME', home);
  vi.stubEnv('PATH', `${home}:${process.env['PATH'] ?? ''}`);
  expect(await sshWith('~/own -i ~/key -o a=~/b')).toMatch(`own -i ${home}/key -o a=~/b -T `);
  for (const empty of ['', ' '])
    expect(await sshWith(empty)).toMatch(/^ssh -T .* -- web1 exec sh -c 'true'$/);
  const message = expect.stringMatching(/^BAKEOFF_SSH: the command: \$HOME needs a shell/);
  await expect(sshWith('ssh -i $HOME/key')).rejects.toMatchObject({ exitCode: 2, message });
});

test('an agent cannot report exit code 0, and its text cannot control the terminal', async () => {
  agentOf(
    { told: 'all \u001b]0;title\u0007 \u202ewell' },
    { told: 5 },
    { told: { toString: 5, valueOf: 5 } },
    { id: 1, problem: 'no', exitCode: 0 },
  );
  const logged = vi.spyOn(console, 'error').mockReturnValue();
  onTestFinished(() => logged.mockRestore());
  await expect(openAgent('web1')).rejects.toMatchObject({ exitCode: 1, message: 'web1: no' });
  expect(logged.mock.calls).toEqual([['web1: all  ]0;title   well']]);
});

test.each([
  [null, 'has to be an object'],
  [factsAt(7), 'address has to be a text'],
  [factsAt('::1'), 'address "::1" has to be the IPv4 address of a host'],
  [factsAt('0.0.0.0'), 'address "0.0.0.0" has to be the IPv4 address of a host'],
  [{ ...factsAt('192.0.2.1'), processors: { cores: [], quota: null } }, /cores has to have a core/],
])('invalid facts from an agent %#', async (answer, problem) => {
  agentOf({ id: 1, answer });
  const message = await refusalOf(openAgent('web1'));
  expect(message).toMatch(/^web1: bakeoff's agent there gives no right answer to "facts": [^\n]+$/);
  expect(message).toMatch(problem);
});

const ownAddresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
const otherOwn = ownAddresses.find(({ family, internal }) => family === 'IPv4' && !internal);

test.each(['127.0.0.1', '127.9.9.9', ...(otherOwn === undefined ? [] : [otherOwn.address])])(
  'a host that says that its address is one of this machine: %s',
  async (address) => {
    agentOf({ id: 1, answer: factsAt(address) });
    expect(await refusalOf(openAgent('192.0.2.1'))).toBe(
      `192.0.2.1 says that its address is ${address}, which is one of this machine: nothing else than the host is loaded`,
    );
  },
);

test('a host at another address, and this machine by one of its addresses', async () => {
  for (const address of ['192.0.2.1', ...(otherOwn === undefined ? [] : [otherOwn.address])]) {
    agentOf({ id: 1, answer: factsAt(address) });
    const agent = await openAgent(address);
    expect(agent.facts.address).toBe(address);
    await agent.close();
  }
});

test.each([
  [
    { origin: 'http://127.0.0.1:80' },
    /is at 192\.0\.2\.1, and says that its server is at http:\/\/127\./,
  ],
  [{ origin: 'nowhere' }, /no right answer to "start": origin "nowhere" has to be http:/],
  [{ origin: 'http://192.0.2.1:80@127.0.0.1:80' }, /no right answer to "start": origin /],
])('an invalid started server from an agent: %j', async (wrong, problem) => {
  const page = { status: 200, bytes: 1, hash: '', encoding: '', type: '', location: '' };
  const about = { id: 1, name: 'nginx', version: '1', origin: 'http://192.0.2.1:80', workers: 1 };
  const started = {
    ...about,
    redirections: [],
    upstreams: [],
    runsCode: false,
    answer: page,
    ...wrong,
  };
  const answers = [{ answer: factsAt('192.0.2.1') }, {}, { answer: started }];
  const lines = answers.map((answer, index) => JSON.stringify({ id: index + 1, ...answer }));
  agentThat(lines.map((line) => `cat <<'END'\n${line}\nEND\nread -r asked`).join('\n'));
  const host = await openServerHost('web1');
  onTestFinished(host.close);
  const options = { binaries: {}, folder: '/', cpus: [0], workers: 1 };
  const starting = host.start(nginx(['base'], { workers: 1 }), {
    ...options,
    page: { docroot: 'small', path: '/' },
  });
  expect(await refusalOf(starting)).toMatch(problem);
});

test('an agent that reports endlessly', async () => {
  agentThat(`exec yes '{"told":"${'x'.repeat(1000)}"}'`);
  const logged = vi.spyOn(console, 'error').mockReturnValue();
  onTestFinished(() => logged.mockRestore());
  expect(await refusalOf(openAgent('web1'))).toBe(
    "web1: bakeoff's agent there prints endless lines",
  );
  expect(logged.mock.calls).toHaveLength(100);
});

test('an agent can report versions of known servers only; errors there become one line', async () => {
  const asked = (...answers: unknown[]) => {
    const lines = answers.map((answer, index) =>
      JSON.stringify({ id: index + 1, ...(answer as object) }),
    );
    agentThat(lines.map((line) => `cat <<'END'\n${line}\nEND\nread -r asked`).join('\n'));
  };
  const toolsOf = async () => {
    const host = await openServerHost('web1');
    onTestFinished(host.close);
    return host.tools(['nginx'], false, new AbortController().signal);
  };
  const facts = { answer: factsAt('192.0.2.1') };
  const versions = { nginx: '1\u202e.2', '\u001b]0;title\u0007': 'x' };
  asked(facts, { answer: { binaries: { nginx: '/nginx' }, versions } });
  expect(await toolsOf()).toEqual({ binaries: { nginx: '/nginx' }, versions: { nginx: '1 .2' } });
  asked(facts, { died: 7, how: 'x'.repeat(1e6) });
  const agent = await openAgent('web1');
  onTestFinished(agent.close);
  const died = agent.died(7);
  agent.ask('clock', undefined).catch(() => undefined);
  expect(await died).toBe('x'.repeat(4000));
});

test("an agent that never lists the host's servers", async () => {
  agentOf({ id: 1, answer: factsAt('192.0.2.1') });
  const host = await openServerHost('web1');
  onTestFinished(host.close);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const asked = refusalOf(host.tools(['nginx'], false, new AbortController().signal));
  await vi.advanceTimersByTimeAsync(120_000);
  expect(await asked).toBe("web1: bakeoff's agent there does not answer within 120 s");
});

test('a host that requests a file repeatedly gets it once', async () => {
  const program = join(newFolder(), 'ssh');
  const asking = `#!/bin/sh\nprintf '${`${wanted}\\n`.repeat(3)}all\\n'\nexec wc -c\n`;
  writeFileSync(program, asking, { mode: 0o755 });
  vi.stubEnv('BAKEOFF_SSH', program);
  const connection = await connect('web1', 'true');
  const others: string[] = [];
  const file = Buffer.from('four');
  connection.onLine((line) => {
    if (!connection.sendsIfWanted(line, file)) others.push(line);
    if (line === 'all') void connection.close();
  });
  await connection.ended;
  expect(others).toEqual(['all', '4']);
});

test('an agent with endless stderr output, and an agent with a very long line', async () => {
  agentThat('yes complaint | head -c 100000000 >&2; exit 3');
  expect(await refusalOf(openAgent('web1'))).toBe(
    'the connection to web1 ended with code 3: complaint',
  );
  const long = `head -c 5000000 /dev/zero | tr '\\0' x`;
  agentThat(`printf '{"id":1,"answer":"'; ${long}; printf '"}\\n'; cat`);
  expect(await refusalOf(openAgent('web1'))).toMatch(/^web1 prints an endless line: /);
  const facts = JSON.stringify({ id: 1, answer: factsAt('192.0.2.1') });
  agentThat(
    `echo '${facts}'; read -r asked; printf '{"id":2,"answer":"'; ${long}; printf '"}\\n'; cat`,
  );
  const samples = async (mostBytes: number) => {
    const agent = await openAgent('web1');
    onTestFinished(agent.close);
    return refusalOf(agent.ask('watched', { server: 1 }, { mostBytes }));
  };
  expect(await samples(4e6)).toMatch(/^web1 prints an endless line: /);
  expect(await samples(6e6)).toMatch('gives no right answer to "watched"');
  agentThat(`echo '${facts}'; read -r asked; echo '{"id":2,"answer":[]}'; cat`);
  expect(await samples(4e6)).toMatch('gives no right answer to "watched"');
});

test.each([
  [
    'Host key verification failed.',
    "the host key of web1 is not known here: connect once by hand (SSH -p 2222 -i 'my key' web1) and compare it",
  ],
  [
    '@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key for [web1]:2222 has changed and you have requested strict checking.\nHost key verification failed.',
    "the host key of web1 has changed: somebody may be intercepting the connection; if you know why it changed, remove the old one (ssh-keygen -R '[web1]:2222') and connect once by hand (SSH -p 2222 -i 'my key' web1)",
  ],
  [
    'me@web1: Permission denied (publickey).',
    "web1 refuses this user's keys: make this work without a password (ssh-copy-id): SSH -p 2222 -i 'my key' web1",
  ],
])('a command to type has the port and the key: %s', async (stderr, line) => {
  const program = join(newFolder(), 'ssh');
  writeFileSync(program, `#!/bin/sh\ncat >&2 <<'END'\n${stderr}\nEND\nexit 255\n`, { mode: 0o755 });
  vi.stubEnv('BAKEOFF_SSH', `${program} -p 2222 -i 'my key'`);
  const { ended } = await connect('web1', 'true');
  expect((await ended).replaceAll(program, 'SSH')).toBe(line);
});

test('addresses of a host', async () => {
  const program = join(newFolder(), 'ssh');
  vi.stubEnv('BAKEOFF_SSH', program);
  expect(await addressesOf('me@192.0.2.1')).toEqual(['192.0.2.1']);
  const script = '#!/bin/sh\n[ "$*" = "-G -- me@web1" ] && echo "user a\nhostname 192.0.2.7"\n';
  writeFileSync(program, script, { mode: 0o755 });
  expect(await addressesOf('me@web1')).toEqual(['192.0.2.7']);
  expect(await addressesOf('nowhere.invalid')).toEqual([]);
});

test.each(['resetAndDestroy', 'destroy'] as const)('an interrupted connection: %s', async (cut) => {
  const server = createServer((socket) => {
    // The peer echoes small messages and closes on bulk data.
    socket.on('data', (data) => (data.length > 1 ? socket[cut]() : socket.write(data)));
    socket.write('token');
  });
  const peer = { address: '127.0.0.1', port: await listening(server) };
  await expect(measureLink(peer, 'other')).rejects.toThrow('another machine answers there');
  await expect(measureLink(peer, 'token')).rejects.toThrow(
    /ECONNRESET|EPIPE|the connection was cut/,
  );
});
