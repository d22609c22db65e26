// Package h3 reads and writes the frames of HTTP/3 (RFC 9114) and its header blocks (QPACK, RFC 9204), on streams of bytes. It knows nothing
// of QUIC, goroutines and loops.
//
// Encode makes a request, Response.Read reads a response, ReadStreamType and ReadControl read the streams that a server opens. A violation
// of HTTP/3 is a Breach; any other error is the stream's own.
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

// ReadStreamType reads what a stream of the server begins with. Without a dynamic table only the control stream says more.
func ReadStreamType(r *bufio.Reader) (isControl, isKnown bool) {
	kind, err := quicvarint.Read(r)
	return err == nil && kind == streamControl, err != nil || kind == streamControl || kind == streamQPACKEncoder || kind == streamQPACKDecoder
}

// ReadControl reads the control stream behind its type, and returns why it ended. It calls goAway for each
// GOAWAY, with the first stream that the server ignores.
func ReadControl(r *bufio.Reader, goAway func(id uint64)) error {
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
