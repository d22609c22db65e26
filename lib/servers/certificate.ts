// The certificate with which servers speak TLS: one for each machine, made when it is needed for the first time.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmod, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { withLock } from '../lock-file.ts';
import { makeFolder } from '../folders.ts';
import { thisMachine, type Machine } from '../setup/machine.ts';
import { lastLine, run } from '../setup/run.ts';
import { ensureTools } from '../setup/tools.ts';

/** As in article 002. */
const validDays = 3650;
/** One that ends this soon is replaced: no run takes so long. */
const renewDays = 30;
const dayMs = 24 * 3600 * 1000;

/**
 * The absolute path of a PEM file with an RSA-2048 key and its self-signed certificate for localhost and 127.0.0.1, mode
 * 0600. One file for both, so that they can be replaced in one step and always fit. It is kept below `.bakeoff/` and made
 * by openssl, which is installed like the servers when it is missing.
 * @throws UserError when it cannot be made, kept or read, or the signal's reason
 */
export async function machineCertificate(signal: AbortSignal, machine: Machine = thisMachine()): Promise<string> {
  const folder = join(machine.bakeoffFolder, 'tls');
  const file = join(folder, 'localhost.pem');
  try {
    if (await isValid(file)) return file;
    makeFolder(folder);
    await withLock(join(folder, 'lock'), signal, async () => {
      // Somebody else may have made it meanwhile.
      if (!await isValid(file)) await make(file, machine, signal);
    });
  } catch (error) {
    if (signal.aborted || error instanceof UserError) throw error;
    throw new UserError(`the certificate for TLS cannot be kept in ${folder}: ${(error as Error).message}; BAKEOFF_HOME names another folder`);
  }
  return file;
}

/** What has openssl make key and certificate, in one file. */
export function certificateArgs(file: string): string[] {
  return [
    'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-sha256', '-days', String(validDays),
    '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1',
    '-keyout', file, '-out', file,
  ];
}

/** False when it is missing, damaged, or (almost) over. Throws when it is there but closed to us. */
async function isValid(file: string): Promise<boolean> {
  const pem = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  try {
    const certificate = new X509Certificate(pem);
    const now = Date.now();
    return certificate.checkPrivateKey(createPrivateKey(pem)) && Date.parse(certificate.validFrom) <= now
      && Date.parse(certificate.validTo) > now + renewDays * dayMs;
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
  if (code !== 0 || !await isValid(unfinished)) {
    throw new UserError(`${openssl} could not make a certificate (${lastLine(stderr) || 'it says nothing'}): set OPENSSL_BIN to OpenSSL 1.1.1 or newer`);
  }
  await chmod(unfinished, 0o600);
  await rename(unfinished, file);
}
