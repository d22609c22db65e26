package engine

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/schedule"
)

func TestSegmentsHaveOrdersOfTheirOwn(t *testing.T) {
	weights := []int{70, 20, 7, 2, 1}
	s := serve(t, always(ok))
	var orders [][]uint32
	for _, segment := range []schedule.Segment{{}, schedule.NewSegment(0, []int64{3}, 3), schedule.NewSegment(1, []int64{3}, 3), schedule.NewSegment(2, []int64{3}, 3)} {
		o := options(s.url)
		o.Requests, o.Segment = 1, segment
		for _, weight := range weights {
			o.Mix = append(o.Mix, Request{Target: "/", Weight: weight})
		}
		p, err := newPlan(context.Background(), o)
		must(t, err)
		p.network.close()
		wantShares(t, weights, p.order)
		orders = append(orders, p.order)
	}
	if !slices.Equal(orders[0], orders[1]) || slices.Equal(orders[1], orders[2]) || slices.Equal(orders[2], orders[3]) {
		t.Errorf("%v", orders)
	}
}

func TestARateIsDividedBySegments(t *testing.T) {
	t.Parallel()
	s := serve(t, always(ok))
	for _, arrivals := range []Arrivals{ConstantArrivals, PoissonArrivals} {
		o := options(s.url)
		o.Rate, o.Duration, o.Connections, o.Threads, o.Arrivals = 2000, 400*ms, 4, 2, arrivals
		o.Segment = schedule.NewSegment(0, []int64{1, 3}, 4)
		// Half of the 800, of a Poisson process give or take 5 times 14, and what the last wait made late.
		r := load(t, o)
		if n := r.Responses[0] + r.InFlight + r.Unsent; arrivals == ConstantArrivals && n != 400 || n < 330 || n > 470 {
			t.Errorf("%s: %s", arrivals, r)
		}
	}
}

func TestALoadBeginsWhenItIsTold(t *testing.T) {
	t.Parallel()
	// A busy machine is not ready any sooner.
	const ahead = 2 * time.Second
	s := serve(t, always(ok))
	o := options(s.url)
	o.Threads, o.Connections, o.Requests = 2, 4, 100
	o.StartAt = time.Now().Add(ahead)
	if r := load(t, o); r.Responses[0] != 100 || r.Window.StartedAt.Before(o.StartAt) {
		t.Errorf("responses %v, begun %s early", r.Responses, o.StartAt.Sub(r.Window.StartedAt))
	}
	o.StartAt = time.Time{}
	at := time.Now().Add(ahead)
	results, err := Alternate(context.Background(), []Side{{Options: o}, {Options: o}}, Turns{Slice: ms, StartAt: at})
	must(t, err)
	if results[0].Window.StartedAt.Before(at) || results[1].Window.StartedAt.Before(at) {
		t.Errorf("begun at %s and %s, not %s", results[0].Window.StartedAt, results[1].Window.StartedAt, at)
	}
}

func TestABeginThatCannotBeKeptIsRefused(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Requests = 1
	for ahead, want := range map[time.Duration]string{
		// A busy machine makes it later still.
		-1200 * ms:      `^startAt: began (1\.[2-9]\d*|[2-9](\.\d+)?) s too late: set it further ahead$`,
		2 * time.Minute: `^startAt: is 1[12]\d s ahead, and may be 1m0s: set it nearer, and the clocks right$`,
	} {
		o.StartAt = time.Now().Add(ahead)
		if r, err := Run(context.Background(), o, nil); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %d requests, %v, want %s", ahead, r.Requests, err, want)
		}
	}
}

func TestWaitingForTheBeginEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	s := serve(t, always(ok))
	o := options(s.url)
	o.Threads, o.Connections, o.Duration = 2, 2, time.Minute
	o.StartAt = time.Now().Add(59 * time.Second)
	time.AfterFunc(50*ms, cancel)
	if r := loadWithin(t, ctx, o); r.Requests+r.InFlight != 0 || time.Now().After(o.StartAt) {
		t.Error(r)
	}
}

func TestArrivalsDecideWhenRequestsAreDue(t *testing.T) {
	for arrivals, isEven := range map[Arrivals]bool{ConstantArrivals: true, PoissonArrivals: false} {
		o := options(nobody)
		o.Rate, o.Duration, o.Arrivals = 1000, time.Second, arrivals
		m := idleLoop(t, o).model.(*openModel)
		m.begin(0)
		steps := map[int64]bool{}
		for range 10 {
			next := m.schedule.Next()
			steps[next-m.due] = true
			m.due = next
		}
		if (len(steps) == 1) != isEven {
			t.Errorf("%s: steps of %v ns", arrivals, steps)
		}
	}
}
