// Code in a person's own config. It may be a stranger's, and root may not be told to run it by a look at two web servers.
import { UserError } from '../../errors.ts';
import type { AdoptPlace } from '../server.ts';

/**
 * Says in `said` that the config's code runs.
 * @param name of what has the code run
 * @param where FILE:LINE
 * @throws UserError when it is root that would start it, and the person has not said that they know what it does
 */
export function allowCode(name: string, where: string, { user, trustConfig }: Pick<AdoptPlace, 'user' | 'trustConfig'>, said: string[]): void {
  if (user !== undefined && !trustConfig) {
    throw new UserError(`${where}: ${name} runs code of the config's own, and bakeoff was started by root: see what the code does and give --trust-config, or start bakeoff as another user`);
  }
  said.push(`${name}: runs as it is, the files that it writes and the addresses that it calls are not redirected`);
}
