package engine

import (
	"crypto/tls"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

func after(wait time.Duration) handler {
	return answersAfter(func(*testServer, net.Conn) bool {
		time.Sleep(wait) // what is measured
		return true
	})
}

// Answers that come in waves would be 80 or 120.
func TestAnswersOfAServerThatWaitsComeSteadilyUnderContinuousLoad(t *testing.T) {
	t.Parallel()
	const wait, connections = 100 * ms, 40
	for _, isTLS := range []bool{false, true} {
		for _, threads := range []int{1, 2} {
			url := serve(t, func(s *testServer, c net.Conn) {
				if isTLS {
					c = tls.Server(c, serverTLS(ecdsaKey))
				}
				after(wait)(s, c)
			}).url
			if isTLS {
				url = strings.Replace(url, "http:", "https:", 1)
			}
			o := options(url)
			o.TLS.InsecureSkipVerify = isTLS
			o.Connections, o.Threads, o.Warmup, o.Duration = connections, threads, 3*wait, 5*wait/2
			tried(t, func() string {
				if r := load(t, o); r.Responses[0] < 92 || r.Responses[0] > 108 {
					return fmt.Sprintf("TLS %t, %d threads: %s", isTLS, threads, r)
				}
				return ""
			})
		}
	}
}

func TestLatenciesAreThoseOfRequestsAfterTheRamp(t *testing.T) {
	t.Parallel()
	const wait, pause, credit = 10 * ms, 50 * ms, 40
	var mu sync.Mutex
	var last time.Time
	left := 0
	// isFast spends a credit that is full after each pause, as a token bucket's is in the others' turns.
	isFast := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) > pause {
			left = credit
		}
		last = time.Now()
		left--
		return left >= 0
	}
	s := serve(t, answersAfter(func(*testServer, net.Conn) bool {
		if !isFast() {
			time.Sleep(wait) // what is measured
		}
		return true
	}))
	sides := sidesOf(func(side *Side) {
		side.Connections, side.Duration, side.Warmup = 4, 300*ms, 200*ms
	},
		s.url, serve(t, always(ok)).url)
	tried(t, func() string {
		if r := alternate(t, 100*ms, sides...)[0]; r.LatencyMs.Min < 10 || r.Turns.Count < 2 {
			return fmt.Sprintf("the shortest latency is %g ms: %+v", r.LatencyMs.Min, r.Turns)
		}
		return ""
	})
}

// An answer that takes longer than all turns counts with its whole time, and nobody waits for it.
func TestALateAnswerCountsWithItsWholeTime(t *testing.T) {
	t.Parallel()
	const late = 700 * ms
	for _, rate := range []float64{0, 200} {
		var asked atomic.Int64
		s := serve(t, answersAfter(func(*testServer, net.Conn) bool {
			if asked.Add(1) == 60 {
				time.Sleep(late) // what is measured
			}
			return true
		}))
		sides := sidesOf(func(side *Side) {
			side.Rate, side.Duration, side.Warmup = rate, 600*ms, 20*ms
		}, s.url, serve(t, always(ok)).url)
		if rate == 0 {
			sides[0].Duration, sides[1].Duration = 400*ms, 400*ms
		}
		r := alternate(t, 20*ms, sides...)
		if sum := r[0].WarmupRequests + r[0].Requests + r[0].InFlight; sum != s.requests.Load() || r[0].ErrorTotal() > 0 {
			t.Errorf("rate %g: %s %s", rate, s, r[0])
		}
		if rate > 0 && r[0].Turns.StoodStill == 0 && r[0].LatencyMs.Max < 700 {
			t.Errorf("rate %g: %s", rate, r[0])
		}
	}
}

func TestConnectionsThatAServerClosesBetweenTurnsAreOpenedAgain(t *testing.T) {
	t.Parallel()
	onSome(t, func(t *testing.T, x transport) {
		tried(t, func() string {
			s := x.serve(t, fine)
			// In the other side's turn, as by a time-out of kept connections.
			var answered atomic.Int64
			other := x.serve(t, func(asked) answer {
				if now := s.requests.Load(); answered.Swap(now) != now {
					s.testServer.mu.Lock()
					defer s.testServer.mu.Unlock()
					for c := range s.open {
						c.Close()
					}
				}
				return answer{status: 200}
			})
			sides := []Side{{Options: x.options(s.url)}, {Options: x.options(other.url)}}
			for i := range sides {
				sides[i].Rate, sides[i].Duration, sides[i].Warmup = 400, 300*ms, 20*ms
			}
			r := alternate(t, 100*ms, sides...)
			if r[0].ErrorTotal() > 0 || r[0].ConnectMs.Max > 0 || s.connections.Load() < 2*int64(sides[0].Connections) {
				return fmt.Sprint(s, r[0])
			}
			return ""
		})
	})
}

func TestTheServersMemoryIsThatWhileConnectionsAreOpen(t *testing.T) {
	sides := processSides(t, holdsMemory, func(side *Side) { side.Duration, side.Warmup = 200*ms, 100*ms })
	sides = append(sides, sides[1])
	sides[2].CPUOf = nil
	for threads := 1; threads <= 2; threads++ {
		for i := range sides {
			sides[i].Threads = threads
		}
		r := alternate(t, 10*ms, sides...)
		held := float64(r[0].ServerMemoryBytes-r[1].ServerMemoryBytes) / float64(sides[0].Connections*memoryHeld)
		if r[1].ServerMemoryBytes == 0 || held < 0.9 || held > 1.1 {
			t.Errorf("with %d threads it holds %.3f of what it took: %d and %d bytes", threads, held, r[0].ServerMemoryBytes, r[1].ServerMemoryBytes)
		}
		if unknown := r[2].ServerMemoryBytes; unknown != 0 {
			t.Errorf("a server without processes has %d bytes", unknown)
		}
	}
}

func TestAServerAndTheGeneratorWaitForACoreThatAnotherHas(t *testing.T) {
	sides := processSides(t, "1", func(side *Side) { side.Duration, side.Warmup = 300*ms, 20*ms })
	var over atomic.Bool
	defer over.Store(true)
	for range 2 * runtime.NumCPU() {
		go linux.OnOwnThread(func() {
			for !over.Load() {
			}
		})
	}
	for i, r := range alternate(t, 10*ms, sides...) {
		waits := r.ServerCPU.Cores.Waits
		if waits == nil {
			t.Skip("SKIPPED: the kernel does not count waits")
		}
		if turns := r.Seconds * 20; waits.Server <= 0 || waits.Generator <= 0 || waits.Generator > turns {
			t.Errorf("side %d: %+v in %g s", i, waits, r.Seconds)
		}
	}
}

func TestWorkAfterTheAnswersIsThatOfTheTurn(t *testing.T) {
	sides := processSides(t, worksAfterwards, func(side *Side) { side.Duration, side.Warmup = 500*ms, 100*ms })
	tried(t, func() string {
		// Of a turn of 20 ms up to 20 ms are left over.
		if cpu := alternate(t, 20*ms, sides...)[0].ServerCPU; cpu.IdleShare > 0.2 {
			return fmt.Sprintf("%+v", cpu)
		}
		return ""
	})
	// Until as much is left over again, it is too fast.
	tried(t, func() string {
		if turns := alternate(t, 0, sides...)[0].Turns; turns.RampMs < 30 {
			return fmt.Sprintf("%+v", turns)
		}
		return ""
	})
}

func TestWorkLongAfterTheAnswersMakesTurnsLonger(t *testing.T) {
	for kind, isLeft := range map[string]bool{worksLongAfterwards: true, worksAlways: false} {
		sides := processSides(t, kind, func(side *Side) { side.Duration, side.Warmup = 200*ms, 400*ms })
		tried(t, func() string {
			// By the second side's warm-up it is known what the first one does without a load.
			result, err := Alternate(t.Context(), []Side{sides[1], sides[0]}, Turns{First: 1, Seed: 1})
			must(t, err)
			if turns := result[1].Turns; isLeft != (turns.RampMs > 500) {
				return fmt.Sprintf("%s: %+v", kind, turns)
			}
			return ""
		})
	}
}

func TestWorkForConnectionsThatAreOpenedAgainIsNotIdle(t *testing.T) {
	sides := processSides(t, closesIdle, func(side *Side) {
		side.Duration, side.Warmup, side.Connections = time.Second, 100*ms, 20
		side.TLS.InsecureSkipVerify = true
	})
	tried(t, func() string {
		a := alternate(t, 80*ms, sides...)[0]
		if cpu := a.ServerCPU; a.Responses[0] == 0 || cpu.IdleShare > 0.03 {
			return fmt.Sprintf("%d answers, %+v", a.Responses[0], cpu)
		}
		return ""
	})
}

func TestTheServersCPUIsThatOfTheWindow(t *testing.T) {
	url, pid := serverProcess(t)
	side := Side{Options: options(url), CPUOf: []int{pid}}
	side.Duration, side.Warmup = 200*ms, 200*ms
	tried(t, func() string {
		whole := linux.NewProcessTree([]int{pid})
		before := whole.CPU()
		r := alternate(t, 0, side)[0]
		if cpu, all := r.ServerCPU, float64(whole.CPU()-before)/1e9; cpu == nil || cpu.Seconds < 0.3*all || cpu.Seconds > 0.8*all || cpu.IdleShare != 0 {
			return fmt.Sprintf("%+v of %g s in all", cpu, all)
		}
		return ""
	})
}

func TestPaces(t *testing.T) {
	ms := int64(time.Millisecond)
	for name, c := range map[string]struct {
		probe, p50, slow int64
		rare             bool // slow responses are one in 200, not one in 20
		rate             float64
		growth           float64 // growth is that of the queue, per second
		left             int64   // left is the CPU time of work that the server does after the warm-up
		waits            bool
		slice            time.Duration
		ramp             int64
	}{
		"computes":                         {probe: ms / 20, p50: ms, slow: ms, slice: shortestTurn, ramp: ms},
		"computes, with a long queue":      {probe: 50 * ms, p50: 5000 * ms, slow: 5000 * ms, slice: longestSlice, ramp: 5000 * ms},
		"waits, and is busy":               {probe: 3 * ms, p50: 8 * ms, slow: 8 * ms, slice: 128 * time.Millisecond, ramp: 8 * ms},
		"waits":                            {probe: 50 * ms, p50: 51 * ms, slow: 51 * ms, waits: true, slice: 250 * time.Millisecond, ramp: 102 * ms},
		"some take very long":              {probe: ms / 20, p50: ms, slow: 1000 * ms, slice: 3925 * time.Millisecond, ramp: 1962 * ms},
		"computes, and the machine pauses": {probe: ms / 20, p50: ms, slow: 50 * ms, rare: true, slice: shortestTurn, ramp: ms},
		"leaves work for later":            {probe: ms / 20, p50: ms, slow: ms, left: 10 * ms, slice: 160 * time.Millisecond, ramp: 19 * ms},
		"hardly loaded, at a rate":         {p50: ms / 5, slow: ms / 5, rate: 100, slice: rateSlice, ramp: 2 * ms / 5},
		"with a short queue at a rate":     {p50: 20 * ms, slow: 20 * ms, rate: 100, slice: 800 * time.Millisecond, ramp: 40 * ms},
		"near its limit, at a rate":        {p50: 20 * ms, slow: 20 * ms, rate: 100, growth: 5, slice: longestSlice, ramp: 40 * ms},
		"far beyond its limit, at a rate":  {p50: 400 * ms, slow: 400 * ms, rate: 100, growth: 60, slice: longestSlice},
	} {
		o := options(nobody)
		o.Duration, o.Warmup, o.Rate = time.Second, time.Second, c.rate
		l := idleLoop(t, o)
		s := l.shared
		slow := int64(50)
		if c.rare {
			slow = 5
		}
		l.counts.interval.latency.recordMany(c.p50, 1000-slow)
		l.counts.interval.latency.recordMany(c.slow, slow)
		s.probe.latency = c.probe
		if c.growth > 0 {
			s.warmth.continuous = &Continuous{QueueGrowthPerSecond: c.growth}
		}
		if c.left > 0 {
			const cpuMicros = 100
			s.warmth.continuous = &Continuous{CPUMicros: cpuMicros}
			s.turn.workAfter = c.left + int64(o.Connections)*cpuMicros*1e3
		}
		r := &run{plan: l.plan, shared: s, loops: []*loop{l}}
		r.choosePace()
		near := func(got, want float64) bool { return got >= 0.95*want && got <= 1.05*want }
		if p := s.turn.pace; p.waits != c.waits || !near(float64(p.slice), float64(c.slice)) || !near(float64(p.ramp), float64(c.ramp)) {
			t.Errorf("%s: waits %v, slices of %v after a ramp of %v, want %v, %v, %v", name, p.waits, p.slice, time.Duration(p.ramp), c.waits, c.slice, time.Duration(c.ramp))
		}
	}
}

func TestSidesWhoseTurnsWouldBeFewHaveOne(t *testing.T) {
	const ms = int64(time.Millisecond)
	of := func(rate float64, slice time.Duration, ramp int64) *run {
		o := options(nobody)
		o.Duration, o.Warmup, o.Rate = time.Second, 400*time.Millisecond, rate
		l := idleLoop(t, o)
		l.shared.turn.pace = pace{slice: slice, ramp: ramp}
		return &run{plan: l.plan, shared: l.shared, loops: []*loop{l}}
	}
	for name, c := range map[string]struct {
		rate    float64
		longest time.Duration // of the second side
		asked   time.Duration
		slice   time.Duration
		ramps   [2]int64
	}{
		"short turns":               {longest: 100 * time.Millisecond, slice: 100 * time.Millisecond, ramps: [2]int64{ms, 9 * ms}},
		"long turns":                {longest: 600 * time.Millisecond, slice: longestSlice, ramps: [2]int64{400 * ms, 400 * ms}},
		"long turns asked for":      {longest: 100 * time.Millisecond, asked: time.Second, slice: longestSlice, ramps: [2]int64{400 * ms, 400 * ms}},
		"short turns at a rate":     {rate: 10, longest: 300 * time.Millisecond, slice: 300 * time.Millisecond, ramps: [2]int64{9 * ms, 9 * ms}},
		"a queue that settles late": {rate: 10, longest: 1200 * time.Millisecond, slice: longestSlice, ramps: [2]int64{600 * ms, 600 * ms}},
		"a queue that never does":   {rate: 10, longest: longestSlice, slice: longestSlice, ramps: [2]int64{1000 * ms, 1000 * ms}},
	} {
		runs := []*run{of(c.rate, 50*time.Millisecond, ms), of(c.rate, c.longest, 9*ms)}
		slice := settlePaces(runs, c.asked)
		if got := [2]int64{runs[0].shared.turn.pace.ramp, runs[1].shared.turn.pace.ramp}; slice != c.slice || got != c.ramps {
			t.Errorf("%s: turns of %v after ramps of %v, want %v, %v", name, slice, got, c.slice, c.ramps)
		}
	}
}

func TestTheOrderBeginsWithTheSideThatIsNamed(t *testing.T) {
	begins := map[int]bool{}
	for seed := range uint64(20) {
		for first := range 4 {
			order := orderFrom(newRandom(seed), 3, first)
			if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, []int{0, 1, 2}) || first > 0 && order[0] != first-1 {
				t.Errorf("seed %d, first %d: %v", seed, first, order)
			}
			if first == 0 {
				begins[order[0]] = true
			}
		}
	}
	if len(begins) != 3 {
		t.Errorf("seeds of 0 to 19 begin with these sides only: %v", begins)
	}
}

func TestTheDrainOfAWarmUpIsAsLongAsItsFirstAnswers(t *testing.T) {
	for _, c := range []struct{ slowest, drain int64 }{{3 * second, 6 * second}, {second / 100, drainLimit}} {
		o := options(nobody)
		o.Duration, o.Warmup = time.Second, time.Second
		l := idleLoop(t, o)
		l.counts.interval.latency.record(c.slowest)
		l.beginStretch(1, l.clock, l.clock+int64(o.Warmup))
		l.mark()
		if n := l.counts.interval.latency.count; n > 0 {
			t.Errorf("%d latencies from before the stretch", n)
		}
		l.window.phase, l.turn.state, l.turn.sliceEnd = warmedUp, awaiting, l.clock
		l.shared.turn.pace.patience, l.shared.turn.pace.quiet = drainLimit, drainLimit
		if drain := l.drainEnd() - l.turn.sliceEnd; drain < c.drain*99/100 || drain > c.drain*101/100 {
			t.Errorf("after an answer of %v the drain is %v", time.Duration(c.slowest), time.Duration(drain))
		}
	}
}

// No answer falls into a warm-up of its planned length, and turns that know no latency are too short for any.
func TestAnswersThatTakeLongerThanTheWarmUpAndTheWindow(t *testing.T) {
	t.Parallel()
	const wait, connections = 2200 * ms, 40
	sides := sidesOf(func(side *Side) {
		side.Connections, side.Warmup, side.Duration, side.patience = connections, 100*ms, 300*ms, 0
	}, serve(t, after(wait)).url, serve(t, always(ok)).url)
	tried(t, func() string {
		r := alternate(t, 0, sides...)[0]
		if want := connections / wait.Seconds(); r.RPS < 0.7*want || r.RPS > 1.5*want || r.Hung > 0 || !r.Turns.Waits || r.LatencyMs.P50 < inMs(int64(wait)) {
			return fmt.Sprintf("%g requests/s in %g s where %g are possible, %d hung, p50 %g ms, turns %+v", r.RPS, r.Seconds, want, r.Hung, r.LatencyMs.P50, r.Turns)
		}
		return ""
	})
}
