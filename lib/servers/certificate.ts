// The machine's certificate for TLS, made at first use.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmod, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UserError } from '../errors.ts';
import { withLock } from '../machine/locks.ts';
import { inOwnFolder, makeOwnFolder } from '../files.ts';
import { thisMachine, type Machine } from '../setup/machine.ts';
import { lastLine, leaveToCaller, run } from '../process.ts';
import { ensureTools } from '../setup/tools.ts';

/** The validity of the certificate in article 002. */
const validDays = 3650;
/** A certificate is renewed this long before its end: no run takes longer. */
const renewMs = 30 * 24 * 3600 * 1000;

/**
 * Returns the path of a PEM file (mode 0600) with an RSA-2048 key and its self-signed certificate for localhost and 127.0.0.1.
 * @throws UserError if it cannot be made, kept or read, or the signal's reason
 */
export async function machineCertificate(
  signal: AbortSignal,
  machine: Machine = thisMachine(),
): Promise<string> {
  const file = fileOn(machine);
  const folder = dirname(file);
  return inOwnFolder(folder, 'the certificate for TLS', signal, async () => {
    makeOwnFolder(folder);
    if (!(await isValid(file)))
      await withLock(join(folder, 'lock'), signal, async () => {
        // Another process may have made it.
        if (!(await isValid(file))) await make(file, machine, signal);
      });
    await leaveToCaller(folder);
    return file;
  });
}

/** Returns whether the certificate exists, so that openssl is not needed. */
export async function hasCertificate(machine: Machine): Promise<boolean> {
  return isValid(fileOn(machine));
}

const fileOn = (machine: Machine): string => join(machine.bakeoffFolder, 'tls', 'localhost.pem');

/** The arguments with which openssl makes key and certificate in `file`. */
export function certificateArgs(file: string): string[] {
  const fixed = `req -x509 -newkey rsa:2048 -nodes -sha256 -days ${validDays} -subj /CN=localhost`;
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  return [...fixed.split(' '), ...names, '-keyout', file, '-out', file];
}

async function isValid(file: string): Promise<boolean> {
  const pem = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  try {
    const certificate = new X509Certificate(pem);
    return (
      certificate.checkPrivateKey(createPrivateKey(pem)) &&
      Date.parse(certificate.validFrom) <= Date.now() &&
      Date.parse(certificate.validTo) > Date.now() + renewMs
    );
  } catch {
    return false;
  }
}

async function make(file: string, machine: Machine, signal: AbortSignal): Promise<void> {
  const { openssl } = await ensureTools(['openssl'], machine, signal);
  const unfinished = `${file}.unfinished`;
  await rm(unfinished, { force: true });
  const { code, stderr } = await run({
    command: openssl,
    args: certificateArgs(unfinished),
    env: machine.env,
    signal,
  });
  if (code !== 0 || !(await isValid(unfinished))) {
    throw new UserError(
      `${openssl} could not make a certificate (${lastLine(stderr) || 'it says nothing'}): set OPENSSL_BIN to OpenSSL 1.1.1 or newer`,
    );
  }
  await chmod(unfinished, 0o600);
  await rename(unfinished, file);
}
