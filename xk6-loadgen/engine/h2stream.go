package engine

import (
	"slices"

	"golang.org/x/net/http2"
)

// attempt is one that was taken.
type attempt struct {
	// begun is when it was taken, due when it was to start: in the closed model when it was taken.
	begun, due int64
	// start is where its latency begins; with HTTP/2 0 before it has a stream.
	start int64
}

// stream is an attempt under way. id 0: the place is free.
type stream struct {
	attempt
	id uint32
	// status is that of the final response's headers; 0: they have not come in.
	status int32
	// headerBytes, decodedBytes and bodyBytes came in; length is what content-length says, -1: nothing.
	headerBytes, decodedBytes int64
	bodyBytes, length         int64
	// flow is what came in since the last update of this stream's window.
	flow int64
	// sent of the request's body, and the server's window for the rest.
	sent   int
	window int64
}

// haveWaiting takes an attempt to wait for a stream, unless one does, and tells whether there is one.
func (s *h2) haveWaiting() bool {
	if len(s.waiting) > 0 {
		return true
	}
	l := s.conn.loop
	due, taken := l.take(s.conn)
	if taken {
		s.newest = l.clock
		s.waiting = append(s.waiting, attempt{begun: l.clock, due: due})
	}
	return taken
}

// nextWaiting takes the first of those that wait off the list.
func (s *h2) nextWaiting() attempt {
	first := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	return first
}

func (s *h2) place(id uint32) *stream { return &s.streams[int(id>>1)&(len(s.streams)-1)] }

// grow doubles the ring. Streams that had different places still have.
func (s *h2) grow() {
	old := s.streams
	s.streams = make([]stream, max(1, 2*len(old)))
	for i := range old {
		if old[i].id != 0 {
			*s.place(old[i].id) = old[i]
		}
	}
}

// find is the stream under way with this identifier, or nil.
func (s *h2) find(id uint32) *stream {
	if len(s.streams) == 0 {
		return nil
	}
	if st := s.place(id); st.id == id && id != 0 {
		return st
	}
	return nil
}

// remove frees the stream's place.
func (s *h2) remove(st *stream) {
	if st.sent < len(s.conn.loop.plan.Body) {
		s.uploading--
	}
	st.id = 0
	s.active--
}

// requeue takes a stream back that the server has not looked at.
func (s *h2) requeue(st *stream) {
	s.waiting = append(s.waiting, st.attempt)
	s.remove(st)
}

// expire ends streams that take too long; when nothing at all has come in for that time the connection ends with them.
func (s *h2) expire(before int64) {
	if s.oldest >= before {
		return
	}
	c := s.conn
	l := c.loop
	const example = "no complete response within the timeout"
	isSilent, all := c.state == established && s.lastReceived < before, s.underWay()
	if isSilent && all > 0 && s.newest < before {
		c.fail(ErrTimeout, CauseTimedOut, example)
		return
	}
	s.oldest = l.clock
	expires := func(a attempt) bool {
		if a.begun >= before {
			s.oldest = min(s.oldest, a.begun)
			return false
		}
		l.failure(c, ErrTimeout, CauseTimedOut, example, a.due)
		return true
	}
	s.waiting = slices.DeleteFunc(s.waiting, expires)
	for i := range s.streams {
		if st := &s.streams[i]; st.id != 0 && expires(st.attempt) {
			s.reset(st.id, http2.ErrCodeCancel)
			s.remove(st)
		}
	}
	if c.state != established || s.underWay() == all {
		return
	}
	// A silent connection may be dead: those that are younger have their time still, and no other one is sent on it.
	s.draining = s.draining || isSilent
	generation := c.generation
	if s.refill(); c.generation == generation {
		s.flush()
	}
}

func (s *h2) underWay() int64 { return int64(s.active + len(s.waiting)) }

func (s *h2) eachDue(call func(due int64)) {
	for i := range s.waiting {
		call(s.waiting[i].due)
	}
	for i := range s.streams {
		if s.streams[i].id != 0 {
			call(s.streams[i].due)
		}
	}
}
