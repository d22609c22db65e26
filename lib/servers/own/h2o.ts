import { UserError } from '../../errors.ts';
import type { AdoptPlace, AdoptedConfig } from '../server.ts';
import type { Listen, OwnConfig } from './listens.ts';

export function readH2o(file: string, _text: string): Promise<{ workers: OwnConfig['workers']; listens: readonly Listen[] }> {
  return Promise.reject(new UserError(`${file}: configs of h2o cannot be run as they are`));
}

export function adoptH2o(file: string, _place: AdoptPlace): Promise<AdoptedConfig> {
  return Promise.reject(new UserError(`${file}: configs of h2o cannot be run as they are`));
}
