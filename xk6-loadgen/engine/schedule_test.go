package engine

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

func TestAScheduleCountsWhatItHandsOut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		step := 1 + random.Int64N(4)
		s := schedule{
			rate: []float64{1000.0 / 3, 7, 0.3, 10_000.0 / 7, 33_333, 99_999.9, 3, 1e6}[random.IntN(8)],
			step: step, offset: random.Int64N(step), start: random.Int64N(1e10),
		}
		now := s.start + random.Int64N(20)*second + random.Int64N(2)*random.Int64N(second)
		due := s.dueBefore(now)
		if due > 0 && s.dueAt(due-1) >= now || s.dueAt(due) < now {
			t.Fatalf("%+v: %d are due before %d; number %d is at %d", s, due, now-s.start, due, s.dueAt(due)-s.start)
		}
	}
}

func TestARateOfNextToNothing(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Duration, o.Rate = 100*time.Millisecond, 1e-11
	if r := load(t, context.Background(), o); r.Requests != 1 {
		t.Errorf("%d requests", r.Requests)
	}
}

func TestAStalledThreadOwesItsOwnRequests(t *testing.T) {
	// Two threads share the rate. The connection of one stalls until the other has made its half: what the first could not
	// send in time is still its own, with the latency that it has by then.
	stalled := make(chan struct{})
	var one atomic.Bool
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		if one.CompareAndSwap(false, true) {
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
	r := load(t, context.Background(), o)
	// The second half was due within 100 ms of the first: half of all requests waited for it, on average for half of it.
	if r.Responses[0] != 200 || r.LatencyMs.P75 < 20 || r.SendDelayMs.P75 < 20 {
		t.Errorf("responses %v, p75 of latency %f ms, of the send delay %f ms", r.Responses, r.LatencyMs.P75, r.SendDelayMs.P75)
	}
}
