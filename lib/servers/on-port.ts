// Starts of servers on ports that others may take before them.
import { UserError } from '../errors.ts';
import { freePort, loopbackAddress, portProblem, type Address } from './ports.ts';

/** Free ports to try: another process may take one between the look and the server's start. */
const portTries = 5;

/** Another process has the port. */
export class AddressInUse extends Error {}

/**
 * Starts a server on a port of an address of this machine: the one that is wanted, or a free one, and another where somebody else took it.
 * @param startOn throws AddressInUse where another process has the port
 * @throws UserError where another one has the port that is wanted, or each of those tried
 */
export async function onPort<T>(
  name: string,
  wanted: number | undefined,
  startOn: (at: Address) => Promise<T>,
  address = loopbackAddress,
): Promise<T> {
  const problem = wanted === undefined ? undefined : await portProblem({ address, port: wanted });
  if (problem !== undefined && problem.code !== 'EADDRINUSE')
    throw new UserError(`${name} cannot listen on port ${wanted}: ${problem.message}`);
  for (let tries = 1; ; tries++) {
    const at = { address, port: wanted ?? (await freePort(address)) };
    try {
      if (problem !== undefined) throw new AddressInUse();
      return await startOn(at);
    } catch (error) {
      if (!(error instanceof AddressInUse)) throw error;
      if (wanted !== undefined || tries === portTries)
        throw new UserError(
          `port ${at.port} of ${address} is in use: end what listens there, or take another port`,
        );
    }
  }
}
