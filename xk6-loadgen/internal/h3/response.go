package h3

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"sync/atomic"

	"github.com/quic-go/qpack"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

// Response is what a response came to.
type Response struct {
	Status                    int   // Status is of the final response; 0: its headers have not come in.
	Length                    int64 // Length is the content-length, -1: none.
	HeaderBytes, DecodedBytes int64 // HeaderBytes are as received, DecodedBytes those of names and values.
	BodyBytes                 int64
}

// Read reads frames up to the stream's end (RFC 9114, section 4.1). It returns nil for a complete response, otherwise why it is not.
func (s *Response) Read(r *bufio.Reader, blocks *Cache) error {
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
func (s *Response) headers(p []byte, blocks *Cache) *Breach {
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

// Cache has the last header blocks at places by a hash, for any number of goroutines: a server sends the same bytes until the Date changes,
// or the same fields in a few orders, fewer than there are places.
type Cache [64]atomic.Pointer[cached]

// cached is a header block and its meaning.
type cached struct {
	bytes []byte
	block headers.Block
}

// seed keeps servers from choosing blocks that fall on one place of the cache.
var seed = maphash.MakeSeed()

// decode reads a field section. One with the bytes of an earlier one has its meaning.
func (c *Cache) decode(p []byte) (b headers.Block, wrong string) {
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
