import { execFileSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { hasCertificate, machineCertificate } from '../../lib/servers/certificate.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { realPath, script, testMachine, type TestMachine } from '../fixtures/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

const never = new AbortController().signal;

beforeAll(async () => {
  await ensureTools(['openssl']);
}, 120_000);

const machineWith = (...commands: string[]) => testMachine({ commands: ['flock', ...commands] });
const daysLeft = (pem: string | Buffer) =>
  (Date.parse(new X509Certificate(pem).validTo) - Date.now()) / (24 * 3600 * 1000);
const folderOf = (machine: TestMachine) => join(machine.bakeoffFolder, 'tls');

test.runIf(process.getuid?.() === 0)("what root makes under sudo is the caller's", () => {
  const home = newFolder();
  chownSync(home, 12345, 12345);
  const folder = join(home, 'tls');
  const owners = () => readdirSync(folder).map((name) => statSync(join(folder, name)).uid);
  const makes = `import { machineCertificate } from './lib/servers/certificate.ts';
    await machineCertificate(new AbortController().signal);`;
  const makeIt = () =>
    execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', makes], {
      cwd: projectRoot,
      env: { ...process.env, SUDO_UID: '12345', SUDO_GID: '12345', BAKEOFF_HOME: home },
    });
  makeIt();
  expect(owners()).toEqual([12345, 12345]);
  // As an earlier version left it.
  chownSync(join(folder, 'localhost.pem'), 0, 0);
  makeIt();
  expect(owners()).toEqual([12345, 12345]);
});

test('it is created once: RSA 2048, for this machine, readable only by the owner', async () => {
  const machine = machineWith('openssl');
  expect(await hasCertificate(machine)).toBe(false);
  const file = await machineCertificate(never, machine);
  expect(await hasCertificate(machine)).toBe(true);
  expect(file).toBe(join(folderOf(machine), 'localhost.pem'));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const pem = readFileSync(file);
  const certificate = new X509Certificate(pem);
  expect(certificate.publicKey).toMatchObject({
    asymmetricKeyType: 'rsa',
    asymmetricKeyDetails: { modulusLength: 2048 },
  });
  expect(certificate.checkPrivateKey(createPrivateKey(pem))).toBe(true);
  expect(certificate.checkIssued(certificate)).toBe(true);
  expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(certificate.checkHost('localhost')).toBe('localhost');
  expect(certificate.checkHost('example.com')).toBeUndefined();
  expect(daysLeft(pem)).toBeCloseTo(3650, 0);
  expect(readdirSync(folderOf(machine)).sort()).toEqual(['localhost.pem', 'lock']);

  script(machine, 'openssl', 'exit 1');
  expect(await machineCertificate(never, machine)).toBe(file);
  expect(readFileSync(file).equals(pem)).toBe(true);
});

test('simultaneous first uses get the same certificate', async () => {
  const machine = machineWith();
  script(
    machine,
    'openssl',
    `echo made >>${machine.folder}/made; exec ${realPath('openssl')} "$@"`,
  );
  const made = async () => readFileSync(await machineCertificate(never, machine), 'utf8');
  const files = await Promise.all([1, 2, 3, 4, 5].map(made));
  expect(new Set(files).size).toBe(1);
  expect(readFileSync(join(machine.folder, 'made'), 'utf8')).toBe('made\n');
});

const certificate = /-----BEGIN CERTIFICATE-----[^]*/;
test.each<[string, (file: string) => string]>([
  ['that is about to end', (file) => madeFor(file, 29)],
  [
    'of another key',
    (file) =>
      madeFor(file, 3650).replace(certificate, '') + certificate.exec(madeFor(file, 3650))?.[0],
  ],
  ['that is damaged', () => 'half a'],
])('a certificate %s is replaced', async (_, textFor) => {
  const machine = machineWith('openssl');
  mkdirSync(folderOf(machine), { recursive: true });
  const file = join(folderOf(machine), 'localhost.pem');
  const before = textFor(file);
  writeFileSync(file, before);
  // The file of a process that was killed while creating a certificate.
  writeFileSync(`${file}.unfinished`, 'half a');
  expect(await machineCertificate(never, machine)).toBe(file);
  const after = readFileSync(file, 'utf8');
  expect(after).not.toBe(before);
  expect(daysLeft(after)).toBeCloseTo(3650, 0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(existsSync(`${file}.unfinished`)).toBe(false);
});

function madeFor(file: string, days: number) {
  rmSync(file, { force: true });
  // Much faster to create than an RSA key.
  const key = '-newkey ec -pkeyopt ec_paramgen_curve:P-256';
  const args = `req -x509 ${key} -nodes -days ${days} -subj /CN=localhost -keyout`;
  execFileSync('openssl', [...args.split(' '), file, '-out', file], { stdio: 'ignore' });
  return readFileSync(file, 'utf8');
}

test('if the folder cannot be created, one line names it', async () => {
  const machine = machineWith('openssl');
  writeFileSync(machine.bakeoffFolder, 'a file');
  const kept = `the certificate for TLS cannot be kept in ${folderOf(machine)}`;
  expect(await refusalOf(machineCertificate(never, machine))).toMatch(
    new RegExp(`^${kept}: ENOTDIR.*; BAKEOFF_HOME names another folder$`),
  );
});

test('a failure of openssl is a one-line error', async () => {
  const machine = machineWith();
  const failing = script(machine, 'openssl', 'echo a >&2; echo "req: no -addext" >&2; exit 1');
  await expect(machineCertificate(never, machine)).rejects.toThrow(
    `${failing} could not make a certificate (req: no -addext): set OPENSSL_BIN to OpenSSL 1.1.1 or newer`,
  );
  expect(readdirSync(folderOf(machine))).toEqual(['lock']);
});

test('an abort ends the wait for another process that creates the certificate', async () => {
  const machine = machineWith('sleep');
  script(machine, 'openssl', 'exec sleep 60');
  const controller = new AbortController();
  // Either process may end first.
  const both = [1, 2].map(() => machineCertificate(controller.signal, machine));
  const ended = Promise.allSettled(both);
  controller.abort(new Error('enough'));
  const aborted = { status: 'rejected', reason: { message: 'enough' } };
  expect(await ended).toMatchObject([aborted, aborted]);
});
