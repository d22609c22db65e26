package engine

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// speaksTLS is what a client without TLS says to a server with it.
const speaksTLS = "the server speaks TLS on this port; use https://"

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
func (r *frameReader) needed(p []byte) int {
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
	raw := p
	if len(r.kept) > 0 {
		for len(r.kept) < r.needed(r.kept) {
			missing := r.needed(r.kept) - len(r.kept)
			if len(p) < missing {
				r.kept = append(r.kept, p...)
				return f, nil, false
			}
			r.kept, p = append(r.kept, p[:missing]...), p[missing:]
		}
		raw, rest = r.kept, p
		r.kept = r.kept[:0]
	} else {
		n := r.needed(p)
		if len(p) >= frameHeaderBytes {
			n = r.needed(p)
		}
		if len(p) < n {
			r.kept = append(r.kept, p...)
			return f, nil, false
		}
		raw, rest = p[:n], p[n:]
	}
	return frame{
		length: int(raw[0])<<16 | int(raw[1])<<8 | int(raw[2]), kind: http2.FrameType(raw[3]), flags: http2.Flags(raw[4]),
		id: binary.BigEndian.Uint32(raw[5:]) & lastStreamID, payload: raw[frameHeaderBytes:],
	}, rest, true
}

// isTLSAlert tells whether what came in so far is the alert of a server that expects TLS.
func (r *frameReader) isTLSAlert() bool {
	return len(r.kept) > 1 && r.kept[0] == byte(recordAlert) && r.kept[1] == 3
}

func (s *h2) received(p []byte) {
	c := s.conn
	s.lastReceived = c.loop.clock
	generation := c.generation
	for len(p) > 0 {
		if r := &s.frames; r.dataLeft > 0 {
			n := min(len(p), r.dataLeft)
			p = p[n:]
			if r.dataLeft -= n; r.dataLeft == 0 {
				s.dataEnded()
			}
		} else {
			f, rest, whole := r.next(p)
			if !whole {
				return
			}
			p = rest
			if fault := s.take(&f); fault != "" {
				c.fail(ErrProtocol, fault)
				return
			}
		}
		if c.generation != generation || c.fd < 0 {
			return
		}
	}
}

// take acts on a frame. What it returns is a fault of the connection (RFC 9113, section 5.4.1); empty: none.
func (s *h2) take(f *frame) string {
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
		return s.ping(f)
	case http2.FrameGoAway:
		return s.goAway(f)
	case http2.FrameWindowUpdate:
		return s.windowUpdate(f)
	case http2.FramePushPromise:
		return "a push, which was refused"
	case http2.FramePriority:
		if f.length != 5 || f.id == 0 {
			return "a PRIORITY frame is malformed"
		}
	}
	// Others are extensions, to be ignored (RFC 9113, section 5.5).
	return ""
}

// greeting checks that a server's first frame is what HTTP/2 demands: SETTINGS.
func (s *h2) greeting(f *frame) string {
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

// data acts on the beginning of a DATA frame; its data is counted as if all of it had come in.
func (s *h2) data(f *frame) string {
	if f.id == 0 {
		return "DATA on stream 0"
	}
	body := f.length
	if f.flags.Has(http2.FlagDataPadded) {
		if f.length == 0 || int(f.payload[0]) >= f.length {
			return "padding is longer than its frame"
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
	ends := f.flags.Has(http2.FlagDataEndStream)
	if st.flow += int64(f.length); st.flow > windowBytes {
		return "the server sent more than a stream's window"
	}
	if !ends {
		st.flow = s.updateWindow(f.id, st.flow)
	}
	st.bodyBytes += int64(body)
	if ends {
		r.ends = f.id
		if r.dataLeft == 0 {
			s.dataEnded()
		}
	}
	return ""
}

// updateWindow gives the server its window back when half of it is used, and returns what is used then.
func (s *h2) updateWindow(id uint32, used int64) int64 {
	if used <= windowBytes/2 {
		return used
	}
	l := s.conn.loop
	l.out = appendFrameHeader(l.out, 4, http2.FrameWindowUpdate, 0, id)
	l.out = binary.BigEndian.AppendUint32(l.out, uint32(used))
	return 0
}

// dataEnded: the last byte of a DATA frame has come in.
func (s *h2) dataEnded() {
	if id := s.frames.ends; id != 0 {
		s.frames.ends = 0
		if st := s.find(id); st != nil {
			s.complete(st)
		}
	}
}

// late judges a frame for a stream that is not under way.
func (s *h2) late(id uint32) string {
	if id%2 == 0 || id >= s.nextID {
		return "a frame on a stream that was never opened"
	}
	if !s.tolerant {
		return "a frame on a stream that had ended"
	}
	return ""
}

func (s *h2) headers(f *frame) string {
	if f.id == 0 {
		return "HEADERS on stream 0"
	}
	p, padding := f.payload, 0
	if f.flags.Has(http2.FlagHeadersPadded) {
		if len(p) == 0 {
			return "padding is longer than its frame"
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
		return "padding is longer than its frame"
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

func (s *h2) continuation(f *frame) string {
	r := &s.frames
	r.blockFrames++
	if len(r.block)+len(f.payload) > maxHeadBytes || r.blockFrames > maxBlockFrames {
		return "headers are longer than 64 KiB"
	}
	r.block = append(r.block, f.payload...)
	if !f.flags.Has(http2.FlagContinuationEndHeaders) {
		return ""
	}
	whole := r.block
	// Long blocks are rare: no connection holds on to memory for them.
	r.block, r.blockID = nil, 0
	return s.headerBlock(f.id, whole, r.blockEnds)
}

// headerBlock acts on a whole header block: a response's headers or trailers.
func (s *h2) headerBlock(id uint32, p []byte, ends bool) string {
	c := s.conn
	b, fault := s.decoder.decode(p, &c.loop.lastBlock)
	if fault != "" {
		return "HPACK: " + string(fault)
	}
	st := s.find(id)
	if st == nil {
		return s.late(id)
	}
	st.headerBytes += int64(len(p))
	st.decodedBytes += b.decodedBytes
	switch {
	case b.malformed != "":
		s.fault(st, b.malformed)
	case st.headerBytes > maxHeadBytes:
		s.fault(st, "headers are longer than 64 KiB")
	case st.status != 0:
		switch {
		case b.status != 0 || !ends:
			s.fault(st, "headers after the response's headers are not trailers")
		default:
			s.complete(st)
		}
	case b.status == 0:
		s.fault(st, "a response has no :status")
	case b.status < 200:
		// Informational; the final response follows (RFC 9113, section 8.1). 101 does not exist in HTTP/2.
		if ends || b.status == 101 {
			s.fault(st, "an informational response ends the stream or switches protocols")
		}
	default:
		c.firstByte()
		st.status, st.length = int32(b.status), b.length
		if ends {
			s.complete(st)
		}
	}
	return ""
}

func (s *h2) rstStream(f *frame) string {
	if f.length != 4 || f.id == 0 {
		return "an RST_STREAM frame is malformed"
	}
	st := s.find(f.id)
	if st == nil {
		if f.id%2 == 0 || f.id >= s.nextID {
			return "a frame on a stream that was never opened"
		}
		return ""
	}
	code := http2.ErrCode(binary.BigEndian.Uint32(f.payload))
	if code == http2.ErrCodeRefusedStream && f.id < s.earlyID {
		// It was opened before the server had said how many it takes.
		s.requeue(st)
	} else {
		s.conn.loop.failure(ErrRead, resetExample(code))
		s.remove(st)
	}
	s.refill()
	return ""
}

// resetExample names the code; its texts are constant, so that a flood of resets allocates nothing.
func resetExample(code http2.ErrCode) string {
	switch code {
	case http2.ErrCodeRefusedStream:
		return "the server reset the stream (REFUSED_STREAM)"
	case http2.ErrCodeCancel:
		return "the server reset the stream (CANCEL)"
	case http2.ErrCodeInternal:
		return "the server reset the stream (INTERNAL_ERROR)"
	case http2.ErrCodeProtocol:
		return "the server reset the stream (PROTOCOL_ERROR)"
	case http2.ErrCodeEnhanceYourCalm:
		return "the server reset the stream (ENHANCE_YOUR_CALM)"
	}
	return "the server reset the stream"
}

func (s *h2) settings(f *frame) string {
	if f.id != 0 || f.length%6 != 0 || f.flags.Has(http2.FlagSettingsAck) && f.length != 0 {
		return "a SETTINGS frame is malformed"
	}
	if f.flags.Has(http2.FlagSettingsAck) {
		return ""
	}
	l := s.conn.loop
	for p := f.payload; len(p) > 0; p = p[6:] {
		value := binary.BigEndian.Uint32(p[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(p)) {
		case http2.SettingHeaderTableSize:
			if value < hpackTableBytes && !s.plain {
				s.plain, s.sayPlain = true, true
			}
		case http2.SettingEnablePush:
			if value != 0 {
				return "SETTINGS allow a push by the client"
			}
		case http2.SettingMaxConcurrentStreams:
			s.limit = int(min(value, uint32(l.plan.Streams)))
			if n := int64(value); l.maxConcurrentStreams == 0 || n < l.maxConcurrentStreams {
				l.maxConcurrentStreams = n
			}
		case http2.SettingInitialWindowSize:
			if value > maxWindowBytes {
				return "SETTINGS have a window that is too large"
			}
			if fault := s.setInitialWindow(int64(value)); fault != "" {
				return fault
			}
		case http2.SettingMaxFrameSize:
			if value < maxFrameBytes || value > 1<<24-1 {
				return "SETTINGS have a frame size that is not allowed"
			}
		}
	}
	l.out = appendFrameHeader(l.out, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	if !s.greeted {
		s.greeted, s.earlyID = true, s.nextID
		if !s.namesLimit(f.payload) {
			s.limit = l.plan.Streams
		}
	}
	s.refill()
	return ""
}

// namesLimit tells whether SETTINGS say how many streams there may be.
func (s *h2) namesLimit(p []byte) bool {
	for ; len(p) > 0; p = p[6:] {
		if http2.SettingID(binary.BigEndian.Uint16(p)) == http2.SettingMaxConcurrentStreams {
			return true
		}
	}
	return false
}

// setInitialWindow changes the windows of all streams by the difference (RFC 9113, section 6.9.2).
func (s *h2) setInitialWindow(size int64) string {
	difference := size - s.initialWindow
	s.initialWindow = size
	for i := range s.streams {
		if st := &s.streams[i]; st.id != 0 {
			if st.window += difference; st.window > maxWindowBytes {
				return "a stream's window is too large"
			}
		}
	}
	return ""
}

func (s *h2) ping(f *frame) string {
	if f.length != 8 || f.id != 0 {
		return "a PING frame is malformed"
	}
	if !f.flags.Has(http2.FlagPingAck) {
		l := s.conn.loop
		l.out = append(appendFrameHeader(l.out, 8, http2.FramePing, http2.FlagPingAck, 0), f.payload...)
	}
	return ""
}

// goAway: the server takes no new streams, and has not looked at those above the last one it names.
func (s *h2) goAway(f *frame) string {
	if f.length < 8 || f.id != 0 {
		return "a GOAWAY frame is malformed"
	}
	last := binary.BigEndian.Uint32(f.payload) & lastStreamID
	s.draining, s.tolerant = true, true
	for i := range s.streams {
		if st := &s.streams[i]; st.id > last {
			s.requeue(st)
		}
	}
	s.refill()
	return ""
}

func (s *h2) windowUpdate(f *frame) string {
	if f.length != 4 {
		return "a WINDOW_UPDATE frame is malformed"
	}
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
		if f.id%2 == 0 || f.id >= s.nextID {
			return "a frame on a stream that was never opened"
		}
	case more == 0 || st.window+more > maxWindowBytes:
		s.fault(st, "a stream's window is not raised as allowed")
	default:
		st.window += more
	}
	return ""
}
