package engine

// http1 is HTTP/1.0 and HTTP/1.1: one request at a time, its response, and the next request on the same connection when
// both sides keep it.
type http1 struct {
	conn   *conn
	parser parser
	// turn is the next of the plan's requests; request is the one under way.
	turn    int
	request []byte
	busy    bool
	// due is when the attempt could have started; start is where its latency begins.
	due, start int64
}

func newHTTP1(c *conn, turn int) *http1 {
	return &http1{conn: c, parser: parser{isHead: c.loop.plan.isHead}, turn: turn % len(c.loop.plan.requests)}
}

func (s *http1) next() {
	c := s.conn
	if s.busy || c.retryAt != 0 || c.state == lingering || !c.loop.take() {
		return
	}
	s.busy = true
	s.due = c.loop.clock
	s.request = c.loop.plan.requests[s.turn]
	if s.turn++; s.turn == len(c.loop.plan.requests) {
		s.turn = 0
	}
	if c.state == established {
		s.connected()
	} else {
		c.connect()
	}
}

func (s *http1) connected() {
	s.start = s.conn.loop.clock
	if !s.conn.loop.plan.KeepAlive {
		// The connection belongs to the request: its latency includes the connect, as ab's does.
		s.start = s.due
	}
	s.conn.send(s.request)
}

func (s *http1) received(p []byte) {
	if !s.busy {
		// Bytes that nobody asked for: the connection can't be trusted any more. No attempt is under way to blame.
		s.conn.close()
		return
	}
	used, done, fault := s.parser.feed(p, &s.conn.loop.lastHead)
	switch {
	case fault != "":
		s.conn.fail(ErrProtocol, string(fault))
	case done && used < len(p):
		s.conn.fail(ErrProtocol, "more bytes than the response's length")
	case done:
		s.complete()
	}
}

func (s *http1) complete() {
	c := s.conn
	c.loop.response(s.start, s.parser.status, s.parser.headerBytes, s.parser.bodyBytes)
	c.responses++
	c.failures = 0
	s.busy = false
	closes := s.parser.closes || c.peerClosed
	s.parser.reset()
	switch {
	case len(c.unsent) > 0 || c.writeBroken:
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
	case s.parser.endsAtClose():
		s.complete()
		// The response's end was the connection's: there is nothing to wait for.
		if s.conn.state == lingering {
			s.conn.close()
			s.next()
		}
	default:
		s.conn.fail(ErrRead, "connection closed before the response was complete")
	}
}

func (s *http1) abort(kind ErrorKind, example string) {
	s.parser.reset()
	if s.busy {
		s.busy = false
		s.conn.loop.failure(kind, example)
	}
}

func (s *http1) oldest() (int64, bool) { return s.due, s.busy }

func (s *http1) underWay() int64 {
	if s.busy {
		return 1
	}
	return 0
}
