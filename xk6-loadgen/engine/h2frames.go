//gosec:disable G115 -- the numbers are small
package engine

import (
	"encoding/binary"

	"golang.org/x/net/http2"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h1"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

const (
	// speaksTLS is the error of a client without TLS.
	speaksTLS = "the server speaks TLS on this port; use https://"
	tooLong   = "headers are longer than 64 KiB"
	padded    = "padding is longer than its frame"
)

var noTable = []byte{0x20} // sets the size of the dynamic table to 0

// appendFrameHeader begins a frame (RFC 9113, section 4.1).
func appendFrameHeader(dst []byte, length int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	return append(dst, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags),
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

// frame is a frame of the server. Of a DATA frame the payload is only its padding's length, if any.
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
		id: binary.BigEndian.Uint32(raw[5:]) & lastStreamID, payload: raw[frameHeaderBytes:],
	}, rest, true
}

// received handles all frames in p. Payloads of DATA are passed over, without a copy. A stream ends once all of its last frame is in.
func (s *h2) received(p []byte) {
	c, r := s.conn, &s.frames
	s.lastReceived = c.loop.clock
	generation := c.generation
	for len(p) > 0 && c.generation == generation {
		if n := min(len(p), r.dataLeft); n > 0 {
			p = p[n:]
			r.dataLeft -= n
		} else {
			f, rest, whole := r.next(p)
			if !whole {
				return
			}
			p = rest
			if fault := s.take(&f); fault != "" {
				c.fail(ErrProtocol, CauseOther, fault)
				return
			}
		}
		if id := r.ends; id != 0 && r.dataLeft == 0 {
			r.ends = 0
			if st := s.find(id); st != nil {
				s.complete(st)
			}
		}
	}
}

// check returns the fault of a wrong length or stream. A fault, here and below, ends the connection (RFC 9113, section 5.4.1).
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

// take handles a frame, of which DATA may still lack its payload.
func (s *h2) take(f *frame) (fault string) {
	if !s.greeted {
		if fault := s.greeting(f); fault != "" {
			return fault
		}
	}
	if f.length > maxFrameBytes {
		return "a frame is longer than 16 KiB"
	}
	if (s.frames.blockID != 0) != (f.kind == http2.FrameContinuation) || f.kind == http2.FrameContinuation && f.id != s.frames.blockID {
		return "a header block is not continued as it should be"
	}
	if fault := f.check(); fault != "" {
		return fault
	}
	switch f.kind {
	case http2.FrameData:
		return s.data(f)
	case http2.FrameHeaders:
		return s.headers(f)
	case http2.FrameContinuation:
		return s.continuation(f)
	case http2.FrameRSTStream:
		return s.rstStream(f)
	case http2.FrameSettings:
		return s.settings(f)
	case http2.FramePing:
		if !f.flags.Has(http2.FlagPingAck) {
			l := s.conn.loop
			l.buffers.out = append(appendFrameHeader(l.buffers.out, 8, http2.FramePing, http2.FlagPingAck, 0), f.payload...)
		}
	case http2.FrameGoAway:
		s.goAway(f)
	case http2.FrameWindowUpdate:
		return s.windowUpdate(f)
	case http2.FramePushPromise:
		return "a push, which was refused"
	}
	return "" // Others are extensions (RFC 9113, section 5.5)
}

// greeting checks the first frame, which must be SETTINGS (RFC 9113, section 3.4), and otherwise says what the server seems to speak.
func (s *h2) greeting(f *frame) (fault string) {
	switch {
	case f.length == 'H'<<16|'T'<<8|'T':
		return "the server answers with HTTP/1: it does not speak HTTP/2 on this port"
	case f.length>>8 == int(recordAlert)<<8|3:
		return speaksTLS
	case f.kind != http2.FrameSettings || f.flags.Has(http2.FlagSettingsAck) || f.id != 0:
		return "the server's first frame is not SETTINGS: it does not speak HTTP/2 on this port"
	}
	return ""
}

// data handles the beginning of a DATA frame. Padding counts for the windows (RFC 9113, section 6.1), but is no body.
func (s *h2) data(f *frame) (fault string) {
	body := f.length
	if f.flags.Has(http2.FlagDataPadded) {
		if f.length == 0 || int(f.payload[0]) >= f.length {
			return padded
		}
		body -= 1 + int(f.payload[0])
	}
	if s.flow += int64(f.length); s.flow > windowBytes {
		return "the server sent more than the connection's window"
	}
	s.flow = s.updateWindow(0, s.flow)
	r := &s.frames
	r.dataLeft, r.ends = f.length-len(f.payload), 0
	st := s.find(f.id)
	if st == nil {
		return s.late(f.id)
	}
	if st.status == 0 {
		return "DATA before the response's headers"
	}
	if st.flow += int64(f.length); st.flow > windowBytes {
		return "the server sent more than a stream's window"
	}
	st.bodyBytes += int64(body)
	if f.flags.Has(http2.FlagDataEndStream) {
		r.ends = f.id
	} else {
		st.flow = s.updateWindow(f.id, st.flow)
	}
	return ""
}

// updateWindow gives a half-used window back, and returns how much is used then.
func (s *h2) updateWindow(id uint32, used int64) int64 {
	if used <= windowBytes/2 {
		return used
	}
	l := s.conn.loop
	l.buffers.out = appendFrameHeader(l.buffers.out, 4, http2.FrameWindowUpdate, 0, id)
	l.buffers.out = binary.BigEndian.AppendUint32(l.buffers.out, uint32(used))
	return 0
}

// unopened returns the fault of a frame on an idle stream (RFC 9113, section 5.1).
func (s *h2) unopened(id uint32) (fault string) {
	if id%2 == 0 || id >= s.nextID {
		return "a frame on a stream that was never opened"
	}
	return ""
}

// late returns the fault of a frame on a stream that has ended, unless we ended it and the server could not know.
func (s *h2) late(id uint32) (fault string) {
	if fault := s.unopened(id); fault != "" || s.tolerant {
		return fault
	}
	return "a frame on a stream that had ended"
}

// headers handles HEADERS (RFC 9113, section 6.2). A block that goes on in CONTINUATION is kept until its end.
func (s *h2) headers(f *frame) (fault string) {
	p, padding := f.payload, 0
	if f.flags.Has(http2.FlagHeadersPadded) {
		if len(p) == 0 {
			return padded
		}
		padding, p = int(p[0]), p[1:]
	}
	if f.flags.Has(http2.FlagHeadersPriority) {
		if len(p) < 5 {
			return "a HEADERS frame is too short for its priority"
		}
		p = p[5:]
	}
	if padding > len(p) {
		return padded
	}
	p = p[:len(p)-padding]
	ends := f.flags.Has(http2.FlagHeadersEndStream)
	if f.flags.Has(http2.FlagHeadersEndHeaders) {
		return s.headerBlock(f.id, p, ends)
	}
	r := &s.frames
	r.block, r.blockID, r.blockFrames, r.blockEnds = append(r.block[:0], p...), f.id, 1, ends
	return ""
}

// continuation adds to a header block (RFC 9113, section 6.10). Its bounds end a flood of small frames.
func (s *h2) continuation(f *frame) (fault string) {
	r := &s.frames
	r.blockFrames++
	if len(r.block)+len(f.payload) > h1.MaxHeadBytes || r.blockFrames > maxBlockFrames {
		return tooLong
	}
	r.block = append(r.block, f.payload...)
	if !f.flags.Has(http2.FlagContinuationEndHeaders) {
		return ""
	}
	whole := r.block
	r.block, r.blockID = nil, 0 // Long blocks are rare, so their memory is not kept
	return s.headerBlock(f.id, whole, r.blockEnds)
}

// headerBlock decodes a whole block, for an unknown stream too, since the dynamic table must follow. It is the head of the response, an
// interim response, or trailers.
func (s *h2) headerBlock(id uint32, p []byte, ends bool) (fault string) {
	c := s.conn
	b, wrong := s.decoder.Decode(p, &c.loop.caches.block)
	if wrong != "" {
		return "HPACK: " + wrong
	}
	st := s.find(id)
	if st == nil {
		return s.late(id)
	}
	st.headerBytes += int64(len(p))
	st.decodedBytes += b.DecodedBytes
	switch {
	case b.Malformed != "":
		s.fault(st, b.Malformed)
	case st.headerBytes > h1.MaxHeadBytes:
		s.fault(st, tooLong)
	case st.status != 0 && (b.Status != 0 || !ends):
		s.fault(st, "headers after the response's headers are not trailers")
	case st.status != 0:
		s.complete(st)
	case b.Status == 0:
		s.fault(st, "a response has no :status")
	case b.Status < 200:
		// The final response follows (RFC 9113, section 8.1). HTTP/2 has no 101.
		if ends || b.Status == 101 {
			s.fault(st, "an informational response ends the stream or switches protocols")
		}
	default:
		c.firstByte()
		st.status, st.length = int32(b.Status), b.Length
		if ends {
			s.complete(st)
		}
	}
	return ""
}

// rstStream ends an attempt that the server has reset, or requeues it.
func (s *h2) rstStream(f *frame) (fault string) {
	st := s.find(f.id)
	if st == nil {
		return s.unopened(f.id)
	}
	code := http2.ErrCode(binary.BigEndian.Uint32(f.payload))
	if code == http2.ErrCodeRefusedStream && f.id < s.earlyID {
		s.requeue(st) // It was opened before the server had named its limit
	} else {
		l, example := s.conn.loop, ""
		// Only the first error makes a text, so that a flood of them allocates nothing.
		if l.counts.example == "" {
			example = "the server reset the stream (" + code.String() + ")"
		}
		l.failure(s.conn, ErrRead, CauseReset, example, &st.attempt)
		s.remove(st)
	}
	s.refill()
	return ""
}

// settings obeys SETTINGS and acknowledges them (RFC 9113, sections 6.5.2 and 6.5.3).
func (s *h2) settings(f *frame) (fault string) {
	if f.flags.Has(http2.FlagSettingsAck) {
		return ""
	}
	l := s.conn.loop
	if !s.greeted {
		// A server that names no limit takes any number of streams.
		s.greeted, s.earlyID, s.limit = true, s.nextID, l.plan.Streams
	}
	for p := f.payload; len(p) > 0; p = p[6:] {
		value := binary.BigEndian.Uint32(p[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(p)) {
		case http2.SettingHeaderTableSize:
			if value < headers.TableBytes {
				// It does not want a table of our size, so it gets none (RFC 7541, section 6.3).
				s.update, s.shared, s.later = noTable, l.plan.h2.plain, l.plan.h2.plain
			}
		case http2.SettingEnablePush:
			if value != 0 {
				return "SETTINGS allow a push by the client"
			}
		case http2.SettingMaxConcurrentStreams:
			s.limit = int(min(value, uint32(l.plan.Streams)))
			if n := int64(value); l.streamLimit == 0 || n < l.streamLimit {
				l.streamLimit = n
			}
		case http2.SettingInitialWindowSize:
			// The windows of all streams change by the difference (RFC 9113, section 6.9.2).
			difference, tooLarge := int64(value)-s.initialWindow, value > maxWindowBytes
			s.initialWindow = int64(value)
			for i := range s.streams {
				if st := &s.streams[i]; st.id != 0 {
					st.window += difference
					tooLarge = tooLarge || st.window > maxWindowBytes
				}
			}
			if tooLarge {
				return "SETTINGS make a window too large"
			}
		case http2.SettingMaxFrameSize:
			if value < maxFrameBytes || value > 1<<24-1 {
				return "SETTINGS have a frame size that is not allowed"
			}
		}
	}
	l.buffers.out = appendFrameHeader(l.buffers.out, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	s.refill()
	return ""
}

// goAway: the server takes no new streams, and has ignored those above the last one that it names.
func (s *h2) goAway(f *frame) {
	last := binary.BigEndian.Uint32(f.payload) & lastStreamID
	s.draining, s.tolerant = true, true
	s.goneAway, s.goAwayCode = true, http2.ErrCode(binary.BigEndian.Uint32(f.payload[4:]))
	for i := range s.streams {
		if st := &s.streams[i]; st.id > last {
			s.requeue(st)
		}
	}
	s.refill()
}

// windowUpdate raises a window for request bodies (RFC 9113, section 6.9): the connection's for stream 0.
func (s *h2) windowUpdate(f *frame) (fault string) {
	more := int64(binary.BigEndian.Uint32(f.payload) & lastStreamID)
	if f.id == 0 {
		if s.sendWindow += more; more == 0 || s.sendWindow > maxWindowBytes {
			return "the connection's window is not raised as allowed"
		}
		return ""
	}
	st := s.find(f.id)
	switch {
	case st == nil:
		return s.unopened(f.id)
	case more == 0 || st.window+more > maxWindowBytes:
		s.fault(st, "a stream's window is not raised as allowed")
	default:
		st.window += more
	}
	return ""
}
