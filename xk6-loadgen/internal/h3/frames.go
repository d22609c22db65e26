package h3

import (
	"bufio"
	"bytes"
	"io"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/net/http2/hpack"
)

// Frames and streams (RFC 9114, sections 7.2 and 6.2).
const (
	frameData, frameHeaders, frameSettings, frameGoAway, frameMaxPush = 0, 1, 4, 7, 13
	streamControl, streamQPACKEncoder, streamQPACKDecoder             = 0, 2, 3
)

// Error codes (RFC 9114, section 8.1).
const (
	NoError             = 0x100
	StreamCreationError = 0x103
	RequestRejected     = 0x10b
	RequestCancelled    = 0x10c
)

// Opening is our control stream: its type, and SETTINGS without one, so that QPACK has no dynamic table.
var Opening = []byte{streamControl, frameSettings, 0}

// Breach is how a server violates HTTP/3. EndsAll: the connection cannot go on (RFC 9114, section 8). IsShort: a response is incomplete.
type Breach struct {
	Text             string
	EndsAll, IsShort bool
}

func (b *Breach) Error() string { return b.Text }

// Reader reads frames off a stream, after Reset.
type Reader struct{ *bufio.Reader }

// NewReader makes a reader whose buffer serves one stream after another.
func NewReader(bufferBytes int) Reader { return Reader{bufio.NewReaderSize(nil, bufferBytes)} }

// frame reads the beginning of a frame. io.EOF means that the stream ended before it.
func (r Reader) frame() (kind, length uint64, err error) {
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
func (r Reader) next(length int) ([]byte, error) {
	if length > r.Size() {
		p := make([]byte, length)
		_, err := io.ReadFull(r, p)
		return p, err
	}
	p, err := r.Peek(length)
	r.Discard(len(p)) //nolint:errcheck // they are in the buffer
	return p, err
}

// ReadStreamType reads what a stream of the server begins with. Of a known one that is not the control stream there is nothing to read,
// without a dynamic table.
func ReadStreamType(r Reader) (isControl, isKnown bool) {
	kind, err := quicvarint.Read(r)
	return err == nil && kind == streamControl, err != nil || kind == streamControl || kind == streamQPACKEncoder || kind == streamQPACKDecoder
}

// ReadControl reads the control stream behind its type, to its end, and returns why it ended. For each GOAWAY it calls goAway with the first
// stream that the server ignores.
func ReadControl(r Reader, goAway func(id uint64)) error {
	for hasSettings := false; ; hasSettings = true {
		kind, length, err := r.frame()
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
