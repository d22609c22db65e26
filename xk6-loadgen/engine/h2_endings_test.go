package engine

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func TestAServerThatClosesWithItsAnswerIsConnectedToAgain(t *testing.T) {
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		for range 3 {
			hello(p, p.next())
		}
		p.close()
	})
	o := h2Options(s)
	o.Connections, o.Streams, o.Requests = 2, 1, 20
	if r := load(t, o); r.Responses[0] == 0 || s.connections.Load() < 4 {
		t.Error(s, r)
	}
}

func TestAServerThatForbidsStreamsTimesOut(t *testing.T) {
	t.Parallel()
	s := serveH2(t, func(p *h2peer) {
		p.settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
		for range p.gather(1) {
			hello(p, p.next())
		}
		for {
			p.read()
		}
	})
	o := h2Options(s)
	o.Connections, o.Streams, o.Requests, o.Timeout = 1, 1, 3, time.Second
	r := load(t, o)
	// Each connection's first stream is opened before the limit is known. The second request waits and times out; the third one has a
	// connection of its own, but where the server's acknowledgement came late the first one is still thought alive, and it waits there.
	if r.Responses[0] == 0 || r.Errors[ErrTimeout] == 0 || r.Responses[0]+r.Errors[ErrTimeout] != 3 {
		t.Error(r)
	}
}

func TestFramesOfAClosedConnectionDoNotLeaveOnAnother(t *testing.T) {
	var number, stray, bad atomic.Int64
	s := serveH2(t, func(p *h2peer) {
		odd := number.Add(1)%2 == 1
		p.settings()
		if odd {
			// Without :status the stream is reset, on a connection that closes at the same time.
			p.headers(p.next(), true, "content-type", "x")
			bad.Add(1)
			p.close()
		}
		for {
			r := p.next()
			stray.Add(int64(len(p.resets)))
			clear(p.resets)
			hello(p, r)
		}
	})
	o := h2Options(s)
	o.Connections, o.Streams, o.Requests = 20, 1, 2000
	load(t, o)
	if stray.Load() > 0 || bad.Load() == 0 {
		t.Errorf("%d resets came to connections that had nothing to do with them; %d connections were bad", stray.Load(), bad.Load())
	}
}

func TestAReloadedServerCostsNoAttempt(t *testing.T) {
	// Connections that a server's old processes accepted and turn away with NO_ERROR.
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		if p.server.connections.Load() <= 3 {
			p.gather(1)
			p.WriteGoAway(0, http2.ErrCodeNo, nil)
			p.close()
		}
		answering(hello)(p)
	})
	o := h2Options(s)
	o.Connections = 1
	wantResponses(t, load(t, o), o.Requests)
}

func TestWhatWaitsForAConnectionTimesOut(t *testing.T) {
	t.Parallel()
	// The server turns 5 requests away and then takes no connection any more: each failed connect uses up one of them, and
	// the others may not outlive their time.
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		p.gather(5)
		p.server.listener.Close()
		// The kernel takes connections until Accept has returned.
		waitFor(t, func() bool {
			c, err := net.Dial("tcp", p.server.listener.Addr().String())
			if err == nil {
				c.Close()
			}
			return err != nil
		})
		p.WriteGoAway(0, http2.ErrCodeNo, nil)
		p.close()
	})
	o := h2Options(s)
	o.Connections, o.Streams, o.Requests, o.Timeout = 1, 100, 100, 2*time.Second
	r := load(t, o)
	if r.Errors[ErrConnect] == 0 || r.Errors[ErrTimeout] == 0 || r.Seconds > 30 {
		t.Error(r)
	}
}
