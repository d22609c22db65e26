//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"sync"
	"sync/atomic"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

// h3Stream is an attempt with its stream. A goroutine reads it and sets the figures; the loop reads these once the stream was posted.
type h3Stream struct {
	attempt
	place   int  // its place among the session's streams; -1: the loop is through with it
	isAgain bool // it had a stream before
	quic    *quic.Stream
	of      *quicConn

	status                    int // of the final response; length is its content-length, -1: none
	length                    int64
	headerBytes, decodedBytes int64
	bodyBytes                 int64
	received, firstAt         int64
	fault                     *h3Fault
	sent                      atomic.Int64 // of a request that did not leave at once
	isSent                    atomic.Bool  // all of it has left
}

// cancel gives up both directions of the stream with H3_REQUEST_CANCELLED (RFC 9114, section 4.1.1).
func (st *h3Stream) cancel() {
	st.quic.CancelRead(h3Cancelled)
	st.quic.CancelWrite(h3Cancelled)
}

// upload is a goroutine that sends a request which is long, or which QUIC did not take at once.
func (st *h3Stream) upload() {
	for _, p := range [][]byte{st.request.bytes, st.request.body} {
		for len(p) > 0 {
			n := min(len(p), pieceBytes)
			st.sent.Add(int64(n)) // Before: the response may come before Write returns
			if _, err := st.quic.Write(p[:n]); err != nil {
				return
			}
			p = p[n:]
		}
	}
	st.isSent.Store(true)
	st.quic.Close() //nolint:errcheck // read has the error, too
}

// h3Readers are the readers of all loads. A stream holds one from its first byte to its end.
var h3Readers = sync.Pool{New: func() any { return newH3Reader(16 << 10) }}

// read is a goroutine that reads a response, and posts the stream to the loop in any case. Peek comes first so that a stream without bytes
// holds no reader.
func (st *h3Stream) read() {
	var first [1]byte
	st.quic.Peek(first[:]) //nolint:errcheck // A stream that waits has no buffer; reading it has the error, too
	r := h3Readers.Get().(*h3Reader)
	r.begin(st.quic, st.of)
	st.fault = st.response(r)
	st.received, st.firstAt = r.from.read, r.from.firstAt
	h3Readers.Put(r)
	st.of.inbox.post(quicEvent{of: st.of, stream: st})
}

// response reads frames up to the stream's end (RFC 9114, section 4.1). It returns nil for a complete response, otherwise why it is not.
func (st *h3Stream) response(r *h3Reader) *h3Fault {
	for {
		kind, length, err := r.frame()
		switch {
		case err == io.EOF && st.status > 0:
			return nil
		case err != nil:
		case kind == h3Data && st.status == 0:
			return breach("DATA before the response's headers")
		case kind == h3Data:
			st.bodyBytes += int64(length)
			_, err = r.Discard(int(length))
		case kind == h3Headers && st.headerBytes+int64(length) > headers.MaxBytes:
			return &h3Fault{kind: ErrProtocol, cause: CauseOther, text: headers.TooLong}
		case kind == h3Headers:
			var p []byte
			if p, err = r.next(int(length)); err == nil {
				if f := st.headers(p); f != nil {
					return f
				}
			}
		case kind <= h3MaxPush && kind != 10 && kind != 11 && kind != 12:
			return breach(fmt.Sprintf("a frame of type %d in a response", kind))
		default:
			_, err = r.Discard(int(length)) // an extension (RFC 9114, section 9)
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return &h3Fault{kind: ErrProtocol, cause: CauseShort, text: "the stream ended before the response was complete"}
		case err != nil:
			return faultOf(err)
		}
	}
}

// headers reads a field section: the head of the response, an interim response, or trailers.
func (st *h3Stream) headers(p []byte) *h3Fault {
	b, wrong := st.of.inbox.decode(p)
	if wrong != "" {
		return breach("QPACK: " + wrong)
	}
	st.headerBytes += int64(len(p))
	st.decodedBytes += b.DecodedBytes
	text := b.Malformed
	switch {
	case text != "":
	case st.status != 0 && b.Status != 0:
		text = "headers after the response's headers are not trailers"
	case st.status == 0 && b.Status == 0:
		text = "a response has no :status"
	case b.Status == 101:
		text = "an informational response switches protocols"
	case b.Status >= 200:
		st.status, st.length = b.Status, b.Length
	}
	if text == "" {
		return nil
	}
	return &h3Fault{kind: ErrProtocol, cause: CauseOther, text: text}
}

// h3Reader reads frames off a stream.
type h3Reader struct {
	*bufio.Reader
	from h3Source
}

// h3Source notes what comes in on a stream.
type h3Source struct {
	stream        io.Reader
	of            *quicConn
	read, firstAt int64
}

// newH3Reader makes a reader whose buffer serves one stream after another.
func newH3Reader(bufferBytes int) *h3Reader {
	return &h3Reader{Reader: bufio.NewReaderSize(nil, bufferBytes)}
}

func (r *h3Reader) begin(stream io.Reader, of *quicConn) {
	r.from = h3Source{stream: stream, of: of}
	r.Reset(&r.from)
}

// Read notes how much came in and when, before it is parsed.
func (s *h3Source) Read(p []byte) (int, error) {
	n, err := s.stream.Read(p)
	if n > 0 {
		now := s.of.inbox.now()
		s.of.heard.Store(now)
		if s.read += int64(n); s.firstAt == 0 {
			s.firstAt = now
		}
	}
	return n, err
}

// frame reads the beginning of a frame. io.EOF means that the stream ended before it.
func (r *h3Reader) frame() (kind, length uint64, err error) {
	if _, err = r.Peek(1); err != nil {
		return 0, 0, err
	}
	if kind, err = quicvarint.Read(r); err == nil {
		length, err = quicvarint.Read(r)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return kind, length, err
}

// next is the rest of a frame, valid until the next call.
func (r *h3Reader) next(length int) ([]byte, error) {
	if length > r.Size() {
		p := make([]byte, length)
		_, err := io.ReadFull(r, p)
		return p, err
	}
	p, err := r.Peek(length)
	r.Discard(len(p)) //nolint:errcheck // they are in the buffer
	return p, err
}

// h3Block is a header block and its meaning: a server sends the same bytes until the Date changes, or the same fields in a few orders.
type h3Block struct {
	bytes []byte
	block headers.Block
}

// blockSeed keeps servers from choosing blocks that fall on one place of the cache.
var blockSeed = maphash.MakeSeed()

// decode reads a field section (RFC 9204). One with the bytes of an earlier one has its meaning. All streams of a loop share the cache, so
// its places are atomic pointers.
func (in *inbox) decode(p []byte) (b headers.Block, wrong string) {
	place := &in.lastBlocks[maphash.Bytes(blockSeed, p)%blocksKept]
	if last := place.Load(); last != nil && bytes.Equal(last.bytes, p) {
		return last.block, ""
	}
	b.Length = -1
	for next := qpack.NewDecoder().Decode(p); ; {
		f, err := next()
		if err == io.EOF {
			place.Store(&h3Block{bytes.Clone(p), b})
			return b, ""
		}
		if err != nil {
			return b, err.Error()
		}
		b.Add(f.Name, f.Value)
	}
}

// encodeH3Requests makes whole requests. A long body is not copied.
func encodeH3Requests(scheme string, mix []Request) (requests []request) {
	for _, r := range mix {
		var block bytes.Buffer
		encoder := qpack.NewEncoder(&block)
		for _, f := range h2Fields(scheme, r) {
			encoder.WriteField(qpack.HeaderField{Name: f.Name, Value: f.Value}) //nolint:errcheck // into memory
		}
		frame := func(kind uint64, length int) []byte {
			return quicvarint.Append(quicvarint.Append(nil, kind), uint64(length))
		}
		encoded := request{bytes: append(frame(h3Headers, block.Len()), block.Bytes()...)}
		if len(r.Body) > 0 {
			encoded.bytes = append(encoded.bytes, frame(h3Data, len(r.Body))...)
			if len(r.Body) < pieceBytes {
				encoded.bytes = append(encoded.bytes, r.Body...)
			} else {
				encoded.body = r.Body
			}
		}
		requests = append(requests, encoded)
	}
	return requests
}
