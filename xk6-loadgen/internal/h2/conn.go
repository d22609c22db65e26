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
	shared.Out = append(shared.Out[:0], preface...)
}

// IsUsedUp tells that the identifiers are used up. Some may be skipped in the ring, so the last ones stay unused.
func (c *Conn[T]) IsUsedUp() bool { return c.nextID+2*uint32(len(c.streams)) > c.blocks.LastStreamID }

// IsTLS recognises a TLS server that was loaded without TLS: it sends an alert record (version 3.x) before it closes.
func (c *Conn[T]) IsTLS() bool {
	return !c.greeted && bytes.HasPrefix(c.frames.kept, []byte{tlsAlert, 3})
}

// Request opens a stream and gathers its HEADERS. The body must not change until the stream ends. The stream is valid until the next
// Request; its Of is still to be set.
func (c *Conn[T]) Request(own Headers, body []byte) *Stream[T] {
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
	out := appendFrameHeader(c.shared.Out, len(c.update)+len(own.Bytes)+len(c.first), http2.FrameHeaders, flags, c.nextID)
	out = append(append(out, c.update...), own.Bytes[:own.Before]...)
	c.shared.Out = append(append(out, c.first...), own.Bytes[own.Before:]...)
	c.update, c.first = nil, c.later
	c.nextID += 2
	return st
}

// Upload gathers up to uploadBytes of request bodies, within the server's windows (RFC 9113, section 5.2). Streams come in the ring's
// order.
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
