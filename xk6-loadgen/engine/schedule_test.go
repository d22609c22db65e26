package engine

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestPoissonArrivalsKeepTheRateAndTheCount(t *testing.T) {
	t.Parallel()
	onSome(t, func(t *testing.T, x transport) {
		s := x.serve(t, fine)
		o := x.options(s.url)
		o.Rate, o.Requests, o.Arrivals, o.Warmup, o.Threads = 400, 200, PoissonArrivals, 50*time.Millisecond, 2
		// 200 arrivals at 400/s take half a second, give or take 0.035.
		if r := load(t, o); r.Responses[0] != 200 || r.Unsent != 0 || r.Seconds < 0.3 {
			t.Errorf("responses %v, unsent %d in %f s: %s", r.Responses, r.Unsent, r.Seconds, r.ErrorExample)
		}
	})
}

func TestARateOfNextToNothing(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Duration, o.Rate = time.Second, 1e-11
	if r := load(t, o); r.Requests != 1 {
		t.Errorf("%d requests", r.Requests)
	}
}

func TestAStalledThreadOwesItsOwnRequests(t *testing.T) {
	// Two threads share the rate. The connection of one stalls until the other has made its half: what the first could not
	// send in time is still its own, with the latency that it has by then.
	stalled := make(chan struct{})
	var hasFirst atomic.Bool
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		if hasFirst.CompareAndSwap(false, true) {
			r := p.next()
			<-stalled
			hello(p, r)
		}
		for {
			hello(p, p.next())
		}
	})
	go func() {
		waitFor(t, func() bool { return s.answered.Load() >= 100 })
		close(stalled)
	}()
	o := h2Options(s)
	o.Connections, o.Threads, o.Streams, o.Requests, o.Rate = 2, 2, 1, 200, 2000
	r := load(t, o)
	// The second half was due within 100 ms of the first: half of all requests waited for it, on average for half of it.
	if r.Responses[0] != 200 || r.LatencyMs.P75 < 20 || r.SendDelayMs.P75 < 20 {
		t.Errorf("responses %v, p75 of latency %f ms, of the send delay %f ms", r.Responses, r.LatencyMs.P75, r.SendDelayMs.P75)
	}
}
