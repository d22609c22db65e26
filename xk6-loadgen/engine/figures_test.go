package engine

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

func resetsEvery(n int64) handler {
	var asked atomic.Int64
	return answersAfter(func(_ *testServer, c net.Conn) bool {
		isReset := asked.Add(1)%n == 0
		if isReset {
			c.(*net.TCPConn).SetLinger(0)
		}
		return !isReset
	})
}

func TestRatesAreOfResponses(t *testing.T) {
	t.Parallel()
	for name, every := range map[string]int64{"every hundredth is reset": 100, "half of them are reset": 2} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, resetsEvery(every))
			r := loadUntil(t, options(s.url), func() bool { return s.requests.Load() > 400 })
			responses := float64(r.Responses[0])
			if r.ErrorTotal() < 3 || responses == 0 || float64(r.Requests) != responses+float64(r.ErrorTotal()) {
				t.Fatal(r)
			}
			if want := responses / r.Seconds; r.RPS != want {
				t.Errorf("%f requests/s, the responses are %f/s", r.RPS, want)
			}
			if got := r.PerConnectionRPS.Mean * 4 * r.Seconds; math.Abs(got-responses) > 0.01*responses {
				t.Errorf("the connections' rates are those of %f responses, there were %f", got, responses)
			}
			if ratio := responses / float64(r.Requests); r.SuccessRatio() != ratio {
				t.Errorf("success ratio %f, want %f", r.SuccessRatio(), ratio)
			}
		})
		t.Run(name+", in less time than a thread's sample takes", func(t *testing.T) {
			o := options(serve(t, resetsEvery(every)).url)
			o.Duration = 50 * ms
			if r := load(t, o); math.Abs(r.PerThreadRPS.Mean-r.RPS) > 0.01*r.RPS {
				t.Errorf("the thread made %f requests/s, all together %f", r.PerThreadRPS.Mean, r.RPS)
			}
		})
	}
}

func TestAStragglerOfTheWarmupDoesNotStretchTheWindow(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 2000} {
		t.Run(fmt.Sprintf("rate %v", rate), func(t *testing.T) {
			// The warm-up's first request is answered long after its end: the other thread has nothing to wait for.
			var first atomic.Bool
			var answered atomic.Int64
			s := serve(t, answersAfter(func(*testServer, net.Conn) bool {
				if first.CompareAndSwap(false, true) {
					time.Sleep(400 * ms) // what the window must not contain
					answered.Store(linux.Monotonic())
				}
				return true
			}))
			o := options(s.url)
			o.Connections, o.Threads, o.Requests, o.Warmup, o.Rate = 2, 2, 200, 50*ms, rate
			r := load(t, o)
			if begin := r.Window.MonotonicMs[0] * 1e6; begin < float64(answered.Load()) {
				t.Errorf("the window began %f ms before the warm-up was over", (float64(answered.Load())-begin)/1e6)
			}
			if r.Responses[0] != 200 {
				t.Error(r)
			}
		})
	}
}

func TestRunsAtTheSameTimeLeaveProcessorsToAllElse(t *testing.T) {
	was := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(was)
	release := make(chan struct{})
	s := serve(t, func(s *testServer, c net.Conn) {
		s.readRequest(bufio.NewReader(c))
		<-release
		io.WriteString(c, ok)
	})
	o := options(s.url)
	o.Connections, o.Threads, o.Requests = 3, 3, 3
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() { load(t, o) })
	}
	waitFor(t, func() bool { return s.requests.Load() == 6 })
	if n := runtime.GOMAXPROCS(0); n < 8 {
		t.Errorf("GOMAXPROCS is %d with 6 loops under way", n)
	}
	close(release)
	runs.Wait()
	if processors.loops != 0 {
		t.Errorf("%d loops are still counted", processors.loops)
	}
}

// interval of a loop by hand, in seconds since the window's begin.
func handedOver(l *loop, end float64, requests int64, cpu float64, last bool) *interval {
	at := int64(end * 1e9)
	l.counts.responses, l.outcome.end, l.outcome.endCPU = l.counts.responses+requests, at, cpuReading{at: at, used: int64(cpu * 1e9)}
	l.tally.connectTimes, l.tally.firstByteTimes = newRecorder(), newRecorder()
	return &interval{
		loop: l, end: at, cpu: l.outcome.endCPU, last: last, measured: true, latency: newRecorder(), Counts: Counts{Requests: requests},
	}
}

func TestEverySampleHasItsLength(t *testing.T) {
	type report struct {
		loop     int
		end      float64
		requests int64
		cpu      float64
		last     bool
	}
	type sample struct {
		seconds  float64
		requests int64
		cpu      float64
	}
	for name, test := range map[string]struct {
		reports []report
		want    []sample
	}{
		"the last one is of a nanosecond": {
			[]report{{0, 1, 10, 0.5, false}, {0, 2, 10, 1, false}, {0, 2.000000001, 1, 1.1, true}},
			[]sample{{1, 10, 0.5}, {1.000000001, 11, 0.6}},
		},
		"less than half a second joins the one before": {
			[]report{{0, 1, 10, 0.5, false}, {0, 1.4, 4, 0.64, true}}, []sample{{1.4, 14, 0.64 / 1.4}},
		},
		"half a second is one of its own": {
			[]report{{0, 1, 10, 0.5, false}, {0, 1.5, 4, 0.7, true}}, []sample{{1, 10, 0.5}, {0.5, 4, 0.4}},
		},
		"all is shorter": {[]report{{0, 0.1, 10, 0.05, true}}, []sample{{0.1, 10, 0.5}}},
		"a loop is late, then in time": {
			[]report{
				{0, 1, 10, 0.5, false}, {1, 1, 1, 0.5, false}, {0, 2, 10, 1, false}, {1, 2.95, 2, 1.4, false}, {0, 3, 10, 1.5, false},
				{1, 3, 1, 1.5, false}, {0, 4, 10, 2, true}, {1, 4, 1, 2, true},
			},
			[]sample{{1, 11, 0.5}, {1.95, 12, 0.9 / 1.95}, {1.05, 22, 0.6 / 1.05}},
		},
		"a loop misses a second, the other one goes on": {
			[]report{
				{0, 1, 10, 0.5, false}, {1, 1, 1, 0.5, false}, {0, 2, 20, 1, false}, {0, 3, 30, 1.5, false}, {1, 3, 2, 1.5, false},
				{0, 4, 40, 2, true}, {1, 4, 4, 2, true},
			},
			[]sample{{1, 11, 0.5}, {1, 20, 0.5}, {1, 32, 0.5}, {1, 44, 0.5}},
		},
		"a late loop after another one that was, which then ends": {
			[]report{
				{0, 1, 10, 0.5, false}, {1, 1.49, 1, 0.5, false}, {0, 1.78, 5, 0.7, false}, {1, 1.9, 1, 0.8, true}, {0, 3, 10, 1.5, true},
			},
			[]sample{{1.49, 11, 0.5 / 1.49}, {1.51, 16, 1 / 1.51}},
		},
		"a loop ends early": {
			[]report{{0, 0.2, 5, 0.1, true}, {1, 1, 10, 0.5, false}, {1, 2, 10, 1, true}}, []sample{{1, 15, 0.5}, {1, 10, 0.5}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shared{opening: windowOpening{opened: true}, intervals: make(chan *interval, 20)}
			loops := []*loop{{plan: &plan{}}, {plan: &plan{}}}
			for _, l := range loops {
				l.counts.spare = make(chan *interval, 9)
			}
			used := 0
			for _, r := range test.reports {
				used = max(used, r.loop+1)
				s.intervals <- handedOver(loops[r.loop], r.end, r.requests, r.cpu, r.last)
			}
			var got []sample
			result := collect(s, loops[:used], func(s Second) { got = append(got, sample{s.Seconds, s.Requests, s.GeneratorCPU}) })
			sum := 0.0
			for i := range got {
				sum += got[i].seconds
				if i >= len(test.want) || got[i].requests != test.want[i].requests || math.Abs(got[i].seconds-test.want[i].seconds) > 1e-9 ||
					math.Abs(got[i].cpu-test.want[i].cpu) > 1e-6 {
					t.Errorf("samples %v, want %v", got, test.want)
					break
				}
			}
			if len(got) != len(test.want) || math.Abs(sum-result.Seconds) > 1e-9 {
				t.Errorf("%d samples of %f s, want %d of %f s", len(got), sum, len(test.want), result.Seconds)
			}
		})
	}
}

func TestSamplesOfSeveralThreadsAddUp(t *testing.T) {
	o := options(serve(t, always(ok)).url)
	o.Duration, o.Threads, o.Warmup = 2300*ms, 2, 20*ms
	tried(t, func() string { // A machine that stalls for a second makes the window as much longer
		r := load(t, o)
		if len(r.seconds) != 2 {
			return fmt.Sprintf("%d samples of a window of %f s", len(r.seconds), r.Seconds)
		}
		cpu := 0.0
		for _, s := range r.seconds {
			cpu += s.Seconds * s.GeneratorCPU
			if s.GeneratorCPU <= 0 {
				t.Errorf("a sample has a generator CPU of %f", s.GeneratorCPU)
			}
		}
		// A thread that was interrupted while it read the CPU time makes a sample's figure one of a little more or less time.
		if math.Abs(cpu-r.CPUSeconds) > 0.05*r.CPUSeconds {
			return fmt.Sprintf("the samples' CPU time is %f s, the window's %f s", cpu, r.CPUSeconds)
		}
		return ""
	})
}

func TestCPUTimeIsThatOfOnesOwnTurns(t *testing.T) {
	sides := processSides(t, "1", func(side *Side) { side.Duration = 400 * ms })
	sides[1].Rate = 20
	before := linux.ProcessCPU()
	r := alternate(t, 5*ms, sides...)
	all := float64(linux.ProcessCPU()-before) / 1e9
	// Counted over the turns of both, they would be alike, and together twice of all.
	if busy, idle := r[0].CPUSeconds, r[1].CPUSeconds; idle <= 0 || idle >= busy || busy+idle > all {
		t.Errorf("the busy side used %g s, the idle one %g, all together %g", busy, idle, all)
	}
}

func TestBodiesFarFromTheFirstAreCounted(t *testing.T) {
	for _, x := range []struct {
		mix    []Request
		bodies []int64
		want   int64
	}{
		{nil, []int64{100, 100, 51, 149, 49, 151, 0, 100}, 3},
		{nil, []int64{10, 0, 26, 27}, 1}, // a counter in a short page
		{nil, []int64{0, 16, 17}, 1},
		{[]Request{{Target: "/a"}, {Target: "/a?more"}}, []int64{100, 10, 1000}, 0},
	} {
		o := options(nobody)
		o.Mix, o.Requests = x.mix, 1
		l := idleLoop(t, o)
		r := &l.plan.requests[0]
		for _, bodyBytes := range x.bodies {
			l.counts.outstanding++
			l.response(&attempt{start: l.clock, request: r, expected: r.expected}, l.clock, 200, 1, 1, bodyBytes)
		}
		if got := l.counts.interval.OtherBodies; got != x.want {
			t.Errorf("%v: %d are far, want %d", x.bodies, got, x.want)
		}
	}
}
