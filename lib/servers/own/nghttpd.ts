import { UserError } from '../../errors.ts';
import type { AdoptPlace, AdoptedConfig } from '../server.ts';
import type { Listen, OwnConfig } from './listens.ts';

export function readNghttpd(file: string, _text: string): Promise<{ workers: OwnConfig['workers']; listens: readonly Listen[] }> {
  return Promise.reject(new UserError(`${file}: configs of nghttpd cannot be run as they are`));
}

export function adoptNghttpd(file: string, _place: AdoptPlace): Promise<AdoptedConfig> {
  return Promise.reject(new UserError(`${file}: configs of nghttpd cannot be run as they are`));
}
