//gosec:disable G115 -- the numbers are small
package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

// Kind says what the server has done.
type Kind uint8

const (
	None      Kind = iota // None: nothing for the caller. All bytes were taken.
	Answered              // Answered: the headers of the final response are in, and the stream goes on.
	Ended                 // Ended: the response is complete.
	Malformed             // Malformed: the response is against RFC 9113, section 8, and the stream was reset. Text says how.
	Reset                 // Reset: the server has reset the stream, with Code.
	Refused               // Refused: the server has not handled the request. It was opened before the server had named its limit.
	Settings              // Settings: the server's SETTINGS were obeyed. Limit and NamedLimit may have changed.
	GoAway                // GoAway: the server takes no new streams. It says why by Code, and has ignored those above Last.
	Fault                 // Fault: the connection cannot go on (RFC 9113, section 5.4.1). Text says why.
)

// event is about what the last kind says that it has.
type event[T any] struct {
	// Stream is valid until the next Request. It has ended, unless the kind is Answered.
	Stream *Stream[T]
	Text   string
	Code   http2.ErrCode
	Last   uint32
}

const (
	padded         = "padding is longer than its frame"
	maxBlockFrames = 64 // No header block needs more frames of 16 KiB.
)

// Next takes bytes off p, up to the next event, and returns the others. The event's fields are the Conn's: to return a struct of them would
// cost more than to read a frame. Payloads of DATA are passed over, without a copy. A stream ends once all of its last frame is in.
func (c *Conn[T]) Next(p []byte) (kind Kind, rest []byte) {
	r := &c.frames
	for len(p) > 0 {
		if n := min(len(p), r.dataLeft); n > 0 {
			p = p[n:]
			r.dataLeft -= n
		} else {
			f, rest, whole := r.next(p)
			if !whole {
				return None, nil
			}
			p = rest
			if kind = c.take(&f); kind != None {
				return kind, p
			}
		}
		if id := r.ends; id != 0 && r.dataLeft == 0 {
			r.ends = 0
			if st := c.streams.find(id); st != nil {
				return c.ended(st), p
			}
		}
	}
	return None, nil
}

// fault is the event of a fault, or None for "".
func (c *Conn[T]) fault(text string) Kind {
	if text == "" {
		return None
	}
	c.Text = text
	return Fault
}

func (c *Conn[T]) ended(st *Stream[T]) Kind {
	if len(st.unsent) > 0 {
		// The response came before the whole request was sent: the server does not want the rest.
		c.reset(st, http2.ErrCodeCancel)
	}
	c.remove(st)
	c.Stream = st
	return Ended
}

// malformed ends one stream for a malformed response (RFC 9113, section 8.1.1). The connection goes on.
func (c *Conn[T]) malformed(st *Stream[T], text string) Kind {
	c.reset(st, http2.ErrCodeProtocol)
	c.remove(st)
	c.Stream, c.Text = st, text
	return Malformed
}

// take handles a frame, of which DATA may still lack its payload.
func (c *Conn[T]) take(f *frame) Kind {
	if !c.greeted {
		if fault := f.greeting(); fault != "" {
			return c.fault(fault)
		}
	}
	if f.length > maxFrameBytes {
		return c.fault("a frame is longer than 16 KiB")
	}
	if (c.frames.blockID != 0) != (f.kind == http2.FrameContinuation) || f.kind == http2.FrameContinuation && f.id != c.frames.blockID {
		return c.fault("a header block is not continued as it should be")
	}
	if fault := f.check(); fault != "" {
		return c.fault(fault)
	}
	switch f.kind {
	case http2.FrameData:
		return c.fault(c.data(f))
	case http2.FrameHeaders:
		return c.headers(f)
	case http2.FrameContinuation:
		return c.continuation(f)
	case http2.FrameRSTStream:
		return c.rstStream(f)
	case http2.FrameSettings:
		return c.settings(f)
	case http2.FramePing:
		if !f.flags.Has(http2.FlagPingAck) {
			c.shared.Out = append(appendFrameHeader(c.shared.Out, 8, http2.FramePing, http2.FlagPingAck, 0), f.payload...)
		}
	case http2.FrameGoAway:
		c.tolerant = true
		c.Last, c.Code = f.number()&LastStreamID, http2.ErrCode(binary.BigEndian.Uint32(f.payload[4:]))
		return GoAway
	case http2.FrameWindowUpdate:
		return c.windowUpdate(f)
	case http2.FramePushPromise:
		return c.fault("a push, which was refused")
	}
	return None // Others are extensions (RFC 9113, section 5.5)
}

// greeting checks the first frame, which must be SETTINGS (RFC 9113, section 3.4), and otherwise says what the server seems to speak.
func (f *frame) greeting() (fault string) {
	switch {
	case f.length == 'H'<<16|'T'<<8|'T':
		return "the server answers with HTTP/1: it does not speak HTTP/2 on this port"
	case f.length>>8 == headers.TLSAlert<<8|3:
		return headers.SpeaksTLS
	case f.kind != http2.FrameSettings || f.flags.Has(http2.FlagSettingsAck) || f.id != 0:
		return "the server's first frame is not SETTINGS: it does not speak HTTP/2 on this port"
	}
	return ""
}

// data handles the beginning of a DATA frame. Padding counts for the windows (RFC 9113, section 6.1), but is no body.
func (c *Conn[T]) data(f *frame) (fault string) {
	body := f.length
	if f.flags.Has(http2.FlagDataPadded) {
		if f.length == 0 || int(f.payload[0]) >= f.length {
			return padded
		}
		body -= 1 + int(f.payload[0])
	}
	// No frame is longer than half of the connection's window, so no server can be seen to exceed it.
	c.flow = c.updateWindow(0, c.flow+int64(f.length), c.blocks.windows.Connection)
	r := &c.frames
	r.dataLeft, r.ends = f.length-len(f.payload), 0
	st := c.streams.find(f.id)
	if st == nil {
		return c.late(f.id)
	}
	if st.Status == 0 {
		return "DATA before the response's headers"
	}
	if st.flow += int64(f.length); st.flow > c.blocks.windows.Stream {
		return "the server sent more than a stream's window"
	}
	st.BodyBytes += int64(body)
	if f.flags.Has(http2.FlagDataEndStream) {
		r.ends = f.id
	} else {
		st.flow = c.updateWindow(f.id, st.flow, c.blocks.windows.Stream)
	}
	return ""
}

// updateWindow gives a window back once half of it is used (as nghttp2 does), and returns how much is used then.
func (c *Conn[T]) updateWindow(id uint32, used, window int64) int64 {
	if used < max(1, window/2) {
		return used
	}
	c.shared.Out = appendNumber(c.shared.Out, http2.FrameWindowUpdate, id, uint32(used))
	return 0
}

// unopened returns the fault of a frame on an idle stream (RFC 9113, section 5.1).
func (c *Conn[T]) unopened(id uint32) (fault string) {
	if id%2 == 0 || id >= c.nextID {
		return "a frame on a stream that was never opened"
	}
	return ""
}

// late returns the fault of a frame on a stream that has ended, unless we ended it and the server could not know.
func (c *Conn[T]) late(id uint32) (fault string) {
	if fault := c.unopened(id); fault != "" || c.tolerant {
		return fault
	}
	return "a frame on a stream that had ended"
}

// headers handles HEADERS (RFC 9113, section 6.2). A block that goes on in CONTINUATION is kept until its end.
func (c *Conn[T]) headers(f *frame) Kind {
	p, padding := f.payload, 0
	if f.flags.Has(http2.FlagHeadersPadded) {
		if len(p) == 0 {
			return c.fault(padded)
		}
		padding, p = int(p[0]), p[1:]
	}
	if f.flags.Has(http2.FlagHeadersPriority) {
		if len(p) < 5 {
			return c.fault("a HEADERS frame is too short for its priority")
		}
		p = p[5:]
	}
	if padding > len(p) {
		return c.fault(padded)
	}
	p = p[:len(p)-padding]
	ends := f.flags.Has(http2.FlagHeadersEndStream)
	if f.flags.Has(http2.FlagHeadersEndHeaders) {
		return c.headerBlock(f.id, p, ends)
	}
	r := &c.frames
	r.block, r.blockID, r.blockFrames, r.blockEnds = append(r.block[:0], p...), f.id, 1, ends
	return None
}

// continuation adds to a header block (RFC 9113, section 6.10). Its bounds end a flood of small frames.
func (c *Conn[T]) continuation(f *frame) Kind {
	r := &c.frames
	r.blockFrames++
	if len(r.block)+len(f.payload) > headers.MaxBytes || r.blockFrames > maxBlockFrames {
		return c.fault(headers.TooLong)
	}
	r.block = append(r.block, f.payload...)
	if !f.flags.Has(http2.FlagContinuationEndHeaders) {
		return None
	}
	whole := r.block
	r.block, r.blockID = nil, 0 // Long blocks are rare, so their memory is not kept
	return c.headerBlock(f.id, whole, r.blockEnds)
}

// headerBlock decodes a head, an interim response or trailers, for an unknown stream too, since the dynamic table must follow.
func (c *Conn[T]) headerBlock(id uint32, p []byte, ends bool) Kind {
	b, wrong := c.decoder.Decode(p, &c.shared.block)
	if wrong != "" {
		return c.fault("HPACK: " + wrong)
	}
	st := c.streams.find(id)
	if st == nil {
		return c.fault(c.late(id))
	}
	st.HeaderBytes += int64(len(p))
	st.DecodedBytes += b.DecodedBytes
	switch fault := b.Fault(int(st.Status)); {
	case fault != "":
		return c.malformed(st, fault)
	case st.HeaderBytes > headers.MaxBytes:
		return c.malformed(st, headers.TooLong)
	case st.Status != 0 && !ends:
		return c.malformed(st, headers.NotTrailers)
	case st.Status != 0:
		return c.ended(st)
	case b.Status < 200 && ends:
		return c.malformed(st, "an informational response ends the stream")
	case b.Status < 200:
		return None // The final response follows (RFC 9113, section 8.1)
	}
	st.Status, st.Length = int32(b.Status), b.Length
	if ends {
		return c.ended(st)
	}
	c.Stream = st
	return Answered
}

func (c *Conn[T]) rstStream(f *frame) Kind {
	st := c.streams.find(f.id)
	if st == nil {
		return c.fault(c.unopened(f.id))
	}
	c.remove(st)
	c.Stream, c.Code = st, http2.ErrCode(f.number())
	if c.Code == http2.ErrCodeRefusedStream && f.id < c.earlyID {
		return Refused
	}
	return Reset
}

// settings obeys SETTINGS and acknowledges them (RFC 9113, sections 6.5.2 and 6.5.3).
func (c *Conn[T]) settings(f *frame) Kind {
	if f.flags.Has(http2.FlagSettingsAck) {
		return None
	}
	if !c.greeted {
		// A server that names no limit takes any number of streams.
		c.greeted, c.earlyID, c.Limit = true, c.nextID, c.most
	}
	for p := f.payload; len(p) > 0; p = p[6:] {
		value := binary.BigEndian.Uint32(p[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(p)) {
		case http2.SettingHeaderTableSize:
			if value < headers.TableBytes {
				// It does not want a table of our size, so it gets none (RFC 7541, section 6.3).
				c.update, c.first, c.later = noTable, c.blocks.plain, c.blocks.plain
			}
		case http2.SettingEnablePush:
			if value != 0 {
				return c.fault("SETTINGS allow a push by the client")
			}
		case http2.SettingMaxConcurrentStreams:
			c.Limit, c.NamedLimit = int(min(value, uint32(c.most))), int64(value)
		case http2.SettingInitialWindowSize:
			if !c.setInitialWindow(int64(value)) {
				return c.fault("SETTINGS make a window too large")
			}
		case http2.SettingMaxFrameSize:
			if value < maxFrameBytes || value > 1<<24-1 {
				return c.fault("SETTINGS have a frame size that is not allowed")
			}
		}
	}
	c.shared.Out = appendFrameHeader(c.shared.Out, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	return Settings
}

// setInitialWindow changes all streams' windows by the difference to the last one (RFC 9113, section 6.9.2). allowed: none is too large.
func (c *Conn[T]) setInitialWindow(bytes int64) (allowed bool) {
	difference, allowed := bytes-c.initialWindow, bytes <= maxWindowBytes
	c.initialWindow = bytes
	for i := range c.streams {
		if st := &c.streams[i]; st.ID != 0 {
			st.window += difference
			allowed = allowed && st.window <= maxWindowBytes
		}
	}
	return allowed
}

// windowUpdate raises a window for request bodies (RFC 9113, section 6.9): the connection's for stream 0.
func (c *Conn[T]) windowUpdate(f *frame) Kind {
	more := int64(f.number() & LastStreamID)
	if f.id == 0 {
		if c.sendWindow += more; more == 0 || c.sendWindow > maxWindowBytes {
			return c.fault("the connection's window is not raised as allowed")
		}
		return None
	}
	st := c.streams.find(f.id)
	switch {
	case st == nil:
		return c.fault(c.unopened(f.id))
	case more == 0 || st.window+more > maxWindowBytes:
		return c.malformed(st, "a stream's window is not raised as allowed")
	}
	st.window += more
	return None
}
