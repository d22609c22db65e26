package engine

// mostDiscarded is less than the kernel takes off a socket in one call.
const mostDiscarded = 1 << 30

// http1 is HTTP/1.0 and HTTP/1.1: one request at a time, its response, and the next request on the same connection when
// both sides keep it.
type http1 struct {
	conn   *conn
	parser parser
	// request is the one under way.
	request []byte
	busy    bool
	attempt
}

func (s *http1) next() {
	c := s.conn
	// What is being opened goes on once it is.
	if s.busy || c.paused || c.state != closed && c.state != established {
		return
	}
	due, taken := c.loop.take(c)
	if !taken {
		if c.hasMadeItsShare() {
			c.close()
		}
		return
	}
	s.busy = true
	s.begun, s.due = c.loop.clock, due
	s.request = c.loop.nextRequest()
	if c.state == established {
		s.connected()
	} else {
		c.connect()
	}
}

func (s *http1) connected() {
	c := s.conn
	if !s.busy {
		// It was opened before its turn.
		if _, ok := c.transmit(nil); ok && c.state == established {
			s.next()
		}
		return
	}
	s.start = c.loop.startOfLatency(s.begun, s.due)
	generation := c.generation
	c.send(s.request)
	if c.generation == generation && c.state == established {
		c.loop.noteSent(s.due)
	}
}

func (s *http1) received(p []byte) {
	s.conn.firstByte()
	if !s.busy {
		// Bytes that nobody asked for: the connection can't be trusted any more. No attempt is under way to blame.
		s.conn.close()
		s.conn.loop.startSoon(s.conn)
		return
	}
	used, done, fault := s.parser.feed(p, &s.conn.loop.lastHead)
	switch {
	case fault != "" && p[0] == byte(recordAlert) && s.conn.secure == nil:
		s.conn.fail(ErrProtocol, CauseOther, speaksTLS)
	case fault != "":
		s.conn.fail(ErrProtocol, CauseOther, fault)
	case done && used < len(p):
		s.conn.fail(ErrProtocol, CauseOther, "more bytes than the response's length")
	case done:
		s.complete()
	}
}

// discardable leaves the last byte of a body to be read: what follows it is a fault, and must not be taken for the next
// response.
func (s *http1) discardable() int64 {
	if s.busy && s.parser.state == inBody {
		return min(s.parser.remaining-1, mostDiscarded)
	}
	return 0
}

func (s *http1) discarded(n int64) {
	s.parser.bodyBytes += n
	s.parser.remaining -= n
}

func (s *http1) complete() {
	c := s.conn
	c.loop.response(s.start, s.parser.status, s.parser.headerBytes, s.parser.headerBytes, s.parser.bodyBytes)
	c.countResponse()
	s.busy = false
	closes := s.parser.closes || c.peerClosed
	s.parser.reset()
	switch {
	case c.sending() || c.writeBroken:
		// Answered before the whole request was sent: the rest would be taken for another request.
		c.close()
		c.loop.startSoon(c)
	case closes:
		c.linger()
	case !c.loop.plan.KeepAlive:
		c.close()
		s.next()
	default:
		s.next()
	}
}

func (s *http1) closedByPeer() {
	switch {
	case !s.busy:
		s.conn.close()
		s.conn.loop.startSoon(s.conn)
	case s.parser.endsAtClose():
		s.complete()
		// The response's end was the connection's: there is nothing to wait for.
		if s.conn.state == lingering {
			s.conn.close()
			s.next()
		}
	default:
		s.conn.fail(ErrRead, CauseShort, "connection closed before the response was complete")
	}
}

func (s *http1) abort(kind ErrorKind, cause ErrorCause, example string) {
	s.parser.reset()
	if s.busy {
		s.busy = false
		s.conn.loop.failure(s.conn, kind, cause, example, s.due)
	}
}

// flush has nothing to do: a request leaves when it starts.
func (s *http1) flush() {}

// goodbye: HTTP/1 has no such thing.
func (s *http1) goodbye(dst []byte) []byte { return dst }

func (s *http1) expire(before int64) {
	if s.busy && s.begun < before && s.conn.state == established {
		s.conn.fail(ErrTimeout, CauseTimedOut, "no complete response within the timeout")
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
