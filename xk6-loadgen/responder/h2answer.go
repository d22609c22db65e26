package responder

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	frameHeaderBytes = 9
	// maxFrameBytes is what every peer takes (RFC 9113, section 6.5.2), and the most that we take.
	maxFrameBytes = 1 << 14
	slotBytes     = frameHeaderBytes + maxFrameBytes
	// framesAtATime are sent in one call.
	framesAtATime = 16
	lastStreamID  = 1<<31 - 1
	maxWindow     = 1<<31 - 1
	// A connection and its streams have this window before anything is said (RFC 9113, section 6.9.2).
	initialWindow = 1<<16 - 1
	// maxStreams may be under way on a connection. Servers take 100 to 256; more is room for loads that ask for more.
	maxStreams = 1000
)

// h2Answer is what HTTP/2 sends, made once. Only stream identifiers are written into copies of it.
type h2Answer struct {
	bodyBytes int64
	// greeting is our SETTINGS, with the window for request bodies.
	greeting []byte
	// whole is HEADERS and, where the body fits into one frame, DATA, which begins at dataAt. head is HEADERS that end the
	// stream, begin those that do not.
	whole, head, begin []byte
	dataAt             int
}

func newH2Answer(bodyBytes int64) *h2Answer {
	a := &h2Answer{bodyBytes: bodyBytes}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	// Without the dynamic table all blocks are the same.
	encoder.SetMaxDynamicTableSize(0)
	encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"}) //nolint:errcheck // into memory
	// The first block says that the table is empty, which the client's has been all along: it is left out.
	block.Reset()
	for _, f := range []hpack.HeaderField{
		{Name: ":status", Value: "200"}, {Name: "content-type", Value: contentType}, {Name: "content-length", Value: strconv.FormatInt(bodyBytes, 10)},
	} {
		encoder.WriteField(f) //nolint:errcheck // into memory
	}
	frames := func(write func(*http2.Framer)) []byte {
		var b bytes.Buffer
		write(http2.NewFramer(&b, nil))
		return b.Bytes()
	}
	headers := func(ends bool) func(*http2.Framer) {
		return func(f *http2.Framer) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: ends}) //nolint:errcheck // into memory
		}
	}
	a.greeting = frames(func(f *http2.Framer) {
		f.WriteSettings( //nolint:errcheck // into memory
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow},
		)
		f.WriteWindowUpdate(0, maxWindow-initialWindow) //nolint:errcheck // into memory
	})
	a.head, a.begin = frames(headers(true)), frames(headers(false))
	a.whole = a.head
	if bodyBytes > 0 && bodyBytes <= maxFrameBytes {
		a.whole, a.dataAt = bytes.Clone(a.begin), len(a.begin)
		a.whole = append(a.whole, frames(func(f *http2.Framer) {
			f.WriteData(1, true, filler[:bodyBytes]) //nolint:errcheck // into memory
		})...)
	}
	return a
}

// newFrameBlock is a block of DATA frames whose headers are still to be written.
func newFrameBlock() []byte {
	block := make([]byte, framesAtATime*slotBytes)
	for at := 0; at < len(block); at += slotBytes {
		copy(block[at+frameHeaderBytes:at+slotBytes], filler)
	}
	return block
}

// setStream writes the stream into a frame's header.
func setStream(frame []byte, id uint32) { binary.BigEndian.PutUint32(frame[5:], id) }

// appendFrameHeader begins a frame (RFC 9113, section 4.1).
func appendFrameHeader(dst []byte, length int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	return append(dst, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags),
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}
