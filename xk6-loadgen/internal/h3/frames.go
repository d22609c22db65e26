package h3

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"sync/atomic"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/net/http2/hpack"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

// Frames and streams (RFC 9114, sections 7.2 and 6.2).
const (
	frameData, frameHeaders, frameSettings, frameGoAway, frameMaxPush = 0, 1, 4, 7, 13
	streamControl, streamQPACKEncoder, streamQPACKDecoder             = 0, 2, 3
)

// Error codes (RFC 9114, section 8.1).
const (
	NoError             = 0x100
	streamCreationError = 0x103
	RequestRejected     = 0x10b
	requestCancelled    = 0x10c
)

// opening is our control stream: its type, and SETTINGS without one, so that QPACK has no dynamic table.
var opening = []byte{streamControl, frameSettings, 0}

// Breach is how a server violates HTTP/3. EndsAll: the connection cannot go on (RFC 9114, section 8). IsShort: a response is incomplete.
type Breach struct {
	Text             string
	EndsAll, IsShort bool
}

func (b *Breach) Error() string { return b.Text }

// readFrame reads the beginning of a frame. io.EOF means that the stream ended before it.
func readFrame(r *bufio.Reader) (kind, length uint64, err error) {
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

// readRest reads the rest of a frame, valid until the next call.
func readRest(r *bufio.Reader, length int) ([]byte, error) {
	if length > r.Size() {
		p := make([]byte, length)
		_, err := io.ReadFull(r, p)
		return p, err
	}
	p, err := r.Peek(length)
	r.Discard(len(p)) //nolint:errcheck // they are in the buffer
	return p, err
}

// readStreamType reads what a stream of the server begins with. Without a dynamic table only the control stream says more.
func readStreamType(r *bufio.Reader) (isControl, isKnown bool) {
	kind, err := quicvarint.Read(r)
	return err == nil && kind == streamControl, err != nil || kind == streamControl || kind == streamQPACKEncoder || kind == streamQPACKDecoder
}

// readControl reads the control stream behind its type, and returns why it ended. goAway gets the first stream that a GOAWAY says is ignored.
func readControl(r *bufio.Reader, goAway func(id uint64)) error {
	for hasSettings := false; ; hasSettings = true {
		kind, length, err := readFrame(r)
		switch {
		case err != nil:
		case (kind == frameSettings) == hasSettings:
			return &Breach{Text: "the server's control stream does not begin with SETTINGS, or repeats them", EndsAll: true}
		case kind == frameGoAway && length <= 8:
			var id uint64
			if id, err = quicvarint.Read(r); err == nil {
				goAway(id)
			}
		case kind == frameData || kind == frameHeaders:
			return &Breach{Text: "a frame of a request on the server's control stream", EndsAll: true}
		default:
			_, err = r.Discard(int(length))
		}
		if err != nil {
			return err
		}
	}
}

// Encode encodes a request up to its body, of which it says the length.
func Encode(fields []hpack.HeaderField, bodyBytes int) []byte {
	var block bytes.Buffer
	encoder := qpack.NewEncoder(&block)
	for _, f := range fields {
		encoder.WriteField(qpack.HeaderField{Name: f.Name, Value: f.Value}) //nolint:errcheck // into memory
	}
	frame := func(kind uint64, length int) []byte {
		return quicvarint.Append(quicvarint.Append(nil, kind), uint64(length))
	}
	p := append(frame(frameHeaders, block.Len()), block.Bytes()...)
	if bodyBytes > 0 {
		p = append(p, frame(frameData, bodyBytes)...)
	}
	return p
}

// Response is what a response came to.
type Response struct {
	Status                    int   // Status is of the final response; 0: its headers have not come in.
	Length                    int64 // Length is the content-length, -1: none.
	HeaderBytes, DecodedBytes int64 // HeaderBytes are as received, DecodedBytes those of names and values.
	BodyBytes                 int64
}

// read reads frames up to the stream's end (RFC 9114, section 4.1). It returns nil for a complete response, otherwise why it is not.
func (s *Response) read(r *bufio.Reader, blocks *cache) error {
	*s = Response{Length: -1}
	for {
		kind, length, err := readFrame(r)
		switch {
		case err == io.EOF && s.Status > 0:
			return nil
		case err != nil:
		case kind == frameData && s.Status == 0:
			return &Breach{Text: "DATA before the response's headers", EndsAll: true}
		case kind == frameData:
			s.BodyBytes += int64(length)
			_, err = r.Discard(int(length))
		case kind == frameHeaders && s.HeaderBytes+int64(length) > headers.MaxBytes:
			return &Breach{Text: headers.TooLong}
		case kind == frameHeaders:
			var p []byte
			if p, err = readRest(r, int(length)); err == nil {
				if b := s.headers(p, blocks); b != nil {
					return b
				}
			}
		case kind <= frameMaxPush && kind != 10 && kind != 11 && kind != 12:
			return &Breach{Text: fmt.Sprintf("a frame of type %d in a response", kind), EndsAll: true}
		default:
			_, err = r.Discard(int(length)) // an extension (RFC 9114, section 9)
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return &Breach{Text: "the stream ended before the response was complete", IsShort: true}
		case err != nil:
			return err
		}
	}
}

// headers reads a field section: the head of the response, an interim response, or trailers.
func (s *Response) headers(p []byte, blocks *cache) *Breach {
	b, wrong := blocks.decode(p)
	if wrong != "" {
		return &Breach{Text: "QPACK: " + wrong, EndsAll: true}
	}
	s.HeaderBytes += int64(len(p))
	s.DecodedBytes += b.DecodedBytes
	if fault := b.Fault(s.Status); fault != "" {
		return &Breach{Text: fault}
	}
	if b.Status >= 200 {
		s.Status, s.Length = b.Status, b.Length
	}
	return nil
}

// cache has the last header blocks at places by a hash, for any number of goroutines: a server sends the same bytes until the Date changes,
// or the same fields in a few orders, fewer than there are places.
type cache [64]atomic.Pointer[cached]

// cached is a header block and its meaning.
type cached struct {
	bytes []byte
	block headers.Block
}

// seed keeps servers from choosing blocks that fall on one place of the cache.
var seed = maphash.MakeSeed()

// decode reads a field section. One with the bytes of an earlier one has its meaning.
func (c *cache) decode(p []byte) (b headers.Block, wrong string) {
	place := &c[maphash.Bytes(seed, p)%uint64(len(c))]
	if last := place.Load(); last != nil && bytes.Equal(last.bytes, p) {
		return last.block, ""
	}
	b.Length = -1
	for next := qpack.NewDecoder().Decode(p); ; {
		f, err := next()
		if err == io.EOF {
			place.Store(&cached{bytes.Clone(p), b})
			return b, ""
		}
		if err != nil {
			return b, err.Error()
		}
		b.Add(f.Name, f.Value)
	}
}
