package engine

import (
	"sync/atomic"
	"testing"
)

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
