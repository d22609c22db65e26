package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func (p *h2peer) gather(n int) []*h2stream {
	for len(p.ready) < n {
		p.read()
	}
	return p.ready
}

func TestGoAwayInOrder(t *testing.T) {
	t.Parallel()
	// As nginx and h2o end a connection: a warning, then the last stream that is answered, then the close.
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		for range 7 {
			hello(p, p.next())
		}
		p.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
		p.ping()
		for p.pongs == 0 {
			p.read()
		}
		last := p.lastID
		for len(p.ready) > 0 {
			hello(p, p.next())
		}
		p.WriteGoAway(last, http2.ErrCodeNo, []byte("enough"))
		p.close()
	})
	o := h2Options(s)
	o.Requests = 200
	r := load(t, o)
	if r.Responses[0] != 200 || s.answered.Load() != 200 || s.requests.Load() != 200 {
		t.Error(s, r)
	}
	if n := s.connections.Load(); n < 200/(7+5) || n > 200/7+2 {
		t.Errorf("%d connections", n)
	}
}

func TestStreamsAboveTheGoAwayAreQueuedAgain(t *testing.T) {
	for name, closes := range map[string]bool{"then answers and closes": true, "then answers and waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, func(p *h2peer) {
				p.settings()
				if p.server.connections.Load() > 1 {
					answering(hello)(p)
				}
				asked := p.gather(5)
				p.WriteGoAway(asked[1].id, http2.ErrCodeNo, nil)
				hello(p, asked[1])
				hello(p, asked[0])
				if closes {
					p.close()
				}
			})
			o := h2Options(s)
			o.Connections = 1
			r := load(t, o)
			if r.Responses[0] != 40 || s.answered.Load() != 40 || s.requests.Load() != 43 || s.connections.Load() != 2 {
				t.Error(s, r)
			}
		})
	}
}

func TestAServerThatTurnsAllAwayIsNotAskedForEver(t *testing.T) {
	for name, script := range map[string]func(p *h2peer){
		"at once": func(p *h2peer) {
			p.settings()
			p.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil)
		},
		"when asked": func(p *h2peer) {
			p.settings()
			p.next()
			p.WriteGoAway(0, http2.ErrCodeNo, nil)
			p.close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, script)
			o := h2Options(s)
			o.Requests, o.Timeout = 10, time.Second
			r := load(t, o)
			if r.ErrorTotal() != 10 || r.Seconds > 10 || s.connections.Load() > 100 {
				t.Error(s, r)
			}
		})
	}
}

func TestTheLatencyOfAQueuedRequestBeginsWithItsFirstStream(t *testing.T) {
	t.Parallel()
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		if p.server.connections.Load() == 1 {
			hello(p, p.next())
			p.gather(1)
			p.flush()
			time.Sleep(80 * ms) // what is measured
			p.WriteGoAway(1, http2.ErrCodeNo, nil)
			return
		}
		answering(hello)(p)
	})
	o := h2Options(s)
	o.Connections, o.Streams = 1, 1
	if r := load(t, o); r.Responses[0] != 40 || r.LatencyMs.Max < 79 {
		t.Error(r)
	}
}

func TestAResetEndsItsStreamOnly(t *testing.T) {
	for _, code := range []http2.ErrCode{http2.ErrCodeNo, http2.ErrCodeInternal, http2.ErrCodeCancel, http2.ErrCodeRefusedStream, http2.ErrCodeEnhanceYourCalm, 0xffffffff} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, answering(func(p *h2peer, r *h2stream) {
				switch {
				case r.id <= 10 || r.id%4 == 1:
					hello(p, r)
				case r.id%8 == 3:
					p.headers(r, false, okHead...)
					p.data(r, "hel", false)
					p.rst(r, code)
				default:
					p.rst(r, code)
				}
			}))
			o := h2Options(s)
			o.Requests = 200
			r := load(t, o)
			wantErrors(t, r, ErrRead, 200-s.answered.Load())
			wantCause(t, r, CauseReset, r.ErrorTotal())
			if r.Responses[0] != s.answered.Load() || s.answered.Load() > 120 || s.connections.Load() != 2 || s.requests.Load() != 200 {
				t.Error(s, r)
			}
		})
	}
}

func TestStreamsRefusedBeforeTheLimitWasKnownAreQueuedAgain(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	s := serveH2(t, func(p *h2peer) {
		early := append([]*h2stream(nil), p.gather(5)...)
		p.settings(streamsSetting(2))
		for _, r := range early[2:] {
			p.rst(r, http2.ErrCodeRefusedStream)
			refused.Add(1)
		}
		hello(p, early[0])
		hello(p, early[1])
		for p.ready = nil; ; {
			hello(p, p.next())
		}
	})
	r := load(t, h2Options(s))
	if r.Responses[0] != 40 || s.requests.Load() != 40+refused.Load() || refused.Load() != 6 || s.connections.Load() != 2 {
		t.Error(s, refused.Load(), r)
	}
}

func TestAStreamThatTimesOutIsGivenUpAlone(t *testing.T) {
	t.Parallel()
	var late atomic.Int64
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		stuck := p.next()
		p.headers(stuck, false, ":status", "200")
		for {
			hello(p, p.next())
			if code, dropped := p.resets[stuck.id]; dropped {
				if code != http2.ErrCodeCancel {
					t.Errorf("the client reset the stream with %v", code)
				}
				// What was on its way when the client gave up is no fault.
				p.WriteData(stuck.id, false, []byte("late"))
				p.WriteWindowUpdate(stuck.id, 1)
				p.WriteHeaders(http2.HeadersFrameParam{StreamID: stuck.id, BlockFragment: []byte{0x88}, EndStream: true, EndHeaders: true})
				p.WriteRSTStream(stuck.id, http2.ErrCodeNo)
				delete(p.resets, stuck.id)
				late.Add(1)
			}
		}
	})
	o := h2Options(s)
	o.Requests, o.Duration, o.Timeout = 0, time.Second, 400*ms
	r := load(t, o)
	wantErrors(t, r, ErrTimeout, 2)
	if late.Load() != 2 || s.connections.Load() != 2 || r.Responses[0] == 0 {
		t.Errorf("%d late answers, %d connections, responses %v", late.Load(), s.connections.Load(), r.Responses)
	}
}

func TestATimeoutOfAllStreamsEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := serveH2(t, func(p *h2peer) {
		if p.server.connections.Load() > 1 {
			answering(hello)(p)
		}
		p.settings()
	})
	o := h2Options(s)
	o.Connections, o.Timeout = 1, 400*ms
	r := load(t, o)
	// The server's SETTINGS can be a sign of life that came just after the requests: then it gets a second chance.
	if timeouts := r.Errors[ErrTimeout]; timeouts < 5 || timeouts > 10 || r.ErrorTotal() != timeouts || r.Responses[0] != 40-timeouts || s.connections.Load() != 2 {
		t.Error(s, r)
	}
}

func TestAServerThatRefusesEveryFirstStreamIsNotAskedAtFullSpeed(t *testing.T) {
	t.Parallel()
	s := serveH2(t, func(p *h2peer) {
		r := p.next()
		p.settings()
		p.rst(r, http2.ErrCodeRefusedStream)
	})
	o := h2Options(s)
	o.Connections, o.Streams, o.KeepAlive = 1, 1, false
	o.Requests, o.Duration, o.Timeout = 0, 600*ms, 10*time.Second
	r := load(t, o)
	// At once, then after 0, 10, 20, 40, 80, 160 and 320 ms.
	if n := s.connections.Load(); n < 2 || n > 8 {
		t.Errorf("%d connections in %f s", n, r.Seconds)
	}
	if r.Requests != 0 || r.InFlight != 1 {
		t.Error(r)
	}
	// A wait for the next connection counts towards the time-out.
	o.Requests, o.Duration, o.Timeout = 2, 0, 100*ms
	wantErrors(t, load(t, o), ErrTimeout, 2)
}
