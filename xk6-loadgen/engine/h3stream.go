//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package engine

import (
	"bufio"
	"io"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
)

// h3Stream is an attempt with its stream. A goroutine reads it and sets the figures; the loop reads these once the stream was posted.
type h3Stream struct {
	attempt
	place   int  // its place among the session's streams; -1: the loop is through with it
	isAgain bool // it had a stream before
	quic    *quic.Stream
	of      *quicConn

	response       h3.Response
	bytes, firstAt int64 // what came in, and when its first byte did
	fault          *h3Fault
	sent           atomic.Int64 // of a request that did not leave at once
	isSent         atomic.Bool  // all of it has left
}

// cancel gives up both directions of the stream with H3_REQUEST_CANCELLED (RFC 9114, section 4.1.1).
func (st *h3Stream) cancel() {
	st.quic.CancelRead(h3.RequestCancelled)
	st.quic.CancelWrite(h3.RequestCancelled)
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

// h3Reader reads a stream, and notes what comes in and when.
type h3Reader struct {
	*bufio.Reader
	stream         io.Reader
	of             *quicConn
	bytes, firstAt int64
}

// h3Readers are the readers of all loads. A stream holds one from its first byte to its end.
var h3Readers = sync.Pool{New: func() any { return &h3Reader{Reader: bufio.NewReaderSize(nil, 16<<10)} }}

// source is where a reader's bytes come from.
type source h3Reader

func (r *h3Reader) begin(stream io.Reader, of *quicConn) {
	r.stream, r.of, r.bytes, r.firstAt = stream, of, 0, 0
	r.Reset((*source)(r))
}

// Read notes how much came in and when, before it is parsed.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.stream.Read(p)
	if n > 0 {
		now := s.of.inbox.now()
		s.of.heard.Store(now)
		if s.bytes += int64(n); s.firstAt == 0 {
			s.firstAt = now
		}
	}
	return n, err
}

// read is a goroutine that reads a response, and then posts the stream. Peek comes first: a stream without bytes holds no reader.
func (st *h3Stream) read() {
	var first [1]byte
	st.quic.Peek(first[:]) //nolint:errcheck // A stream that waits has no buffer; reading it has the error, too
	r := h3Readers.Get().(*h3Reader)
	r.begin(st.quic, st.of)
	if err := st.response.Read(r.Reader, &st.of.inbox.blocks); err != nil {
		st.fault = faultOf(err)
	}
	st.bytes, st.firstAt = r.bytes, r.firstAt
	h3Readers.Put(r)
	st.of.inbox.post(quicEvent{of: st.of, stream: st})
}

// encodeH3Requests makes whole requests. A long body is not copied.
func encodeH3Requests(scheme string, mix []Request) (requests []request) {
	for _, r := range mix {
		encoded := request{bytes: h3.Encode(h2Fields(scheme, r), len(r.Body))}
		if len(r.Body) < pieceBytes {
			encoded.bytes = append(encoded.bytes, r.Body...)
		} else {
			encoded.body = r.Body
		}
		requests = append(requests, encoded)
	}
	return requests
}
