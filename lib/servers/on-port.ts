// Starts of servers on ports that others may take before them.
import { UserError } from '../errors.ts';
import { freePort, portProblem } from './ports.ts';

/** Free ports to try: another process may take one between the look and the server's start. */
const portTries = 5;

/** Another process has the port. */
export class AddressInUse extends Error {}

/**
 * Starts a server on a port: the one that is wanted, or a free one of 127.0.0.1, and another where somebody else took it.
 * @param startOn throws AddressInUse where another process has the port
 * @throws UserError where another one has the port that is wanted, or each of those tried
 */
export async function onPort<T>(name: string, wanted: number | undefined, startOn: (port: number) => Promise<T>): Promise<T> {
  if (wanted !== undefined) await requirePort(name, wanted);
  for (let tries = 1; ; tries++) {
    const port = wanted ?? await freePort();
    try {
      return await startOn(port);
    } catch (error) {
      if (!(error instanceof AddressInUse)) throw error;
      if (wanted !== undefined || tries === portTries) throw portInUse(port);
    }
  }
}

async function requirePort(name: string, port: number): Promise<void> {
  const problem = await portProblem(port);
  if (problem?.code === 'EADDRINUSE') throw portInUse(port);
  if (problem !== undefined) throw new UserError(`${name} cannot listen on port ${port}: ${problem.message}`);
}

function portInUse(port: number): UserError {
  return new UserError(`port ${port} of 127.0.0.1 is in use: end what listens there, or take another port`);
}
