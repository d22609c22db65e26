package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/schedule"
)

func milliseconds(times ...int) (at []time.Duration) {
	for _, ms := range times {
		at = append(at, time.Duration(ms)*time.Millisecond)
	}
	return at
}

// A rush of 50 at once, before a server that takes 40 ms for each, one after the other: of the 80, due within 580 ms, the last one ends
// after 3,200 ms.
func TestContractRequestsAtTimesOfTheirOwn(t *testing.T) {
	onSome(t, func(t *testing.T, x transport) {
		for _, sides := range []int{1, 2} {
			var mutex sync.Mutex
			var served []time.Time
			seen := map[string]int{}
			s := x.serve(t, func(r asked) answer {
				mutex.Lock()
				defer mutex.Unlock()
				seen[r.path]++
				served = append(served, time.Now())
				time.Sleep(40 * time.Millisecond) // what is measured
				return answer{status: 200, body: "hello"}
			})
			o := x.options(s.url)
			steady := []int(nil)
			for ms := 0; ms < 600; ms += 20 {
				steady = append(steady, ms)
			}
			o.Mix = []Request{{Target: "/rush", At: milliseconds(slices.Repeat([]int{200}, 50)...)}, {Target: "/steady", At: milliseconds(steady...)}}
			o.Connections, o.Threads, o.Duration = 60/x.streams+1, 2, 600*time.Millisecond
			all := slices.Repeat([]Side{{Options: o}}, sides)
			results, err := Alternate(context.Background(), all, Turns{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Responses[0] != 80 || r.Unsent != 0 || r.ErrorTotal() > 0 {
					t.Errorf("responses %v, %d unsent: %s", r.Responses, r.Unsent, r.ErrorExample)
				}
				if rush := r.Pages[0]; rush.Page != "/rush" || rush.Responses != 50 || r.Pages[1].Responses != 30 || rush.LatencyMs.P50 < 990 || r.LatencyMs.Max < 2600 {
					t.Errorf("%s: %d responses, p50 %g ms, max %g ms", rush.Page, rush.Responses, rush.LatencyMs.P50, r.LatencyMs.Max)
				}
			}
			mutex.Lock()
			defer mutex.Unlock()
			if seen["/rush"] != 50*sides || seen["/steady"] != 30*sides {
				t.Fatalf("the server saw %v", seen)
			}
			if first := served[79].Sub(served[0]); first < 500*time.Millisecond {
				t.Errorf("the server saw the first load in %s", first)
			}
		}
	})
}

func TestRequestsAtTimesAreDividedAmongSegments(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	want := []int64(nil)
	o := options("http://127.0.0.1:9/")
	o.Duration = 10 * time.Second
	for i := range 20 {
		r := Request{Target: "/", Status: 200 + i}
		for range 1 + random.IntN(50) {
			at := random.Int64N(int64(o.Duration))
			r.At, want = append(r.At, time.Duration(at)), append(want, at)
		}
		o.Mix = append(o.Mix, r)
	}
	slices.Sort(want)
	segments := [][]schedule.Segment{{{}}, {schedule.NewSegment(0, []int64{3, 1}, 4), schedule.NewSegment(1, []int64{1, 3}, 4)}}
	for _, of := range segments {
		var all []int64
		for _, segment := range of {
			o.Segment = segment
			p, err := newPlan(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			for n := range p.Requests {
				number := segment.Number(n)
				all = append(all, p.list.Times[number])
				if times := o.Mix[p.requests[p.order[number]].status-200].At; !slices.Contains(times, time.Duration(p.list.Times[number])) {
					t.Fatalf("request %d is due at %d, and has the times %v", number, p.list.Times[number], times)
				}
			}
		}
		if slices.Sort(all); !slices.Equal(all, want) {
			t.Errorf("%d segments make %d requests, or at other times: want %d", len(of), len(all), len(want))
		}
	}
}

func TestTimesThatCannotBe(t *testing.T) {
	at := milliseconds(10)
	for want, change := range map[string]func(o *Options){
		"mix[0].atMs: 10ms is not within the duration, 5ms": func(o *Options) { o.Duration = 5 * time.Millisecond },
		"mix[1].atMs: give times to all requests":           func(o *Options) { o.Mix = append(o.Mix, Request{Target: "/"}) },
		"leave rate, arrivals and requests out":             func(o *Options) { o.Rate = 5 },
		"mix: the requests have times":                      func(o *Options) { o.Requests, o.Duration = 5, time.Second },
	} {
		o := options("http://127.0.0.1:9/")
		o.Mix, o.Duration = []Request{{Target: "/", At: at}}, time.Second
		change(&o)
		if _, err := newPlan(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
