package responder

import (
	"bytes"
	"fmt"
)

// http1Answers are the responses to all kinds of requests: by whether the method is HEAD, and whether the connection is
// closed after it.
type http1Answers [2][2]*answers

func newHTTP1Answers(bodyBytes int64) *http1Answers {
	var all http1Answers
	for closes, connection := range []string{"keep-alive", "close"} {
		// keep-alive is said to all, as nginx does: HTTP/1.0 clients need it.
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n", contentType, bodyBytes, connection)
		all[0][closes], all[1][closes] = newAnswers(head, bodyBytes), newAnswers(head, 0)
	}
	return &all
}

func (all *http1Answers) of(r request) *answers {
	head, closes := 0, 0
	if r.isHead {
		head = 1
	}
	if r.closes {
		closes = 1
	}
	return all[head][closes]
}

// http1 is HTTP/1.0 and HTTP/1.1.
type http1 struct {
	all *http1Answers
	// kept is the beginning of a head whose end has not come in yet.
	kept []byte
	// request is the one whose body is coming in, bodyLeft what is to come of it.
	request  request
	bodyLeft int64
	// answers are owed: that many bytes of them, from this place in a response on.
	answers  *answers
	owed, at int64
	// ending: nothing is taken any more.
	ending bool
}

func (s *http1) received(w *workspace, p []byte) int {
	left := p
	for len(left) > 0 && !s.ending {
		if s.bodyLeft > 0 {
			n := min(s.bodyLeft, int64(len(left)))
			left = left[n:]
			if s.bodyLeft -= n; s.bodyLeft == 0 {
				s.answer()
			}
			continue
		}
		r, n := s.next(w, left)
		if n < 0 || s.ending {
			break
		}
		if s.owed > 0 && s.answers != s.all.of(r) {
			// Another kind of response: those that are owed go first.
			return len(p) - len(left)
		}
		left, s.kept = left[n:], s.kept[:0]
		s.request, s.bodyLeft = r, r.bodyBytes
		if s.bodyLeft == 0 {
			s.answer()
		}
	}
	return len(p)
}

// next finds the request that begins what was kept and goes on in p; n is what it takes of p, or -1 when its head has not
// come in wholly: then all is kept. What cannot be a request ends the connection.
func (s *http1) next(w *workspace, p []byte) (r request, n int) {
	if len(s.kept) == 0 {
		if len(w.lastHead) > 0 && bytes.HasPrefix(p, w.lastHead) {
			return w.lastRequest, len(w.lastHead)
		}
		if n := bytes.Index(p, headEnd); n >= 0 {
			return s.parse(w, p[:n+len(headEnd)]), n + len(headEnd)
		}
		s.keep(p)
		return r, -1
	}
	// The end of the head may be on both sides of where it was cut.
	before := len(s.kept)
	from := max(0, before-len(headEnd)+1)
	s.kept = append(s.kept, p[:min(len(p), maxHeadBytes-before)]...)
	end := bytes.Index(s.kept[from:], headEnd)
	if end < 0 {
		s.kept = s.kept[:before]
		s.keep(p)
		return r, -1
	}
	end += from + len(headEnd)
	r = s.parse(w, s.kept[:end])
	s.kept = s.kept[:before]
	return r, end - before
}

// keep keeps the beginning of a head, if it can be one.
func (s *http1) keep(p []byte) {
	first := p[0]
	if len(s.kept) > 0 {
		first = s.kept[0]
	}
	if s.ending = !isTokenByte(first) || len(s.kept)+len(p) > maxHeadBytes; !s.ending {
		s.kept = append(s.kept, p...)
	}
}

func (s *http1) parse(w *workspace, head []byte) request {
	r, ok := parseRequest(head)
	if !ok {
		s.ending = true
		return r
	}
	w.lastHead, w.lastRequest = append(w.lastHead[:0], head...), r
	return r
}

func (s *http1) answer() {
	s.answers = s.all.of(s.request)
	s.owed += s.answers.size
	s.ending = s.request.closes
}

func (s *http1) pending(*workspace) []byte {
	if s.owed == 0 {
		return nil
	}
	return s.answers.from(s.at, s.owed)
}

func (s *http1) sent(_ *workspace, n int) {
	s.owed -= int64(n)
	s.at = (s.at + int64(n)) % s.answers.size
}

// hold: what is owed is in no workspace.
func (s *http1) hold(*workspace) {}

func (s *http1) ends() bool { return s.ending }

func (s *http1) reset() { *s = http1{all: s.all, kept: emptied(s.kept)} }
