package engine

import "golang.org/x/net/http2"

// speaksTLS is what a client without TLS says to a server with it.
const speaksTLS = "the server speaks TLS on this port; use https://"

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
			if fault := s.take(&f); fault.text != "" {
				s.end(fault)
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

// fault is what ends a connection (RFC 9113, section 5.4.1), with the code that the server is told; without text there is none.
// Without a code the server is told nothing: it does not speak HTTP/2.
type fault struct {
	code http2.ErrCode
	text string
}

func protocolFault(text string) fault { return fault{http2.ErrCodeProtocol, text} }

// malformed is the fault of a frame that has the wrong size, or else is on the wrong stream.
func malformed(text string, bySize bool) fault {
	if bySize {
		return fault{http2.ErrCodeFrameSize, text}
	}
	return protocolFault(text)
}

// end says what was wrong, where that can be said at once, and fails the connection.
func (s *h2) end(f fault) {
	if s.lastWord = f.code; f.code != http2.ErrCodeNo {
		s.conn.sayGoodbye()
	}
	s.conn.fail(ErrProtocol, CauseOther, f.text)
}

// take acts on a frame, and returns what ends the connection, if anything does.
func (s *h2) take(f *frame) fault {
	if !s.greeted {
		if fault := s.greeting(f); fault.text != "" {
			return fault
		}
	}
	if f.length > maxFrameBytes {
		return fault{http2.ErrCodeFrameSize, "a frame is longer than 16 KiB"}
	}
	if (s.frames.blockID != 0) != (f.kind == http2.FrameContinuation) || f.kind == http2.FrameContinuation && f.id != s.frames.blockID {
		return protocolFault("a header block is not continued as it should be")
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
		return protocolFault("a push, which was refused")
	case http2.FramePriority:
		if f.length != 5 || f.id == 0 {
			return malformed("a PRIORITY frame is malformed", f.length != 5)
		}
	}
	// Others are extensions, to be ignored (RFC 9113, section 5.5).
	return fault{}
}

// greeting checks that a server's first frame is what HTTP/2 demands: SETTINGS.
func (s *h2) greeting(f *frame) fault {
	switch {
	case f.length == 'H'<<16|'T'<<8|'T':
		return fault{text: "the server answers with HTTP/1: it does not speak HTTP/2 on this port"}
	case f.length>>8 == int(recordAlert)<<8|3:
		return fault{text: speaksTLS}
	case f.kind != http2.FrameSettings || f.flags.Has(http2.FlagSettingsAck) || f.id != 0:
		return fault{text: "the server's first frame is not SETTINGS: it does not speak HTTP/2 on this port"}
	}
	return fault{}
}

// data acts on the beginning of a DATA frame; its data is counted as if all of it had come in.
func (s *h2) data(f *frame) fault {
	if f.id == 0 {
		return protocolFault("DATA on stream 0")
	}
	body := f.length
	if f.flags.Has(http2.FlagDataPadded) {
		if f.length == 0 || int(f.payload[0]) >= f.length {
			return protocolFault("padding is longer than its frame")
		}
		body -= 1 + int(f.payload[0])
	}
	if s.flow += int64(f.length); s.flow > windowBytes {
		return fault{http2.ErrCodeFlowControl, "the server sent more than the connection's window"}
	}
	s.flow = s.updateWindow(0, s.flow)
	r := &s.frames
	r.dataLeft, r.ends = f.length-len(f.payload), 0
	st := s.find(f.id)
	if st == nil {
		return s.late(f.id)
	}
	if st.status == 0 {
		return protocolFault("DATA before the response's headers")
	}
	if st.flow += int64(f.length); st.flow > windowBytes {
		return fault{http2.ErrCodeFlowControl, "the server sent more than a stream's window"}
	}
	st.bodyBytes += int64(body)
	if f.flags.Has(http2.FlagDataEndStream) {
		r.ends = f.id
	} else {
		st.flow = s.updateWindow(f.id, st.flow)
	}
	return fault{}
}

// unopened is the fault of a frame for a stream that never was.
func (s *h2) unopened(id uint32) fault {
	if id%2 == 0 || id >= s.nextID {
		return protocolFault("a frame on a stream that was never opened")
	}
	return fault{}
}

// late judges a frame that may come only while its stream is under way, which it is not.
func (s *h2) late(id uint32) fault {
	if fault := s.unopened(id); fault.text != "" || s.tolerant {
		return fault
	}
	return fault{http2.ErrCodeStreamClosed, "a frame on a stream that had ended"}
}

func (s *h2) headers(f *frame) fault {
	if f.id == 0 {
		return protocolFault("HEADERS on stream 0")
	}
	p, padding := f.payload, 0
	if f.flags.Has(http2.FlagHeadersPadded) {
		if len(p) == 0 {
			return protocolFault("padding is longer than its frame")
		}
		padding, p = int(p[0]), p[1:]
	}
	if f.flags.Has(http2.FlagHeadersPriority) {
		if len(p) < 5 {
			return fault{http2.ErrCodeFrameSize, "a HEADERS frame is too short for its priority"}
		}
		p = p[5:]
	}
	if padding > len(p) {
		return protocolFault("padding is longer than its frame")
	}
	p = p[:len(p)-padding]
	ends := f.flags.Has(http2.FlagHeadersEndStream)
	if f.flags.Has(http2.FlagHeadersEndHeaders) {
		return s.headerBlock(f.id, p, ends)
	}
	r := &s.frames
	r.block, r.blockID, r.blockFrames, r.blockEnds = append(r.block[:0], p...), f.id, 1, ends
	return fault{}
}

func (s *h2) continuation(f *frame) fault {
	r := &s.frames
	r.blockFrames++
	if len(r.block)+len(f.payload) > maxHeadBytes || r.blockFrames > maxBlockFrames {
		return fault{http2.ErrCodeEnhanceYourCalm, "headers are longer than 64 KiB"}
	}
	r.block = append(r.block, f.payload...)
	if !f.flags.Has(http2.FlagContinuationEndHeaders) {
		return fault{}
	}
	whole := r.block
	// Long blocks are rare: no connection holds on to memory for them.
	r.block, r.blockID = nil, 0
	return s.headerBlock(f.id, whole, r.blockEnds)
}

// headerBlock acts on a whole header block: a response's headers or trailers.
func (s *h2) headerBlock(id uint32, p []byte, ends bool) fault {
	c := s.conn
	b, wrong := s.decoder.decode(p, &c.loop.lastBlock)
	if wrong != "" {
		return fault{http2.ErrCodeCompression, "HPACK: " + wrong}
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
	return fault{}
}
