// What a load is taken to come to where nobody has measured it yet.

/**
 * From what one server core and one generator core did here: requests/s of small pages (fewer with a connection for each),
 * bytes/s of large ones, and seconds of a TLS handshake.
 */
export const assumed = { rps: 20_000, rpsWithoutKeepAlive: 10_000, bytesPerSecond: 500e6, handshakeSeconds: 0.002 };
