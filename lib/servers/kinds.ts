// All servers whose configs bakeoff writes and reads, with their code. Their facts are in lib/setup/servers.ts.
import type { ServerName } from '../setup/servers.ts';
import { h2oKind } from './h2o.ts';
import type { ServerKind } from './kind.ts';
import { nghttpdKind } from './nghttpd.ts';
import { nginxKind } from './nginx.ts';

export const serverKinds: Record<ServerName, ServerKind> = {
  nginx: nginxKind,
  h2o: h2oKind,
  nghttpd: nghttpdKind,
};
