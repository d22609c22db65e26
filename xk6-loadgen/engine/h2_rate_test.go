package engine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

func onSome(t *testing.T, test func(t *testing.T, x transport)) {
	onAll(t, func(t *testing.T, x transport) {
		if x.name == "http1.1" || x.name == "http1.1 over TLS" || x.name == "h2c" || x.name == "h2, 8 streams" || x.name == "h3, 8 streams" {
			test(t, x)
		}
	})
}

type arrivals struct {
	mu    sync.Mutex
	times []time.Time
}

func (a *arrivals) note() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, time.Now())
}

func TestOpenModelStartsAreEvenlySpread(t *testing.T) {
	onSome(t, func(t *testing.T, x transport) {
		const rate, requests = 400, 100
		for attempt := 1; ; attempt++ {
			var seen arrivals
			s := x.serve(t, func(asked) answer {
				seen.note()
				return answer{status: 200, body: "hello"}
			})
			o := x.options(s.url)
			o.Rate, o.Requests, o.Threads = rate, requests, 2
			started := time.Now()
			r := load(t, o)
			if r.Responses[0] != requests || s.requests.Load() != requests || r.Unsent != 0 || r.InFlight != 0 {
				t.Fatal(s, r)
			}
			wantWire(t, s, r)
			// A busy machine can make a request late; nothing makes one early. The k-th is due at k/rate.
			slices.SortFunc(seen.times, time.Time.Compare)
			for k, at := range seen.times {
				if due := started.Add(time.Duration(k) * time.Second / rate); at.Before(due) {
					t.Fatalf("request %d came %s early", k, due.Sub(at))
				}
			}
			if r.Seconds < (requests-1.0)/rate || r.SendDelayMs.Max == 0 || r.SendDelayMs.Min < 0 {
				t.Error(r)
			}
			// Not all of them at the end, unless the machine was busy in every attempt.
			half := seen.times[requests/2].Sub(started)
			if half.Seconds() < 0.85*r.Seconds {
				return
			}
			if attempt == 5 {
				t.Fatalf("half of the requests came after %s of %f s", half, r.Seconds)
			}
		}
	})
}

func TestOpenModelLatencyRunsFromTheIntendedStart(t *testing.T) {
	// One at a time and 50 ms each, due every 20 ms: the k-th is answered at (k+1)·50 ms at the earliest, and leaves at
	// k·50 ms.
	onSome(t, func(t *testing.T, x transport) {
		x.streams = 1
		const requests, busy = 8, 50
		s := x.serve(t, func(asked) answer {
			time.Sleep(busy * ms) // what is measured
			return answer{status: 200, body: "hello"}
		})
		o := x.options(s.url)
		o.Rate, o.Requests, o.Connections = 50, requests, 1
		r := load(t, o)
		const lastSent, lastDue = (requests - 1) * busy, (requests - 1) * 20
		if r.Responses[0] != requests || r.LatencyMs.Min < busy || r.LatencyMs.Max < lastSent+busy-lastDue || r.SendDelayMs.Max < lastSent-lastDue {
			t.Error(r)
		}
		// The mean of what each has to wait is half of the last one's.
		if r.SendDelayMs.Mean < (lastSent-lastDue)/2 || r.LatencyMs.Mean < (lastSent-lastDue)/2+busy {
			t.Error(r)
		}
	})
}

func TestOpenModelStreamsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	tried(t, func() string {
		s := serveH2(t, func(p *h2peer) {
			p.settings()
			p.gather(20)
			for range 20 {
				hello(p, p.next())
			}
		})
		o := h2Options(s)
		o.Connections, o.Streams, o.Requests, o.Rate = 1, 100, 20, 200
		r := load(t, o)
		if r.Responses[0] != 20 || s.connections.Load() != 1 || r.LatencyMs.Max < 19*5 {
			t.Error(s, r)
		}
		// On a busy machine the answers may come one by one, so that the last one has a longer latency.
		if r.LatencyMs.Max < r.LatencyMs.Min+18*5 {
			return fmt.Sprint(r)
		}
		return ""
	})
}

func TestOpenModelCountsWhatItCouldNotSend(t *testing.T) {
	onSome(t, func(t *testing.T, x transport) {
		for _, threads := range []int{1, 2} {
			s := x.serve(t, func(asked) answer { return answer{ending: stalling} })
			o := x.options(s.url)
			o.Rate, o.Duration, o.Connections, o.Threads = 75, 400*ms, 2, threads
			r := load(t, o)
			// Due at 0, 13.3, 26.7 … 386.7 ms.
			if r.Requests+r.InFlight+r.Unsent != 30 || r.InFlight != int64(2*x.streams) || r.ErrorTotal() != 0 {
				t.Errorf("%d threads: %s", threads, r)
			}
		}
	})
}

func TestOpenModelLatencyHasThoseThatWaitInVain(t *testing.T) {
	t.Parallel()
	onSome(t, func(t *testing.T, x transport) {
		var asks atomic.Int64
		x.streams = min(x.streams, 8)
		s := x.serve(t, func(asked) answer {
			if asks.Add(1)%2 == 0 {
				return answer{ending: stalling}
			}
			return answer{status: 200, body: "hello"}
		})
		o := x.options(s.url)
		o.Rate, o.Requests, o.Connections, o.Timeout = 100, 20, 8, 200*ms
		r := load(t, o)
		if timeouts := r.Causes[CauseTimedOut]; timeouts == 0 || sumOf(r.LatencyMs.Histogram) != r.ResponseTotal()+timeouts || r.LatencyMs.Max < 200 {
			t.Errorf("%d timed out, %d of %d responses and those in the latency, up to %f ms", timeouts, sumOf(r.LatencyMs.Histogram), r.ResponseTotal(), r.LatencyMs.Max)
		}
		s = x.serve(t, func(asked) answer { return answer{ending: stalling} })
		o = x.options(s.url)
		o.Rate, o.Duration, o.Connections = 200, 150*ms, 2
		r = load(t, o)
		if r.InFlight == 0 || sumOf(r.LatencyMs.Histogram) != r.InFlight+r.Unsent || r.LatencyMs.Max < 145 || r.LatencyMs.Max > 1e3*r.Seconds+1 {
			t.Errorf("%d under way, %d unsent, %d in the latency, up to %f of %f ms", r.InFlight, r.Unsent, sumOf(r.LatencyMs.Histogram), r.LatencyMs.Max, 1e3*r.Seconds)
		}
		o.Rate = 0
		if r = load(t, o); r.InFlight == 0 || sumOf(r.LatencyMs.Histogram) != 0 {
			t.Errorf("closed: %d under way, %d in the latency", r.InFlight, sumOf(r.LatencyMs.Histogram))
		}
	})
}

func TestARateGoesFirstOnItsCore(t *testing.T) {
	const shortSlice = 100_000
	mayGoFirst, mayBeShort := false, false
	linux.OnOwnThread(func() {
		mayGoFirst = syscall.Setpriority(syscall.PRIO_PROCESS, 0, -1) == nil
		linux.SetShortSlice()
		attributes, err := unix.SchedGetAttr(0, 0)
		mayBeShort = err == nil && attributes.Runtime == shortSlice
	})
	if !mayGoFirst && !mayBeShort {
		t.Skip("no thread of this process may go first")
	}
	some := func(is func(*unix.SchedAttr) bool) bool {
		tasks, _ := os.ReadDir("/proc/self/task")
		return slices.ContainsFunc(tasks, func(task os.DirEntry) bool {
			thread, _ := strconv.Atoi(task.Name())
			attributes, err := unix.SchedGetAttr(thread, 0)
			return err == nil && is(attributes)
		})
	}
	goesFirst := func() bool { return some(func(a *unix.SchedAttr) bool { return a.Nice == firstNice }) }
	isShort := func() bool { return some(func(a *unix.SchedAttr) bool { return a.Runtime == shortSlice }) }
	// The thread of the try, which ends by itself.
	waitFor(t, func() bool { return !isShort() })
	for _, rate := range []float64{0, 100} {
		s := serve(t, always(ok))
		o := options(s.url)
		o.Duration, o.Rate = 10*time.Second, rate
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		responses := make(chan int64)
		go func() { responses <- loadWithin(t, ctx, o).Responses[0] }()
		waitFor(t, func() bool { return s.requests.Load() > 0 })
		if mayGoFirst && goesFirst() != (rate > 0) {
			t.Errorf("rate %g: goes first %t", rate, rate == 0)
		}
		if mayBeShort && isShort() != (rate > 0) {
			t.Errorf("rate %g: short slices %t", rate, rate == 0)
		}
		cancel()
		<-responses
	}
}

func TestOpenModelDurationsCountAllThatWasDue(t *testing.T) {
	onSome(t, func(t *testing.T, x transport) {
		tried(t, func() string {
			s := x.serve(t, fine)
			o := x.options(s.url)
			o.Rate, o.Duration, o.Warmup, o.Threads = 300, 200*ms, 40*ms, 2
			r := load(t, o)
			// What the warm-up left under way ends in the window.
			if total := r.Requests + r.InFlight + r.Unsent; total < 60 || total > 60+int64(4*x.streams) || r.ErrorTotal() != 0 {
				return fmt.Sprint(r)
			}
			seen, counted := s.requests.Load(), r.Requests+r.WarmupRequests
			// The threads agree on the end of the warm-up, which takes a moment.
			if r.WarmupRequests > 15+int64(o.Connections) || seen > counted+r.InFlight || seen < counted {
				return fmt.Sprintf("the peer saw %d, the engine %d + %d + %d", seen, r.Requests, r.WarmupRequests, r.InFlight)
			}
			return ""
		})
	})
}

func TestOpenModelStopOfACount(t *testing.T) {
	t.Parallel()
	// Due are 100 in the time that it takes to stop, and asked for are 50: more than that cannot be left unsent.
	s := serveH2(t, func(p *h2peer) { p.settings(); p.gather(100) })
	o := h2Options(s)
	o.Requests, o.Rate, o.Timeout = 50, 1000, time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), 100*ms)
	defer cancel()
	r := loadWithin(t, ctx, o)
	if r.Requests != 0 || r.InFlight > 10 || r.InFlight+r.Unsent > 50 || r.Seconds > 0.06 && r.InFlight+r.Unsent != 50 {
		t.Error(r)
	}
}

func TestLatencyBucketsAreHalfOpen(t *testing.T) {
	ends := []time.Duration{150 * time.Microsecond, 300 * time.Microsecond, ms}
	for latency, want := range map[time.Duration]int{
		0: 0, 1: 0, 149_999: 0, 150_000: 1, 150_001: 1, 299_999: 1, 300_000: 2, 999_999: 2, 1_000_000: 3, time.Hour: 3,
	} {
		if got := bucketOf(ends, int64(latency)); got != want {
			t.Errorf("%s is in bucket %d, want %d", latency, got, want)
		}
	}
}

func TestLatencyBucketsHoldEveryResponse(t *testing.T) {
	onSome(t, func(t *testing.T, x transport) {
		// Every third connection is closed within an answer: errors are in no bucket, and spoil no other answer.
		s := x.serve(t, func(r asked) answer {
			switch r.path {
			case "/slow":
				time.Sleep(20 * ms) // what is measured
			case "/not":
				return answer{status: 200, body: "hello", ending: closingWithin}
			}
			return answer{status: 200, body: "hello"}
		})
		o := x.options(s.url)
		o.Mix = []Request{{Target: "/"}, {Target: "/slow"}, {Target: "/not"}}
		o.Requests, o.Streams, o.Connections, o.Warmup = 30, 1, 2, ms
		o.Buckets = []time.Duration{20 * ms, 10 * time.Second}
		r := load(t, o)
		fast, slow := r.Buckets[0].Count, r.Buckets[1].Count
		want := []LatencyBucket{{0, 20 * ms, fast}, {20 * ms, 10 * time.Second, slow}, {10 * time.Second, 0, 0}}
		if !slices.Equal(r.Buckets, want) || slow < 5 || fast+slow != 20 || r.ErrorTotal() != 10 {
			t.Errorf("buckets %v: %s", r.Buckets, r)
		}
	})
}

func TestASecondIsHandedOutInTheOpenModelToo(t *testing.T) {
	t.Parallel()
	s := serveH2(t, answering(hello))
	o := h2Options(s)
	o.Requests, o.Rate, o.Duration = 0, 100, 1600*ms
	// The first second lasts longer if the machine keeps the loop from running at its end.
	tried(t, func() string {
		r := load(t, o)
		if r.Requests+r.InFlight+r.Unsent != 160 || fmt.Sprint(r.Buckets) != "[]" {
			t.Errorf("requests %d, in flight %d, unsent %d, buckets %v", r.Requests, r.InFlight, r.Unsent, r.Buckets)
		}
		if first := r.seconds[0].Requests; len(r.seconds) != 2 || first < 50 || first > 101 {
			return fmt.Sprintf("%d seconds, %d requests in the first one", len(r.seconds), first)
		}
		return ""
	})
}
