import type { LoadProfile } from './model.ts';

const namesOfProtocols: Readonly<Record<LoadProfile['protocol'], string>> = {
  'http/1.0': 'HTTP/1.0',
  'http/1.1': 'HTTP/1.1',
  h2: 'HTTP/2 over TLS',
  h2c: 'HTTP/2 without TLS',
};

export function isHttp2(protocol: LoadProfile['protocol']): boolean {
  return protocol === 'h2' || protocol === 'h2c';
}

/** Writes out the protocols that a text names: "http/1.1 and h2" is "HTTP/1.1 and HTTP/2 over TLS". */
export function protocolNames(text: string): string {
  return text.replaceAll(
    /http\/1\.[01]|h2c?/g,
    (name) => namesOfProtocols[name as LoadProfile['protocol']],
  );
}
