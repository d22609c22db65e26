package engine

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

func TestARateOfNextToNothing(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Duration, o.Rate = time.Second, 1e-11
	if r := load(t, o); r.Requests != 1 {
		t.Error(r)
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

// slowEach answers at once, but each n-th request after the delay.
func slowEach(n int64, delay time.Duration) func(*testServer, net.Conn) {
	return func(s *testServer, c net.Conn) {
		for r := bufio.NewReader(c); s.readRequest(r); io.WriteString(c, ok) {
			if s.requests.Load()%n == 0 {
				time.Sleep(delay) // what is measured
			}
		}
	}
}

func TestRequestsPerSecondOfACountDoNotEndWithItsLastAnswer(t *testing.T) {
	for name, x := range map[string]struct {
		serve   func(*testServer, net.Conn)
		change  func(*Options)
		served  float64
		seconds float64
	}{
		"the last answer is late": {slowEach(25, 500*time.Millisecond), func(o *Options) { o.Warmup = 600 * time.Millisecond }, 200, 1},
		"all answers are late":    {slowEach(1, 300*time.Millisecond), func(o *Options) { o.Warmup = 600 * time.Millisecond }, 200, 1},
		"there is no warm-up":     {slowEach(25, 100*time.Millisecond), func(*Options) {}, 200, 1},
		"two threads":             {always(ok), func(o *Options) { o.Threads = 2 }, 200, 1},
		"a single request":        {always(ok), func(o *Options) { o.Requests, o.Connections, o.Rate = 1, 1, 4 }, 4, 0.25},
		"random times":            {always(ok), func(o *Options) { o.Arrivals = PoissonArrivals }, 200, 1},
		"too much for the server": {oneQueue(every(10 * time.Millisecond)), func(o *Options) { o.Connections, o.Warmup = 40, 300*time.Millisecond }, 100, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried(t, func() string {
				o := options(serve(t, x.serve).url)
				o.Connections, o.Requests, o.Rate = 100, 200, 200
				x.change(&o)
				r := load(t, o)
				off := 0.05
				if o.Arrivals == PoissonArrivals {
					off = 0.25 // More than three standard errors of 200 arrivals
				} else if problem := notNear("seconds", r.Seconds, x.seconds, 0.02); problem != "" {
					return problem
				}
				if r.WarmupRequests+r.Requests < o.Requests || r.InFlight != 0 {
					return fmt.Sprint(r)
				}
				return cmp.Or(notNear("requests/s", r.RPS, x.served, off), notNear("their seconds", float64(r.Requests)/o.Rate, r.Seconds, off))
			})
		})
	}
}
