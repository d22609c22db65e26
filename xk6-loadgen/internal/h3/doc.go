// Package h3 reads and writes the frames of HTTP/3 (RFC 9114) and its header blocks (QPACK, RFC 9204), on streams of bytes. It knows nothing
// of QUIC, goroutines and loops.
//
// Encode makes a request, Response.Read reads a response, ReadStreamType and ReadControl read the streams that a server opens. A violation
// of HTTP/3 is a Breach; any other error is the stream's own.
package h3
