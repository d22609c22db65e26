package engine

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// appendFrameHeader begins a frame (RFC 9113, section 4.1).
func appendFrameHeader(dst []byte, length int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	return append(dst, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags),
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

// frame is one frame as it came in. Of a DATA frame the payload is the length of its padding only, if it has one: its
// data is counted as it passes.
type frame struct {
	length  int
	kind    http2.FrameType
	flags   http2.Flags
	id      uint32
	payload []byte
}

// frameReader cuts what comes in into frames. It keeps the beginning of a frame whose end has not come in yet, never more
// than one frame may have.
type frameReader struct {
	kept []byte
	// dataLeft is what is to come of a DATA frame's payload; ends is the stream that it ends, or 0.
	dataLeft int
	ends     uint32
	// block is a header block that goes on in CONTINUATION frames of blockID; 0: there is none.
	block       []byte
	blockID     uint32
	blockFrames int
	blockEnds   bool
}

// needed is how many bytes a frame takes that begins like this, as far as can be told.
func needed(p []byte) int {
	if len(p) < frameHeaderBytes {
		return frameHeaderBytes
	}
	length := int(p[0])<<16 | int(p[1])<<8 | int(p[2])
	switch {
	case length > maxFrameBytes:
		// It is refused by its header.
		return frameHeaderBytes
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
		// Up to the end of the header first: it says how long the frame is.
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
		id: binary.BigEndian.Uint32(raw[5:]) & lastStreamID, payload: raw[frameHeaderBytes:],
	}, rest, true
}
