//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package engine

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
)

// noAnswerLimit is how long a load that has had no answer over QUIC waits for one. A server without HTTP/3 is so reported soon.
const noAnswerLimit = 2200 * time.Millisecond

const noQUIC = "no answer over QUIC (UDP) on this port; for h3 the server's config has to turn HTTP/3 on, and no firewall may drop UDP"

// h3Session is HTTP/3 (RFC 9114) as the loop sees it: quic-go makes the packets on other goroutines (quicConn), the inbox brings the events.
type h3Session struct {
	streaming
	quic    *quicConn   // nil without a connection
	streams []*h3Stream // in no order
	spare   *quic.Stream
	opening bool // the server's limit of streams is reached: spare is awaited
}

func (s *h3Session) dial() {
	c := s.conn
	l := c.loop
	p := l.plan
	var from *net.UDPAddr
	if p.sources > 0 {
		from = net.UDPAddrFromAddrPort(p.sources.address(l.connection(int(c.slot))))
	}
	to := net.UDPAddrFromAddrPort(p.target.at)
	var socket *net.UDPConn
	err := p.network.run(func() (err error) {
		socket, err = net.DialUDP("udp", from, to)
		return err
	})
	if err != nil {
		errno := syscall.EIO
		errors.As(err, &errno)
		c.failCall(ErrConnect, "socket", errno)
		return
	}
	c.state, c.answered, c.peerClosed, c.writeBroken = connecting, false, false, false
	l.open++
	q := &quicConn{session: s, inbox: l.inbox, socket: socket}
	q.ctx, c.hangUp = context.WithCancel(context.Background())
	q.heard.Store(l.clock)
	s.quic = q
	l.inbox.goroutines.Go(func() { q.run(to, p) })
	if l.tls.state == nil {
		l.checkTimeoutsBy(s.answerBy())
	}
}

// answerBy is until when a load that has had no answer over QUIC waits for one, on the run's clock.
func (s *h3Session) answerBy() int64 {
	return s.conn.openedAt + int64(cmp.Or(s.conn.loop.plan.patience, noAnswerLimit))
}

func (s *h3Session) connected() {
	s.streaming = s.renewed()
	s.streams, s.spare, s.opening = s.streams[:0], nil, false
	s.fill()
}

// fill opens streams up to the load's number. At the server's limit a goroutine waits for the next one.
func (s *h3Session) fill() {
	for s.active() < s.conn.loop.plan.Streams && !s.draining && !s.opening && s.haveWaiting() {
		stream := s.spare
		if s.spare = nil; stream == nil {
			var err error
			if stream, err = s.quic.conn.OpenStream(); err != nil {
				if _, s.opening = errors.AsType[*quic.StreamLimitReachedError](err); s.opening {
					s.conn.loop.inbox.goroutines.Go(s.quic.awaitStream)
				}
				return // Otherwise the connection has ended, which the inbox will report
			}
		}
		s.send(stream, s.nextWaiting())
	}
}

// send sends a request on its stream: at once if QUIC takes all of it, otherwise by a goroutine. Another one reads the response.
func (s *h3Session) send(stream *quic.Stream, a attempt) {
	l := s.conn.loop
	isAgain := a.start != 0
	if !isAgain {
		a.start = l.model.latencyFrom(a.begun, a.due)
		l.model.noteSent(a.due)
	}
	st := &h3Stream{attempt: a, isAgain: isAgain, quic: stream, of: s.quic, place: len(s.streams)}
	s.streams = append(s.streams, st)
	s.oldest = min(s.oldest, a.begun)
	s.draining = s.draining || !l.plan.KeepAlive
	if r := a.request; len(r.body) > 0 || stream.TryWriteAll(r.bytes) != nil {
		l.inbox.goroutines.Go(st.upload)
	} else {
		l.counts.current.SentBytes += int64(len(r.bytes))
		st.isSent.Store(true)
		stream.Close() //nolint:errcheck // reading the stream reports the error, too
	}
	l.inbox.goroutines.Go(st.read)
}

// readInbox takes what has happened on the loop's connections. A response ends when its last byte was read, not when the loop polls.
func (l *loop) readInbox() {
	for _, e := range l.inbox.take() {
		s := e.of.session
		if s.quic != e.of || s.conn.state == closed {
			continue // of a connection that the loop has given up
		}
		l.clock = e.at
		s.take(e)
		l.clock = l.shared.now()
		if s.conn.state == established {
			s.refill()
		}
	}
}

// take handles an event of the present connection. The loop's clock is that of the event.
func (s *h3Session) take(e quicEvent) {
	c := s.conn
	l := c.loop
	switch {
	case e.connected:
		if l.tls.state == nil {
			state := s.quic.conn.ConnectionState().TLS
			l.tls.state = stateOf(state.Version, state.CipherSuite, state.CurveID)
		}
		c.isUp()
		l.clock = l.shared.now()
		s.connected()
	case e.opened != nil:
		s.spare, s.opening = e.opened, false
	case e.isGoAway:
		s.draining, s.goneAway = true, true
		for _, st := range slices.Clone(s.streams) {
			if st.quic.StreamID() >= e.goAway {
				s.remove(st)
				s.waiting = append(s.waiting, st.attempt)
			}
		}
	case e.stream == nil:
		s.ended(e.fault.kind, e.fault.cause, e.fault.text) // A stream may tell first
	case e.stream.place >= 0:
		s.endStream(e.stream)
	}
}

// endStream ends an attempt when its stream was read to the end, and adds up its bytes.
func (s *h3Session) endStream(st *h3Stream) {
	c := s.conn
	l := c.loop
	f := st.fault
	if f == nil || !f.endsAll {
		s.remove(st)
	}
	l.counts.current.ReceivedBytes += st.bytes
	l.counts.current.SentBytes += st.sent.Load()
	if st.firstAt > 0 && !c.answered {
		c.answered = true
		l.tally.firstByteTimes.record(st.firstAt - c.openedAt)
	}
	switch {
	case f == nil:
		if !st.isSent.Load() {
			st.quic.CancelWrite(h3.NoError) // The server does not want the rest. It resets the stream in any case
		}
		r := &st.response
		s.end(&st.attempt, r.Status, r.Length, r.HeaderBytes, r.DecodedBytes, r.BodyBytes)
	case f.endsAll:
		s.ended(f.kind, f.cause, f.text)
	case f.code == h3.RequestRejected && (s.goneAway || !st.isAgain):
		// The server has not handled the request (RFC 9114, section 4.1.1). It shuts down, and its GOAWAY may come a moment later.
		s.waiting = append(s.waiting, st.attempt)
	default:
		st.cancel()
		l.failure(c, f.kind, f.cause, f.text, &st.attempt)
	}
}

// remove fills the stream's place in the list with the last one.
func (s *h3Session) remove(st *h3Stream) {
	last := len(s.streams) - 1
	s.streams[st.place] = s.streams[last]
	s.streams[st.place].place = st.place
	s.streams[last], s.streams, st.place = nil, s.streams[:last], -1
}

// A loop reads no bytes of QUIC, so these have nothing to do. quic-go ends connections in order by itself.
func (s *h3Session) received([]byte)                {}
func (s *h3Session) flush()                         {}
func (s *h3Session) closedByPeer()                  {}
func (s *h3Session) appendGoAway(dst []byte) []byte { return dst }
func (s *h3Session) active() int                    { return len(s.streams) }
func (s *h3Session) heard() int64                   { return s.quic.heard.Load() }

func (s *h3Session) each(resets bool, ends func(*attempt) bool) {
	for i := len(s.streams) - 1; i >= 0; i-- { // backwards, as remove fills the place with the last one
		if st := s.streams[i]; ends(&st.attempt) {
			if resets {
				st.cancel()
			}
			s.remove(st)
		}
	}
}

// expire also ends the connect of a load that QUIC has never answered, sooner than the time-out.
func (s *h3Session) expire(before int64) {
	if c := s.conn; c.state == connecting && c.loop.tls.state == nil {
		if c.loop.clock >= s.answerBy() {
			c.fail(ErrConnect, CauseTimedOut, noQUIC)
			return
		}
		c.loop.checkTimeoutsBy(s.answerBy())
	}
	s.streaming.expire(before)
}

// h3Stream is an attempt with its stream. A goroutine reads it and sets the figures; the loop reads these once the stream was posted.
type h3Stream struct {
	attempt
	place   int  // its place among the session's streams; -1: the loop is through with it
	isAgain bool // it had a stream before
	quic    *quic.Stream
	of      *quicConn

	response       h3.Response
	bytes, firstAt int64 // what came in, and when its first byte did
	fault          *h3Fault
	sent           atomic.Int64 // of a request that did not leave at once
	isSent         atomic.Bool  // all of it has left
}

// cancel gives up both directions of the stream with H3_REQUEST_CANCELLED (RFC 9114, section 4.1.1).
func (st *h3Stream) cancel() {
	st.quic.CancelRead(h3.RequestCancelled)
	st.quic.CancelWrite(h3.RequestCancelled)
}

// upload is a goroutine that sends a request which is long, or which QUIC did not take at once.
func (st *h3Stream) upload() {
	for _, p := range [][]byte{st.request.bytes, st.request.body} {
		for len(p) > 0 {
			n := min(len(p), pieceBytes)
			st.sent.Add(int64(n)) // Before: the response may come before Write returns
			if _, err := st.quic.Write(p[:n]); err != nil {
				return
			}
			p = p[n:]
		}
	}
	st.isSent.Store(true)
	st.quic.Close() //nolint:errcheck // read has the error, too
}

// h3Reader reads a stream, and notes what comes in and when.
type h3Reader struct {
	*bufio.Reader
	stream         io.Reader
	of             *quicConn
	bytes, firstAt int64
}

// h3Readers are the readers of all loads. A stream holds one from its first byte to its end.
var h3Readers = sync.Pool{New: func() any { return &h3Reader{Reader: bufio.NewReaderSize(nil, 16<<10)} }}

// source is where a reader's bytes come from.
type source h3Reader

func (r *h3Reader) begin(stream io.Reader, of *quicConn) {
	r.stream, r.of, r.bytes, r.firstAt = stream, of, 0, 0
	r.Reset((*source)(r))
}

// Read notes how much came in and when, before it is parsed.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.stream.Read(p)
	if n > 0 {
		now := s.of.inbox.now()
		s.of.heard.Store(now)
		if s.bytes += int64(n); s.firstAt == 0 {
			s.firstAt = now
		}
	}
	return n, err
}

// read is a goroutine that reads a response, and then posts the stream. Peek comes first: a stream without bytes holds no reader.
func (st *h3Stream) read() {
	var first [1]byte
	st.quic.Peek(first[:]) //nolint:errcheck // A stream that waits has no buffer; reading it has the error, too
	r := h3Readers.Get().(*h3Reader)
	r.begin(st.quic, st.of)
	if err := st.response.Read(r.Reader, &st.of.inbox.blocks); err != nil {
		st.fault = faultOf(err)
	}
	st.bytes, st.firstAt = r.bytes, r.firstAt
	h3Readers.Put(r)
	st.of.inbox.post(quicEvent{of: st.of, stream: st})
}

// encodeH3Requests makes whole requests. A long body is not copied.
func encodeH3Requests(scheme string, mix []Request) (requests []request) {
	for _, r := range mix {
		encoded := request{bytes: h3.Encode(h2Fields(scheme, r), len(r.Body))}
		if len(r.Body) < pieceBytes {
			encoded.bytes = append(encoded.bytes, r.Body...)
		} else {
			encoded.body = r.Body
		}
		requests = append(requests, encoded)
	}
	return requests
}
