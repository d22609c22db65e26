// Package h2 is the client's side of a connection of HTTP/2 (RFC 9113): it reads the server's frames, checks them, obeys them, and writes
// frames. It knows nothing of sockets, clocks and loops.
//
// Conn has one connection's streams, windows and HPACK tables. Bytes of the server go in by Next, which returns one event at a time. Frames
// to send are gathered in Shared.Out; the caller sends and empties it. With each stream the caller keeps a value of its own, Stream.Of.
//
// No call allocates once a connection has had all of its streams active and its buffers and HPACK table have grown. The exceptions are rare: a header block
// of several frames, and the texts of some faults.
package h2
