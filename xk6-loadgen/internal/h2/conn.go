// Package h2 is the client's side of a connection of HTTP/2 (RFC 9113): it reads the server's frames, checks them, obeys them, and writes
// frames. It knows nothing of sockets, clocks and loops.
//
// Conn has one connection's streams, windows and HPACK tables. Bytes of the server go in by Next, which returns one event at a time. Frames
// to send are gathered in Shared.Out; the caller sends and empties it. With each stream the caller keeps a value of its own, Stream.Of.
//
// No call allocates once a connection has had all of its streams active and its buffers and HPACK table have grown. Rare exceptions are header
// blocks of several frames, and the texts of some faults.
//
//gosec:disable G115 -- the numbers are small
package h2

import (
	"bytes"

	"golang.org/x/net/http2"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

const (
	assumedStreams = 100       // assumedStreams may be opened before the server has named its limit; servers take 100 and more
	uploadBytes    = 256 << 10 // uploadBytes of request bodies are sent at a time.
)

var noTable = []byte{0x20} // sets the size of the dynamic table to 0

// Shared is what the connections of a thread share, since it handles one of them at a time.
type Shared struct {
	Out []byte // Out has the frames to send.
	// block and strings are those of all decoders, since a server's headers are alike.
	block   headers.Cache
	strings headers.Strings
}

// Conn is a connection, after Begin. T is what the caller keeps with each stream. Exported fields are for the caller to read.
type Conn[T any] struct {
	event[T]
	Open, Limit int   // Open streams have not ended. Limit is how many may be open: the caller's limit or the server's.
	NamedLimit  int64 // NamedLimit is how many streams the server has said it allows, -1: it has not.
	Uploading   int   // Uploading streams have not sent their whole request.

	shared  *Shared
	blocks  *Blocks
	most    int // how many streams the caller has open at most
	decoder headers.Decoder
	streams ring[T] // An identifier whose place is taken is skipped (RFC 9113, section 5.1.1).
	nextID  uint32
	greeted bool
	earlyID uint32 // streams below it were opened before the server had named its limit
	// first has the shared headers of the next request, later of those after it. update goes before the next request's headers.
	first, later, update []byte
	// tolerant: we have given up streams without the server's knowledge, so late frames are no fault.
	tolerant                  bool
	sendWindow, initialWindow int64 // sendWindow is the connection's; initialWindow that of new streams.
	flow                      int64 // what came in since the last update of the connection's window
	frames                    frameReader
}

// Begin begins a connection in place of the one before, of which nothing is left, and gathers the preface. At most `most` streams will
// be open. Requests may follow at once, before the server's SETTINGS are known.
func (c *Conn[T]) Begin(shared *Shared, blocks *Blocks, most int) {
	clear(c.streams)
	*c = Conn[T]{
		shared: shared, blocks: blocks, most: most, decoder: headers.NewDecoder(&shared.strings), streams: c.streams,
		nextID: 1, Limit: min(most, assumedStreams), NamedLimit: -1, first: blocks.opening, later: blocks.steady,
		sendWindow: initialWindowBytes, initialWindow: initialWindowBytes, frames: frameReader{kept: c.frames.kept[:0]},
	}
	shared.Out = append(shared.Out[:0], blocks.preface...)
}

// IsUsedUp tells that the identifiers are used up. Some may be skipped in the ring, so the last ones stay unused.
func (c *Conn[T]) IsUsedUp() bool { return c.nextID+2*uint32(len(c.streams)) > c.blocks.LastStreamID }

// IsTLS recognises a TLS server that was loaded without TLS: it sends an alert record (version 3.x) before it closes.
func (c *Conn[T]) IsTLS() bool {
	return !c.greeted && bytes.HasPrefix(c.frames.kept, []byte{headers.TLSAlert, 3})
}

// Request opens a stream, valid until the next Request, and gathers its HEADERS. Its Of is still to be set. body must not change until the
// stream ends.
func (c *Conn[T]) Request(h Headers, body []byte) *Stream[T] {
	if c.Open == len(c.streams) {
		c.streams.grow()
	}
	st := c.streams.place(c.nextID)
	for st.ID != 0 {
		c.nextID += 2
		st = c.streams.place(c.nextID)
	}
	// Field by field, since the caller sets Of.
	st.ID, st.Status, st.Length = c.nextID, 0, -1
	st.HeaderBytes, st.DecodedBytes, st.BodyBytes = 0, 0, 0
	st.flow, st.unsent, st.window = 0, body, c.initialWindow
	c.Open++

	flags := http2.FlagHeadersEndHeaders
	if len(body) == 0 {
		flags |= http2.FlagHeadersEndStream
	} else {
		c.Uploading++
	}
	out := appendFrameHeader(c.shared.Out, len(c.update)+len(h.Bytes)+len(c.first), http2.FrameHeaders, flags, c.nextID)
	out = append(append(out, c.update...), h.Bytes[:h.Before]...)
	c.shared.Out = append(append(out, c.first...), h.Bytes[h.Before:]...)
	c.update, c.first = nil, c.later
	c.nextID += 2
	return st
}

// Upload gathers up to uploadBytes of request bodies in the ring's order, within the server's windows (RFC 9113, section 5.2).
func (c *Conn[T]) Upload() {
	out := c.shared.Out
	for i := range c.streams {
		st := &c.streams[i]
		for st.ID != 0 && len(st.unsent) > 0 && len(out) < uploadBytes {
			n := int(min(int64(len(st.unsent)), maxFrameBytes, st.window, c.sendWindow))
			if n <= 0 {
				break
			}
			var flags http2.Flags
			if n == len(st.unsent) {
				flags = http2.FlagDataEndStream
				c.Uploading--
			}
			out = append(appendFrameHeader(out, n, http2.FrameData, flags, st.ID), st.unsent[:n]...)
			st.unsent = st.unsent[n:]
			st.window -= int64(n)
			c.sendWindow -= int64(n)
		}
	}
	c.shared.Out = out
}

// GiveUp ends the open streams of which `ends` is true; resets tells the server so.
func (c *Conn[T]) GiveUp(resets bool, ends func(*Stream[T]) bool) {
	for i := range c.streams {
		if st := &c.streams[i]; st.ID != 0 && ends(st) {
			if resets {
				c.reset(st, http2.ErrCodeCancel)
			}
			c.remove(st)
		}
	}
}

// reset gathers RST_STREAM. The server may send frames of the stream until it has read that.
func (c *Conn[T]) reset(st *Stream[T], code http2.ErrCode) {
	c.shared.Out = appendNumber(c.shared.Out, http2.FrameRSTStream, st.ID, uint32(code))
	c.tolerant = true
}

// remove frees a stream's place. Its fields stay as they are until the next Request.
func (c *Conn[T]) remove(st *Stream[T]) {
	if len(st.unsent) > 0 {
		c.Uploading--
	}
	st.ID = 0
	c.Open--
}

// Stream is a stream that is open. The exported fields are for the caller to read.
type Stream[T any] struct {
	Of     T // the caller's own
	ID     uint32
	Status int32 // Status is of the final response; 0: its headers have not come in.
	// HeaderBytes are as received, DecodedBytes those of names and values. BodyBytes are without padding. Length is the content-length, -1: none.
	HeaderBytes, DecodedBytes int64
	BodyBytes, Length         int64

	flow   int64  // what came in since the last update of the stream's window
	unsent []byte // the rest of the request's body, and the server's window for it
	window int64
}

// ring has the open streams by identifier. Its length is a power of two. ID 0: the place is free.
type ring[T any] []Stream[T]

// place is where a stream's identifier belongs in the ring. A client's identifiers are odd (RFC 9113, section 5.1.1).
func (r ring[T]) place(id uint32) *Stream[T] { return &r[int(id>>1)&(len(r)-1)] }

// find is the open stream with this identifier, valid until the next grow; nil if it has ended.
func (r ring[T]) find(id uint32) *Stream[T] {
	if len(r) == 0 {
		return nil
	}
	if st := r.place(id); st.ID == id && id != 0 {
		return st
	}
	return nil
}

// grow doubles the ring. It allocates, which ends once a connection has had all of its streams open.
func (r *ring[T]) grow() {
	old := *r
	*r = make(ring[T], max(1, 2*len(old)))
	for i := range old {
		if old[i].ID != 0 {
			*r.place(old[i].ID) = old[i]
		}
	}
}
