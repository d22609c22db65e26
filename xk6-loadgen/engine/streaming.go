package engine

import (
	"slices"

	"golang.org/x/net/http2"
)

const (
	// maxTurnedAway is how many connections in a row may end before a response and count as no error: a server that is reloaded ends some.
	maxTurnedAway = 3
	noResponse    = "no complete response within the timeout"
	closedEarly   = "connection closed before the response was complete"
)

// attempt is one request, from model.take to its response or failure. Times are nanoseconds of the run's clock.
type attempt struct {
	begun, due int64 // begun is when it was taken, due when it should have started: the same in the closed model
	start      int64 // where its latency begins; 0 before it has a stream
	request    *request
	expected   expected
	isOfRamp   bool // at a rate: it was due in a ramp, and does not count
}

// streaming is the part that HTTP/2 and HTTP/3 share: several attempts on a connection, and those that wait for a stream.
type streaming struct {
	conn       *conn
	own        streams
	waiting    []attempt // waiting attempts were taken and have no stream yet; they go first.
	turnedAway int       // turnedAway counts connections in a row that ended before a response.
	page       pageLoad  // of a load whose streams begin together

	// The rest belongs to the connection. oldest is no later than any attempt's begin; newest is that of the last one taken on it.
	oldest, newest     int64
	draining, answered bool // draining: no more streams are opened. answered: a response came in.
	goneAway           bool // the server takes no more streams, and has said so with goAwayCode
	goAwayCode         http2.ErrCode
}

// streams are the protocol's own.
type streams interface {
	active() int // the number of attempts that have a stream
	fill()       // opens streams while there may be more
	// each passes on every active attempt, and gives up those of which `ends` is true; resets tells the server so.
	each(resets bool, ends func(*attempt) bool)
	heard() int64 // when the connection last had bytes
}

// pageLoad are requests of a connection that begin together. begun is where the latency of the first one starts.
type pageLoad struct {
	files, responses int
	begun            int64
}

// renewed is the state for a new connection: only what outlives a connection is kept.
func (s *streaming) renewed() streaming {
	return streaming{conn: s.conn, own: s.own, waiting: s.waiting, turnedAway: s.turnedAway, page: s.page}
}

// next opens streams, or the connection if an attempt may begin.
func (s *streaming) next() {
	switch c := s.conn; {
	case c.backingOff:
	case c.state == established:
		s.own.fill()
	case c.state == closed && s.haveWaiting():
		c.connect()
	}
}

// refill follows the end of streams: it opens others, or ends a connection that takes none.
func (s *streaming) refill() {
	if !s.draining {
		s.own.fill()
	} else if s.own.active() == 0 {
		s.finish()
		return
	}
	if s.conn.hasNoneLeft() && s.underWay() == 0 {
		s.conn.close()
	}
}

func (s *streaming) discardable() int64 { return 0 } // Frames of HTTP/2 are shorter than the buffer
func (s *streaming) discarded(int64)    {}

func (s *streaming) underWay() int64 { return int64(s.own.active() + len(s.waiting)) }

// haveWaiting tells whether an attempt waits for a stream, and takes one if need be.
func (s *streaming) haveWaiting() bool {
	if len(s.waiting) > 0 {
		return true
	}
	l := s.conn.loop
	if l.plan.Together {
		if s.underWay() == 0 {
			s.page = pageLoad{}
		}
		if s.page.files == l.plan.Streams {
			return false
		}
	}
	next, taken := l.model.take(s.conn)
	if taken {
		s.page.files++
		s.newest = l.clock
		s.waiting = append(s.waiting, next)
	}
	return taken
}

func (s *streaming) nextWaiting() attempt {
	first := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	return first
}

// end counts a whole response, or the error that its body has another length than its content-length; -1: it has none.
func (s *streaming) end(a *attempt, status int, length, headerBytes, decodedBytes, bodyBytes int64) {
	l := s.conn.loop
	if a.expected.isHead || status == 204 || status == 304 {
		length = 0
	}
	if length >= 0 && length != bodyBytes {
		cause := CauseOther
		if bodyBytes < length {
			cause = CauseShort
		}
		l.failure(s.conn, ErrProtocol, cause, "a body is not as long as its content-length", a)
		return
	}
	from := a.start
	if l.plan.Together {
		p := &s.page
		if p.responses == 0 || a.start < p.begun {
			p.begun = a.start
		}
		if from = p.begun; p.responses+1 < l.plan.Streams {
			from = noLatency
		}
		p.responses++
	}
	l.response(a, from, status, headerBytes, decodedBytes, bodyBytes)
	s.conn.countResponse()
	s.answered = true
}

// finish ends a connection on which nothing is under way.
func (s *streaming) finish() {
	c := s.conn
	if s.answered {
		s.turnedAway = 0
	} else if s.turnedAway++; len(s.waiting) > 0 && s.goneAway && (s.turnedAway > maxTurnedAway || s.goAwayCode != http2.ErrCodeNo) {
		c.fail(ErrRead, CauseShort, "the server sent GOAWAY ("+s.goAwayCode.String()+") before it answered a request")
		return
	}
	c.close()
	if s.answered {
		c.loop.starts.push(c)
		return
	}
	c.noteFailure()
	c.reconnect()
}

// ended handles the end of the connection by the peer, which is an error if an attempt was under way.
func (s *streaming) ended(kind ErrorKind, cause ErrorCause, example string) {
	switch c := s.conn; {
	case c.state != established || s.own.active() > 0 || len(s.waiting) > 0 && !s.draining:
		c.fail(kind, cause, example)
	case len(s.waiting) > 0:
		s.finish()
	default:
		c.close()
		c.loop.starts.push(c) // The last response and the close may have come in together
	}
}

// abort: without an active stream, the attempt for which the connection was opened fails.
func (s *streaming) abort(kind ErrorKind, cause ErrorCause, example string) {
	fails := func(a *attempt) bool {
		s.conn.loop.failure(s.conn, kind, cause, example, a)
		return true
	}
	if s.own.active() == 0 && len(s.waiting) > 0 {
		first := s.nextWaiting()
		fails(&first)
	}
	s.own.each(false, fails)
}

// expire: if nothing at all has come in for the time-out, the connection ends with its streams.
func (s *streaming) expire(before int64) {
	if s.oldest >= before {
		return
	}
	c := s.conn
	isSilent, all := c.state == established && s.own.heard() < before, s.underWay()
	if isSilent && all > 0 && s.newest < before {
		c.fail(ErrTimeout, CauseTimedOut, noResponse)
		return
	}
	s.oldest = c.loop.clock
	expires := func(a *attempt) bool {
		if a.begun >= before {
			s.oldest = min(s.oldest, a.begun)
			return false
		}
		c.loop.failure(c, ErrTimeout, CauseTimedOut, noResponse, a)
		return true
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(a attempt) bool { return expires(&a) })
	s.own.each(true, expires)
	if c.state != established || s.underWay() == all {
		return
	}
	// A silent connection may be dead: younger streams keep their time, but no other request is sent on it.
	s.draining = s.draining || isSilent
	generation := c.generation
	if s.refill(); c.generation == generation {
		c.session.flush()
	}
}

func (s *streaming) eachDue(call func(due int64)) {
	for i := range s.waiting {
		call(s.waiting[i].due)
	}
	s.own.each(false, func(a *attempt) bool {
		call(a.due)
		return false
	})
}
