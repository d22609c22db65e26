import { command, defineScenario, type LoadProfile, type TlsOffer } from 'server-bakeoff';

/** A new connection for each request, so that requests/s are handshakes/s. */
const load = (tls: TlsOffer): LoadProfile => ({
  command: 'a TLS 1.3 handshake for each request',
  protocol: 'http/1.1',
  connections: 10,
  threads: 1,
  keepAlive: false,
  durationSeconds: 5,
  tls: { minVersion: 'TLSv1.3', ...tls },
});

const server = (key: 'rsa' | 'ecdsa') =>
  command(`go run server.go ${key}`, { folder: '.', tls: true });

export default defineScenario({
  name: 'tls-handshakes',
  title: 'TLS 1.3 handshakes by key, key exchange and resumption',
  knob: 'handshake',
  load: load({ curves: ['X25519'] }),
  page: { path: '/' },
  variants: [
    { name: 'ecdsa', server: server('ecdsa') },
    { name: 'rsa', server: server('rsa') },
    {
      name: 'post-quantum',
      server: server('ecdsa'),
      load: load({ curves: ['X25519MLKEM768'] }),
    },
    { name: 'resumed', server: server('ecdsa'), load: load({ curves: ['X25519'], resume: 1 }) },
  ],
});
