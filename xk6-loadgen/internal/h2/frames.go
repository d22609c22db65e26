//gosec:disable G115 -- the numbers are small
package h2

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/net/http2"
)

const (
	frameHeaderBytes   = 9
	maxFrameBytes      = 1 << 14   // Every peer takes frames of maxFrameBytes (RFC 9113, section 6.5.2), and so do we
	initialWindowBytes = 1<<16 - 1 // The window of a new connection (RFC 9113, section 6.9.2)
	maxWindowBytes     = 1<<31 - 1
)

// LastStreamID is the greatest identifier of a stream (RFC 9113, section 4.1).
const LastStreamID = 1<<31 - 1

// Windows are the receive windows that a client advertises, in bytes (RFC 9113, section 5.2): of each stream, and of the connection.
type Windows struct{ Stream, Connection int64 }

// LeastConnectionWindow is the window with which every connection begins. It can only be widened (RFC 9113, section 6.9.2).
const LeastConnectionWindow = initialWindowBytes

// preface opens a connection (RFC 9113, section 3.4): no pushes, and the receive windows.
func (w Windows) preface() []byte {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&b, nil)
	framer.WriteSettings( //nolint:errcheck // into memory
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(w.Stream)},
	)
	if wider := w.Connection - initialWindowBytes; wider > 0 {
		framer.WriteWindowUpdate(0, uint32(wider)) //nolint:errcheck // into memory
	}
	return b.Bytes()
}

// appendFrameHeader begins a frame (RFC 9113, section 4.1).
func appendFrameHeader(dst []byte, length int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	return append(dst, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags),
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

// appendNumber appends a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE (RFC 9113, sections 6.4 and 6.9).
func appendNumber(dst []byte, kind http2.FrameType, id, number uint32) []byte {
	return binary.BigEndian.AppendUint32(appendFrameHeader(dst, 4, kind, 0, id), number)
}

// AppendGoAway appends GOAWAY (RFC 9113, section 6.8), which ends a connection in order.
func AppendGoAway(dst []byte) []byte {
	return append(appendFrameHeader(dst, 8, http2.FrameGoAway, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0)
}

// frame is a frame of the server. The payload of a DATA frame is only its padding's length, if any.
type frame struct {
	length  int
	kind    http2.FrameType
	flags   http2.Flags
	id      uint32
	payload []byte
}

// frameReader cuts what comes in into frames, wherever reads end. kept is the beginning of a frame whose rest is missing.
type frameReader struct {
	kept        []byte
	dataLeft    int // the rest of a DATA frame's payload; ends is the stream that it ends, or 0
	ends        uint32
	block       []byte // a header block that goes on in CONTINUATION frames of blockID; 0: there is none
	blockID     uint32
	blockFrames int
	blockEnds   bool
}

// needed is how many bytes the frame takes that begins with p, as far as p tells.
func needed(p []byte) int {
	if len(p) < frameHeaderBytes {
		return frameHeaderBytes
	}
	length := int(p[0])<<16 | int(p[1])<<8 | int(p[2])
	switch {
	case length > maxFrameBytes:
		return frameHeaderBytes // Its header suffices to refuse it
	case http2.FrameType(p[3]) != http2.FrameData:
		return frameHeaderBytes + length
	case http2.Flags(p[4]).Has(http2.FlagDataPadded) && length > 0:
		return frameHeaderBytes + 1
	}
	return frameHeaderBytes
}

// next takes a frame off p, or keeps p for the next call. The frame is valid until then.
func (r *frameReader) next(p []byte) (f frame, rest []byte, whole bool) {
	var raw []byte
	if n := needed(p); len(r.kept) == 0 && len(p) >= n {
		raw, rest = p[:n], p[n:]
	} else {
		// Up to the end of the header first, which has the frame's length.
		for n = needed(r.kept); len(r.kept) < n; n = needed(r.kept) {
			if len(p) == 0 {
				return f, nil, false
			}
			missing := min(n-len(r.kept), len(p))
			r.kept, p = append(r.kept, p[:missing]...), p[missing:]
		}
		raw, rest, r.kept = r.kept, p, r.kept[:0]
	}
	return frame{
		length: int(raw[0])<<16 | int(raw[1])<<8 | int(raw[2]), kind: http2.FrameType(raw[3]), flags: http2.Flags(raw[4]),
		id: binary.BigEndian.Uint32(raw[5:]) & LastStreamID, payload: raw[frameHeaderBytes:],
	}, rest, true
}

// check returns the fault of a wrong length or stream.
func (f *frame) check() (fault string) {
	isWrong := false
	switch f.kind {
	case http2.FrameData, http2.FrameHeaders:
		isWrong = f.id == 0
	case http2.FramePriority:
		isWrong = f.length != 5 || f.id == 0
	case http2.FrameRSTStream:
		isWrong = f.length != 4 || f.id == 0
	case http2.FrameSettings:
		isWrong = f.length%6 != 0 || f.flags.Has(http2.FlagSettingsAck) && f.length != 0 || f.id != 0
	case http2.FramePing:
		isWrong = f.length != 8 || f.id != 0
	case http2.FrameGoAway:
		isWrong = f.length < 8 || f.id != 0
	case http2.FrameWindowUpdate:
		isWrong = f.length != 4
	}
	if isWrong {
		return "a malformed " + f.kind.String() + " frame"
	}
	return ""
}

// number is the payload of RST_STREAM and WINDOW_UPDATE, and the beginning of GOAWAY's.
func (f *frame) number() uint32 { return binary.BigEndian.Uint32(f.payload) }
