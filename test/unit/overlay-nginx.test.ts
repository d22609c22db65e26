import { expect, it } from 'vitest';
import type { Directive } from '../../lib/servers/nginx-config.ts';
import { turnAwayLines, overlayNginx, servingLines } from '../../lib/servers/own/overlay-nginx.ts';

it('looks at a line of http as often with one server as with hundreds', () => {
  const looksWith = (servers: number) => {
    let looks = 0;
    const line: Directive = {
      get name() {
        looks++;
        return 'gzip';
      },
      args: ['on'],
      origin: 'own.conf:1',
    };
    const listen = { name: 'listen', args: ['80'], origin: 'own.conf:2' };
    const server = () => ({ name: 'server', args: [], origin: 'own.conf:2', block: [listen] });
    const block = [line, ...Array.from({ length: servers }, server)];
    const config = [{ name: 'http', args: [], origin: 'own.conf:1', block }];
    const page = { port: 80, paths: ['/'], cores: 1 };
    servingLines(config, page);
    turnAwayLines(config, 'limit_req', page);
    overlayNginx(config, [{ context: 'http', lines: 'sendfile on;' }], page);
    return looks;
  };
  expect(looksWith(300)).toBe(looksWith(1));
});
