package engine

import (
	"cmp"
	"fmt"
	"net"
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

// slowEach answers at once, but each n-th request after the delay.
func slowEach(n int64, delay time.Duration) handler {
	return answersAfter(func(s *testServer, _ net.Conn) bool {
		if s.requests.Load()%n == 0 {
			time.Sleep(delay) // what is measured
		}
		return true
	})
}

func TestRequestsPerSecondOfACountDoNotEndWithItsLastAnswer(t *testing.T) {
	for name, x := range map[string]struct {
		serve   handler
		change  func(*Options)
		served  float64
		seconds float64
	}{
		"the last answer is late": {slowEach(25, 500*ms), func(o *Options) { o.Warmup = 600 * ms }, 200, 1},
		"all answers are late":    {slowEach(1, 300*ms), func(o *Options) { o.Warmup = 600 * ms }, 200, 1},
		"there is no warm-up":     {slowEach(25, 100*ms), func(*Options) {}, 200, 1},
		"two threads":             {always(ok), func(o *Options) { o.Threads = 2 }, 200, 1},
		"a single request":        {always(ok), func(o *Options) { o.Requests, o.Connections, o.Rate = 1, 1, 4 }, 4, 0.25},
		"random times":            {always(ok), func(o *Options) { o.Arrivals = PoissonArrivals }, 200, 1},
		"too much for the server": {oneQueue(every(10 * ms)), func(o *Options) { o.Connections, o.Warmup = 40, 300*ms }, 100, 1},
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
