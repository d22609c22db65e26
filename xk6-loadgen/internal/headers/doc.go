// Package headers reads what a load generator has to know of a response's headers, and no more.
//
// Decoder is HPACK (RFC 7541), for one connection of HTTP/2. It decodes whole blocks, so that its dynamic table is right, but keeps only
// sizes, :status and content-length. A load has the same few blocks again and again, so two caches come first: one of the connection, for
// blocks that refer to its table, and one that connections share, for blocks that spell their headers out. No call allocates once its
// buffers have grown.
//
// The values that matter are read alike in HTTP/1: see Number and SetLength.
package headers
