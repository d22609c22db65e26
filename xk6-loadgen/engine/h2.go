//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package engine

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/net/http2"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

const (
	frameHeaderBytes   = 9
	maxFrameBytes      = 1 << 14   // Every peer takes frames of maxFrameBytes (RFC 9113, section 6.5.2), and so do we
	windowBytes        = 1<<30 - 1 // as large as h2load's, for a connection and for each stream
	initialWindowBytes = 1<<16 - 1 // The window of a new connection (RFC 9113, section 6.9.2)
	maxWindowBytes     = 1<<31 - 1
	lastStreamID       = 1<<31 - 1
	assumedStreams     = 100 // assumedStreams may be opened before the server has named its limit; servers take 100 and more
	maxBlockFrames     = 64  // No header block needs more frames of 16 KiB.
	// maxUnreadBytes bounds the bytes that a server asks for and does not read, beside the requests of all streams.
	maxUnreadBytes = 1 << 20
	uploadBytes    = 256 << 10 // uploadBytes of request bodies are sent at a time.
)

// preface opens a connection (RFC 9113, section 3.4): no pushes, and receive windows so large that no server ever waits for one.
var preface = func() []byte {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&b, nil)
	framer.WriteSettings( //nolint:errcheck // into memory
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: windowBytes},
	)
	framer.WriteWindowUpdate(0, windowBytes-initialWindowBytes) //nolint:errcheck // into memory
	return b.Bytes()
}()

// h2 is HTTP/2 (RFC 9113). Frames to send are gathered in the loop's out until flush.
type h2 struct {
	streaming

	decoder headers.Decoder // The rest belongs to the connection.
	// streams is a ring by identifier, of a power of two. An identifier whose place is taken is skipped (RFC 9113, section 5.1.1).
	streams []stream
	nextID  uint32
	limit   int // how many streams may be active: ours or the server's
	greeted bool
	earlyID uint32
	// shared has the shared headers of the next request, later of those after it. update goes before the next request's headers.
	shared, later, update []byte
	// tolerant: we have given up streams without the server's knowledge, so late frames are no fault.
	tolerant                  bool
	uploading                 int   // uploading streams have not sent their whole request.
	sendWindow, initialWindow int64 // sendWindow is the connection's; initialWindow that of new streams.
	flow                      int64 // what came in since the last update of the connection's window
	lastReceived              int64
	frames                    frameReader
}

// connected begins a connection. All that belonged to the one before is reset, and the first requests leave with the preface, before the
// server's SETTINGS are known.
func (s *h2) connected() {
	l := s.conn.loop
	clear(s.streams)
	*s = h2{
		streaming: s.renewed(), decoder: headers.NewDecoder(&l.caches.strings), streams: s.streams,
		nextID: 1, limit: min(l.plan.Streams, assumedStreams), shared: l.plan.h2.opening, later: l.plan.h2.steady,
		sendWindow: initialWindowBytes, initialWindow: initialWindowBytes, lastReceived: l.clock,
		frames: frameReader{kept: s.frames.kept[:0]},
	}
	l.buffers.out = append(l.buffers.out[:0], preface...)
	s.fill()
	s.flush()
}

// fill opens streams up to the limit, as long as attempts may begin.
func (s *h2) fill() {
	c := s.conn
	for s.active < s.limit && !s.draining && !c.peerClosed && !c.writeBroken && s.haveWaiting() {
		s.open(s.nextWaiting())
	}
	if s.limit == 0 {
		s.haveWaiting() // The server forbids streams for a while: one attempt waits, or times out
	}
}

// open gives an attempt a stream and gathers its HEADERS. A requeued attempt keeps the start of its latency.
func (s *h2) open(a attempt) {
	l := s.conn.loop
	if a.start == 0 {
		a.start = l.model.latencyFrom(a.begun, a.due)
		if l.tally.sendDelays != nil {
			s.conn.departures.waiting = append(s.conn.departures.waiting, departure{due: a.due})
		}
	}
	if s.active == len(s.streams) {
		s.grow()
	}
	place := s.place(s.nextID)
	for place.id != 0 {
		s.nextID += 2
		place = s.place(s.nextID)
	}
	*place = stream{attempt: a, id: s.nextID, length: -1, window: s.initialWindow}
	s.active++
	s.oldest = min(s.oldest, a.begun)

	own, flags := a.request, http2.FlagHeadersEndHeaders
	if len(own.body) == 0 {
		flags |= http2.FlagHeadersEndStream
	} else {
		s.uploading++
	}
	l.buffers.out = appendFrameHeader(l.buffers.out, len(s.update)+len(own.bytes)+len(s.shared), http2.FrameHeaders, flags, s.nextID)
	l.buffers.out = append(append(append(append(l.buffers.out, s.update...), own.bytes[:own.before]...), s.shared...), own.bytes[own.before:]...)
	s.update, s.shared = nil, s.later
	s.nextID += 2
	// Some identifiers may be skipped in the ring, so the last ones stay unused.
	if s.nextID+2*uint32(len(s.streams)) > l.plan.h2.lastStreamID || !l.plan.KeepAlive {
		s.draining = true
	}
}

// complete ends a stream with its response, and lets others begin.
func (s *h2) complete(st *stream) {
	if st.sent < len(st.request.body) {
		// The response came before the whole request was sent: the server does not want the rest.
		s.reset(st.id, http2.ErrCodeCancel)
	}
	s.end(&st.attempt, int(st.status), st.length, st.headerBytes, st.decodedBytes, st.bodyBytes)
	s.remove(st)
	s.refill()
}

// reset gathers RST_STREAM (RFC 9113, section 6.4). The server may send frames of the stream until it has read that.
func (s *h2) reset(id uint32, code http2.ErrCode) {
	l := s.conn.loop
	l.buffers.out = appendFrameHeader(l.buffers.out, 4, http2.FrameRSTStream, 0, id)
	l.buffers.out = binary.BigEndian.AppendUint32(l.buffers.out, uint32(code))
	s.tolerant = true
}

// fault ends one stream for a malformed response (RFC 9113, section 8.1.1). The connection goes on.
func (s *h2) fault(st *stream, example string) {
	s.reset(st.id, http2.ErrCodeProtocol)
	s.conn.loop.failure(s.conn, ErrProtocol, CauseOther, example, &st.attempt)
	s.remove(st)
	s.refill()
}

// flush sends what was gathered, and then bodies, until nothing is left or the kernel takes no more.
func (s *h2) flush() {
	c := s.conn
	l := c.loop
	for {
		if s.uploading > 0 && !c.sending() {
			s.upload()
		}
		if len(l.buffers.out) == 0 {
			return
		}
		out := l.buffers.out
		l.buffers.out = l.buffers.out[:0]
		if len(out)+len(c.backlog) > maxUnreadBytes+l.plan.Streams*l.plan.h2.longest && len(c.backlog) > 0 {
			c.fail(ErrProtocol, CauseOther, "the server asks for answers that it does not read")
			return
		}
		generation := c.generation
		c.write(out)
		if c.generation != generation || s.uploading == 0 {
			return
		}
	}
}

// upload gathers up to uploadBytes of request bodies, within the server's windows (RFC 9113, section 5.2). Streams come in the ring's
// order.
func (s *h2) upload() {
	l := s.conn.loop
	for i := range s.streams {
		st := &s.streams[i]
		if st.id == 0 {
			continue
		}
		body := st.request.body
		for st.sent < len(body) && len(l.buffers.out) < uploadBytes {
			n := int(min(int64(len(body)-st.sent), maxFrameBytes, st.window, s.sendWindow))
			if n <= 0 {
				break
			}
			var flags http2.Flags
			if st.sent+n == len(body) {
				flags = http2.FlagDataEndStream
				s.uploading--
			}
			l.buffers.out = appendFrameHeader(l.buffers.out, n, http2.FrameData, flags, st.id)
			l.buffers.out = append(l.buffers.out, body[st.sent:st.sent+n]...)
			st.sent += n
			st.window -= int64(n)
			s.sendWindow -= int64(n)
		}
	}
}

// appendGoAway appends GOAWAY (RFC 9113, section 6.8), except on a connection for one request, where it would cost a measurable part of the
// work.
func (s *h2) appendGoAway(dst []byte) []byte {
	if !s.conn.loop.plan.KeepAlive {
		return dst
	}
	return append(appendFrameHeader(dst, 8, http2.FrameGoAway, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0)
}

// closedByPeer recognises a TLS server that was loaded without TLS: it sends an alert record (type 21, version 3.x) before it closes.
func (s *h2) closedByPeer() {
	if !s.greeted && bytes.HasPrefix(s.frames.kept, []byte{byte(recordAlert), 3}) {
		s.ended(ErrProtocol, CauseOther, speaksTLS)
	} else {
		s.ended(ErrRead, CauseShort, closedEarly)
	}
}

// stream is an active attempt. id 0: the place is free.
type stream struct {
	attempt
	id     uint32
	status int32 // status of the final response; 0: its headers have not come in.
	// length is the content-length, -1: none.
	headerBytes, decodedBytes int64
	bodyBytes, length         int64
	flow                      int64 // what came in since the last update of the stream's window
	sent                      int   // sent of the request's body, and the server's window for the rest
	window                    int64
}

// place is where a stream's identifier belongs in the ring. A client's identifiers are odd (RFC 9113, section 5.1.1).
func (s *h2) place(id uint32) *stream { return &s.streams[int(id>>1)&(len(s.streams)-1)] }

// grow doubles the ring. It allocates, which ends once a connection has had all of its streams active.
func (s *h2) grow() {
	old := s.streams
	s.streams = make([]stream, max(1, 2*len(old)))
	for i := range old {
		if old[i].id != 0 {
			*s.place(old[i].id) = old[i]
		}
	}
}

// find is the active stream with this identifier, valid until the next grow; nil if it has ended.
func (s *h2) find(id uint32) *stream {
	if len(s.streams) == 0 {
		return nil
	}
	if st := s.place(id); st.id == id && id != 0 {
		return st
	}
	return nil
}

// remove frees a stream's place. Its attempt was ended or requeued by the caller.
func (s *h2) remove(st *stream) {
	if st.sent < len(st.request.body) {
		s.uploading--
	}
	st.id = 0
	s.active--
}

// requeue gives up a stream that the server has not handled (RFC 9113, section 8.7). Its attempt waits for another one.
func (s *h2) requeue(st *stream) {
	s.waiting = append(s.waiting, st.attempt)
	s.remove(st)
}

func (s *h2) each(resets bool, ends func(*attempt) bool) {
	for i := range s.streams {
		if st := &s.streams[i]; st.id != 0 && ends(&st.attempt) {
			if resets {
				s.reset(st.id, http2.ErrCodeCancel)
			}
			s.remove(st)
		}
	}
}

func (s *h2) heard() int64 { return s.lastReceived }
