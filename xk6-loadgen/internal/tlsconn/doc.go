// Package tlsconn is the client's side of TLS 1.2 and 1.3 on connections of a thread that must not block: handshakes, records and tickets. It
// knows nothing of sockets, clocks and loops.
//
// Conn is TLS on a connection. Bytes of the server go in by Next, which returns one event at a time. crypto/tls makes the handshake. After
// it, Half is the record layer: unlike that of crypto/tls it takes no lock, allocates nothing for a record, and decrypts in place.
package tlsconn
