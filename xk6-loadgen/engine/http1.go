package engine

import (
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h1"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

// http1 is HTTP/1.0 and 1.1 (RFC 9112): one attempt at a time, without pipelining.
type http1 struct {
	conn   *conn
	parser h1.Parser
	busy   bool
	attempt
}

// next takes an attempt, and sends it or opens a connection for it.
func (s *http1) next() {
	c := s.conn
	// A connection that is being opened continues in connected.
	if s.busy || c.backingOff || c.state != closed && c.state != established {
		return
	}
	next, taken := c.loop.model.take(c)
	if !taken {
		if c.hasNoneLeft() {
			c.close()
		}
		return
	}
	s.busy = true
	s.attempt, s.parser.IsHead = next, next.expected.isHead
	if c.state == established {
		s.connected()
	} else {
		c.connect()
	}
}

// connected sends the attempt that the connection was opened for. After a reopening there is none: an empty send tells whether it is up.
func (s *http1) connected() {
	c := s.conn
	if !s.busy {
		if _, ok := c.transmit(nil); ok && c.state == established {
			s.next()
		}
		return
	}
	s.start = c.loop.model.latencyFrom(s.begun, s.due)
	generation := c.generation
	c.send(s.request.bytes)
	if c.generation == generation && c.state == established {
		c.loop.model.noteSent(s.due)
	}
}

// received parses bytes in the loop's buffer. They all belong to the one response under way.
func (s *http1) received(p []byte) {
	s.conn.firstByte()
	if !s.busy {
		s.conn.close() // Bytes without a request: the connection cannot be trusted, but no attempt is to blame
		s.conn.loop.starts.push(s.conn)
		return
	}
	used, done, fault := s.parser.Feed(p, &s.conn.loop.head)
	switch {
	case fault != "" && p[0] == headers.TLSAlert && s.conn.secure == nil:
		s.conn.fail(ErrProtocol, CauseOther, headers.SpeaksTLS)
	case fault != "":
		s.conn.fail(ErrProtocol, CauseOther, fault)
	case done && used < len(p):
		s.conn.fail(ErrProtocol, CauseOther, "more bytes than the response's length")
	case done:
		s.complete()
	}
}

// discardable leaves the last byte of a body: bytes after it must not pass for the next response.
func (s *http1) discardable() int64 {
	if !s.busy {
		return 0
	}
	return min(s.parser.Uncounted(), 1<<30)
}

func (s *http1) discarded(n int64) { s.parser.Skip(n) }

// complete ends the attempt with its response. The connection then takes the next one, closes, or lingers.
func (s *http1) complete() {
	c := s.conn
	c.loop.response(&s.attempt, s.attempt.start, int(s.parser.Status), s.parser.HeaderBytes, s.parser.HeaderBytes, s.parser.BodyBytes)
	c.countResponse()
	s.busy = false
	closes := s.parser.Closes || c.peerClosed
	s.parser.Reset()
	switch {
	case c.sending() || c.writeBroken:
		c.close() // The response came before the whole request was sent: the rest would pass for another request
		c.loop.starts.push(c)
	case closes:
		c.linger()
	case !c.loop.plan.KeepAlive:
		c.close()
		s.next()
	default:
		s.next()
	}
}

// closedByPeer ends a response that is as long as the connection (RFC 9112, section 6.3). Any other one was cut off.
func (s *http1) closedByPeer() {
	switch {
	case !s.busy:
		s.conn.close()
		s.conn.loop.starts.push(s.conn)
	case s.parser.IsUntilClose():
		s.complete()
		if s.conn.state == lingering {
			s.conn.close()
			s.next()
		}
	default:
		s.conn.fail(ErrRead, CauseShort, closedEarly)
	}
}

func (s *http1) abort(kind ErrorKind, cause ErrorCause, example string) {
	s.parser.Reset()
	if s.busy {
		s.busy = false
		s.conn.loop.failure(s.conn, kind, cause, example, &s.attempt)
	}
}

// Each request leaves at once, and HTTP/1 has no message that ends a connection.
func (s *http1) flush()                         {}
func (s *http1) appendGoAway(dst []byte) []byte { return dst }

// expire closes the connection, the only way to give up a request. Connects are conn.checkTimeouts's.
func (s *http1) expire(before int64) {
	if s.busy && s.begun < before && s.conn.state == established {
		s.conn.fail(ErrTimeout, CauseTimedOut, noResponse)
	}
}

func (s *http1) underWay() int64 {
	if s.busy {
		return 1
	}
	return 0
}

func (s *http1) eachDue(call func(due int64)) {
	if s.busy {
		call(s.due)
	}
}
