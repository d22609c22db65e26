// A server on a port that may be taken before it listens.
import { UserError } from '../errors.ts';
import { freePort, loopbackAddress, portProblem, type Address } from './ports.ts';

/** A server's start failed because another process has the port. */
export class AddressInUse extends Error {}

/** How often a free port is tried: another process may take it before the server does. */
const portTries = 5;

/**
 * Starts a server on the wanted port of an address, or on a free one.
 * @param startOn throws AddressInUse if another process has the port
 * @throws UserError if another process has the wanted port, or each of those tried
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
