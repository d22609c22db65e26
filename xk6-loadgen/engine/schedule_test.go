package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestAScheduleCountsWhatItHandsOut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		step := 1 + random.Int64N(4)
		s := evenSchedule{
			rate:    []float64{1000.0 / 3, 7, 0.3, 10_000.0 / 7, 33_333, 99_999.9, 3, 1e6}[random.IntN(8)],
			portion: portion{step: step, offset: random.Int64N(step), start: random.Int64N(1e10)},
		}
		now := s.start + random.Int64N(20)*second + random.Int64N(2)*random.Int64N(second)
		due := s.dueBefore(now)
		if due > 0 && s.dueAt(due-1) >= now || s.dueAt(due) < now {
			t.Fatalf("%+v: %d are due before %d; number %d is at %d", s, due, now-s.start, due, s.dueAt(due)-s.start)
		}
	}
}

func TestAScheduleHandsOutWhatWasMissed(t *testing.T) {
	ofTwo := portion{step: 2, offset: 1}
	for name, s := range map[string]schedule{
		"constant": &evenSchedule{ofTwo, 1000}, "poisson": &poissonSchedule{portion: ofTwo, rate: 1000, seed: 3},
	} {
		next := s.begin(5 * second)
		for range 100 {
			next = s.next()
		}
		var dues []int64
		n, due := s.missed(6*second, never, func(due, count int64) {
			if count != 1 {
				t.Fatalf("%s: %d at once", name, count)
			}
			dues = append(dues, due)
		})
		// 500 are due in a second; a Poisson process's are within 5 of its standard deviations of that.
		if n != int64(len(dues)) || dues[0] != next || !slices.IsSorted(dues) || dues[n-1] >= 6*second || due < 6*second || n < 288 || n > 512 {
			t.Errorf("%s: %d missed, from %d (was %d) to %d; then %d", name, n, dues[0], next, dues[n-1], due)
		}
		if n, _ := s.missed(100*second, 7, func(_, _ int64) {}); n != 7 {
			t.Errorf("%s: %d are more than 7", name, n)
		}
	}
	for _, poisson := range []bool{false, true} {
		told, calls := int64(0), 0
		var far schedule = &evenSchedule{portion{step: 1}, maxRate}
		if poisson {
			far = &poissonSchedule{portion: portion{step: 1}, rate: maxRate}
		}
		far.begin(0)
		n, _ := far.missed(second/2, never, func(_, count int64) { told, calls = told+count, calls+1 })
		if told != n || !poisson && calls > mostMissed+1 || math.Abs(float64(n)/(maxRate/2)-1) > 0.01 || !poisson && n != maxRate/2 {
			t.Errorf("poisson %t: %d of %d missed ones were told, in %d calls", poisson, told, n, calls)
		}
	}
}

func TestPoissonArrivalsAreThoseOfAPoissonProcess(t *testing.T) {
	// Two loops share the rate: gaps between all arrivals are exponential, with a mean and a standard deviation of 1 / rate.
	const rate = 1000.0
	var all []int64
	for loop := range int64(2) {
		s := &poissonSchedule{portion: portion{step: 2, offset: loop}, rate: rate, seed: 7}
		s.begin(0)
		s.missed(100*second, never, func(due, _ int64) { all = append(all, due) })
	}
	slices.Sort(all)
	sum, squares := 0.0, 0.0
	for i := 1; i < len(all); i++ {
		gap := float64(all[i]-all[i-1]) / 1e9
		sum += gap
		squares += gap * gap
	}
	n := float64(len(all) - 1)
	mean := sum / n
	// Whatever the warm-up took, the window's arrivals are the same.
	arrivals := func(taken int64) (dues []int64) {
		s := &poissonSchedule{portion: portion{step: 1}, rate: rate, seed: 7}
		s.begin(0)
		s.missed(second, taken, func(_, _ int64) {})
		s.begin(second)
		s.missed(2*second, never, func(due, _ int64) { dues = append(dues, due) })
		return dues
	}
	if !slices.Equal(arrivals(3), arrivals(400)) {
		t.Error("the window's arrivals depend on the warm-up")
	}
	near(t, "the mean gap", mean, 1/rate, 0.02)
	near(t, "its standard deviation", math.Sqrt(squares/n-mean*mean), 1/rate, 0.03)
}

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
	o.Duration, o.Rate = 100*time.Millisecond, 1e-11
	if r := load(t, o); r.Requests != 1 {
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
	r := load(t, o)
	// The second half was due within 100 ms of the first: half of all requests waited for it, on average for half of it.
	if r.Responses[0] != 200 || r.LatencyMs.P75 < 20 || r.SendDelayMs.P75 < 20 {
		t.Errorf("responses %v, p75 of latency %f ms, of the send delay %f ms", r.Responses, r.LatencyMs.P75, r.SendDelayMs.P75)
	}
}
