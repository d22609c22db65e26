package engine

import (
	"slices"

	"golang.org/x/net/http2"
)

const (
	// maxTurnedAway connections in a row may end before a response without an error, as while a server is reloaded.
	maxTurnedAway = 3
	noResponse    = "no complete response within the timeout"
)

type attempt struct {
	begun, due int64 // begun is when it was taken, due when it should have started: the same in the closed model
	start      int64 // where its latency begins; 0 before it has a stream
	request    *request
}

// streaming is what HTTP/2 and HTTP/3 have in common: several attempts on a connection, and those that wait for a stream.
type streaming struct {
	conn       *conn
	waiting    []attempt // waiting attempts were taken and have no stream yet; they go first.
	turnedAway int       // turnedAway counts connections in a row that ended before a response.
	page       pageLoad  // of a load whose streams begin together

	// The rest belongs to the connection. oldest is no later than the begin of any attempt; newest is the begin of the last one taken on
	// this connection, not before it.
	oldest, newest     int64
	draining, answered bool // draining: no more streams are opened. answered: a response came in.
	goneAway           bool // the server takes no more streams
}

// pageLoad are requests of a connection that begin together. begun is where the latency of the first one starts.
type pageLoad struct {
	files, responses int
	begun            int64
}

func (s *streaming) renewed() streaming {
	return streaming{conn: s.conn, waiting: s.waiting, turnedAway: s.turnedAway, page: s.page}
}

// haveWaiting tells whether an attempt waits for a stream, and takes one if need be.
func (s *streaming) haveWaiting() bool {
	if len(s.waiting) > 0 {
		return true
	}
	l := s.conn.loop
	if l.plan.Together {
		if s.conn.session.underWay() == 0 {
			s.page = pageLoad{}
		}
		if s.page.files == l.plan.Streams {
			return false
		}
	}
	next, taken := l.take(s.conn)
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
	if a.request.isHead || status == 204 || status == 304 {
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
		from = s.page.answered(a.start, l.plan.Streams)
	}
	l.response(a, from, status, headerBytes, decodedBytes, bodyBytes)
	s.conn.countResponse()
	s.answered = true
}

// answered returns where the latency of the page starts, noLatency before its last response.
func (p *pageLoad) answered(start int64, files int) int64 {
	if p.responses == 0 || start < p.begun {
		p.begun = start
	}
	if p.responses++; p.responses < files {
		return noLatency
	}
	return p.begun
}

// finish ends a connection on which nothing is under way. The code is that of the server's GOAWAY.
func (s *streaming) finish(code http2.ErrCode) {
	c := s.conn
	if s.answered {
		s.turnedAway = 0
	} else if s.turnedAway++; len(s.waiting) > 0 && s.goneAway && (s.turnedAway > maxTurnedAway || code != http2.ErrCodeNo) {
		c.fail(ErrRead, CauseShort, "the server sent GOAWAY ("+code.String()+") before it answered a request")
		return
	}
	c.close()
	if s.answered {
		c.loop.enqueue(c)
		return
	}
	c.failures++
	c.reconnect()
}

// failFirst fails the attempt for which the connection was opened.
func (s *streaming) failFirst(kind ErrorKind, cause ErrorCause, example string) {
	if len(s.waiting) > 0 {
		first := s.nextWaiting()
		s.conn.loop.failure(s.conn, kind, cause, example, &first)
	}
}

// expireWaiting ends the waiting attempts that began before, and returns what does the same for one that has a stream.
func (s *streaming) expireWaiting(before int64) (expires func(attempt) bool) {
	l := s.conn.loop
	s.oldest = l.clock
	expires = func(a attempt) bool {
		if a.begun >= before {
			s.oldest = min(s.oldest, a.begun)
			return false
		}
		l.failure(s.conn, ErrTimeout, CauseTimedOut, noResponse, &a)
		return true
	}
	s.waiting = slices.DeleteFunc(s.waiting, expires)
	return expires
}

func (s *streaming) eachWaiting(call func(due int64)) {
	for i := range s.waiting {
		call(s.waiting[i].due)
	}
}
