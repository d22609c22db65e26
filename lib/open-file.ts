// Files of others: a pipe would be waited for, a device or a huge file read without end, and a link may lead anywhere.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { open, realpath, type FileHandle } from 'node:fs/promises';
import { sep } from 'node:path';
import { UserError } from './errors.ts';

interface Limits {
  /** The most that the file may have. */
  megabytes: number;
  /** The folder that it has to be in once all links are followed; absent: anywhere. */
  below?: string;
}

/** Why a file is not read, in words that follow its name and a colon: "it is a folder". */
export class Unreadable extends Error {}

const notAFile = 'it is a pipe, socket or device, not a file';

const why: Record<string, string> = {
  ENOENT: 'it is not there',
  ENOTDIR: 'it is not there',
  EACCES: 'you may not read it',
  ELOOP: 'it is a link to itself',
  ENXIO: notAFile,
};

/** Opens a plain file to read it. The caller closes it. Throws Unreadable. */
export async function openFile(file: string, { megabytes, below }: Limits): Promise<FileHandle> {
  // A pipe is opened without waiting for who writes into it.
  const handle = await open(
    file,
    constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY,
  ).catch((error: NodeJS.ErrnoException) => {
    throw new Unreadable(why[error.code ?? ''] ?? error.message);
  });
  try {
    const found = await handle.stat();
    if (found.isDirectory()) throw new Unreadable('it is a folder');
    if (!found.isFile()) throw new Unreadable(notAFile);
    if (found.size > megabytes * 1e6) throw new Unreadable(`it has more than ${megabytes} MB`);
    // What was opened is asked, since the name may come to mean another file.
    if (
      below !== undefined &&
      !(await realpath(`/proc/self/fd/${handle.fd}`)).startsWith((await realpath(below)) + sep)
    ) {
      throw new Unreadable(`it is a link that leads out of ${below}`);
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The bytes of a plain file. Throws Unreadable. */
export async function readBytes(file: string, limits: Limits): Promise<Buffer> {
  const handle = await openFile(file, limits);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Descriptors that a shell hands over, as in `<(…)`: such a pipe has a writer. */
const handedOver = /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/** The bytes of a plain file, or of a pipe that a shell hands over. Throws Unreadable, also for more than `mostBytes`, or the file system's error. */
export function readBytesSync(file: string, mostBytes: number): Buffer {
  const isHandedOver = handedOver.test(file);
  const descriptor = openSync(
    file,
    constants.O_RDONLY | constants.O_NOCTTY | (isHandedOver ? 0 : constants.O_NONBLOCK),
  );
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile() && !found.isDirectory() && !(isHandedOver && found.isFIFO()))
      throw new Unreadable(notAFile);
    const bytes = Buffer.allocUnsafe(mostBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= mostBytes; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
    if (length > mostBytes) throw new Unreadable(`it has more than ${mostBytes} bytes`);
    return bytes.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** Throws UserError for a path with a newline, which would end the comment that names it, or the like. @param begin of the message */
export function requirePlainPath(file: string, begin: string): void {
  if (/\p{Cc}/u.test(file))
    throw new UserError(
      `${begin} ${JSON.stringify(file)}, which has control characters in its path: rename it`,
    );
}
