//gosec:disable G115 -- the numbers are small
package engine

import (
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h2"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

// maxUnreadBytes bounds the bytes that a server asks for and does not read, beside the requests of all streams.
const maxUnreadBytes = 1 << 20

// h2Session is HTTP/2 as the loop sees it: peer reads and writes the frames. Frames to send are gathered in the loop's h2.Out until flush.
type h2Session struct {
	streaming
	peer         h2.Conn[attempt]
	lastReceived int64
}

// connected begins a connection. The first requests leave with the preface, before the server's SETTINGS are known.
func (s *h2Session) connected() {
	l := s.conn.loop
	s.streaming, s.lastReceived = s.renewed(), l.clock
	s.peer.Begin(&l.h2, &l.plan.h2, l.plan.Streams)
	s.fill()
	s.flush()
}

func (s *h2Session) fill() {
	c := s.conn
	for s.peer.Open < s.peer.Limit && !s.draining && !c.peerClosed && !c.writeBroken && s.haveWaiting() {
		s.open(s.nextWaiting())
	}
	if s.peer.Limit == 0 {
		s.haveWaiting() // The server forbids streams for a while: one attempt waits, or times out
	}
}

// open gives an attempt a stream and gathers its HEADERS. A requeued attempt keeps the start of its latency.
func (s *h2Session) open(a attempt) {
	l := s.conn.loop
	if a.start == 0 {
		a.start = l.model.latencyFrom(a.begun, a.due)
		if l.tally.sendDelays != nil {
			s.conn.departures.waiting = append(s.conn.departures.waiting, departure{due: a.due})
		}
	}
	s.oldest = min(s.oldest, a.begun)
	r := a.request
	s.peer.Request(h2.Headers{Bytes: r.bytes, Before: r.before}, r.body).Of = a
	if s.peer.IsUsedUp() || !l.plan.KeepAlive {
		s.draining = true
	}
}

// received handles all that came in. The connection may end, or be another one, after each event.
func (s *h2Session) received(p []byte) {
	c := s.conn
	s.lastReceived = c.loop.clock
	generation := c.generation
	for len(p) > 0 && c.generation == generation {
		var event h2.Kind
		event, p = s.peer.Next(p)
		s.handle(event)
	}
}

// handle ends the attempt of a stream that has ended, and lets others begin.
func (s *h2Session) handle(event h2.Kind) {
	c := s.conn
	l := c.loop
	e, st := &s.peer, s.peer.Stream
	switch event {
	case h2.None:
		return
	case h2.Answered:
		c.firstByte()
		return
	case h2.Fault:
		c.fail(ErrProtocol, CauseOther, e.Text)
		return
	case h2.Ended:
		c.firstByte()
		s.end(&st.Of, int(st.Status), st.Length, st.HeaderBytes, st.DecodedBytes, st.BodyBytes)
	case h2.Malformed:
		l.failure(c, ErrProtocol, CauseOther, e.Text, &st.Of)
	case h2.Refused:
		s.waiting = append(s.waiting, st.Of)
	case h2.Reset:
		example := ""
		// Only the first error makes a text, so that a flood of them allocates nothing.
		if l.counts.example == "" {
			example = "the server reset the stream (" + e.Code.String() + ")"
		}
		l.failure(c, ErrRead, CauseReset, example, &st.Of)
	case h2.Settings:
		if limit := s.peer.NamedLimit; limit >= 0 && (l.streamLimit == 0 || limit < l.streamLimit) {
			l.streamLimit = limit
		}
	case h2.GoAway:
		s.draining, s.goneAway, s.goAwayCode = true, true, e.Code
		s.peer.GiveUp(false, func(st *h2.Stream[attempt]) bool {
			if st.ID <= e.Last {
				return false
			}
			s.waiting = append(s.waiting, st.Of) // It waits for another stream (RFC 9113, section 8.7)
			return true
		})
	}
	s.refill()
}

// flush sends what was gathered, and then bodies, until nothing is left or the kernel takes no more.
func (s *h2Session) flush() {
	c := s.conn
	l := c.loop
	for {
		if s.peer.Uploading > 0 && !c.sending() {
			s.peer.Upload()
		}
		out := l.h2.Out
		if len(out) == 0 {
			return
		}
		l.h2.Out = out[:0]
		if len(out)+len(c.backlog) > maxUnreadBytes+l.plan.Streams*l.plan.h2.LongestBytes && len(c.backlog) > 0 {
			c.fail(ErrProtocol, CauseOther, "the server asks for answers that it does not read")
			return
		}
		generation := c.generation
		c.write(out)
		if c.generation != generation || s.peer.Uploading == 0 {
			return
		}
	}
}

// appendGoAway says nothing on a connection for one request, where it would cost a measurable part of the work.
func (s *h2Session) appendGoAway(dst []byte) []byte {
	if !s.conn.loop.plan.KeepAlive {
		return dst
	}
	return h2.AppendGoAway(dst)
}

func (s *h2Session) closedByPeer() {
	if s.peer.IsTLS() {
		s.ended(ErrProtocol, CauseOther, headers.SpeaksTLS)
	} else {
		s.ended(ErrRead, CauseShort, closedEarly)
	}
}

func (s *h2Session) each(resets bool, ends func(*attempt) bool) {
	s.peer.GiveUp(resets, func(st *h2.Stream[attempt]) bool { return ends(&st.Of) })
}

func (s *h2Session) active() int  { return s.peer.Open }
func (s *h2Session) heard() int64 { return s.lastReceived }
