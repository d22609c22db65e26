package engine

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"
)

// segmentsOf divides a cycle at random: each place is somebody's, and everybody has one.
func segmentsOf(random *rand.Rand, parts, cycle int) []Segment {
	owners := make([]int, cycle)
	for place := range owners {
		owners[place] = place
		if place >= parts {
			owners[place] = random.IntN(parts)
		}
	}
	random.Shuffle(cycle, func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
	segments := make([]Segment, parts)
	for part := range segments {
		var places, steps []int64
		for place, owner := range owners {
			if owner == part {
				places = append(places, int64(place))
			}
		}
		for i, place := range places {
			next := places[0] + int64(cycle)
			if i+1 < len(places) {
				next = places[i+1]
			}
			steps = append(steps, next-place)
		}
		segments[part] = NewSegment(places[0], steps, int64(cycle))
	}
	return segments
}

func TestSegmentsMakeOneScheduleTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const rate, requests = 1000.0 / 3, 2000
	dues := func(segment Segment, threads int, arrivals Arrivals) (all []int64) {
		for loop := range threads {
			s := newSchedule(&plan{Options: Options{Rate: rate, Arrivals: arrivals, Threads: threads, Segment: segment, seed: 9}}, loop)
			s.begin(0)
			s.next()
			// The window: whatever the warm-up took.
			due := s.begin(second)
			for range share(segment.before(requests), threads, loop) {
				all = append(all, due)
				due = s.next()
			}
		}
		return all
	}
	for _, arrivals := range []Arrivals{ConstantArrivals, PoissonArrivals} {
		whole := dues(Segment{}, 1, arrivals)
		for parts := 1; parts <= 16; parts++ {
			for _, cycle := range []int{parts, parts + random.IntN(100)} {
				segments := segmentsOf(random, parts, cycle)
				for threads := 1; threads <= 2; threads++ {
					if parts == 1 && threads == 2 && arrivals == PoissonArrivals {
						// Nobody else has a part: each loop draws its own.
						continue
					}
					var all []int64
					for _, segment := range segments {
						all = append(all, dues(segment, threads, arrivals)...)
					}
					slices.Sort(all)
					if !slices.Equal(all, whole) {
						t.Errorf("%s, %d of a cycle of %d, %d threads: the parts are not the whole: %d of %d", arrivals, parts, cycle, threads, len(all), len(whole))
					}
				}
			}
		}
	}
}

func TestASegmentCountsItsOwn(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		parts := 1 + random.IntN(16)
		segments := segmentsOf(random, parts, parts+random.IntN(50))
		number, sum := random.Int64N(1_000_000), int64(0)
		for _, segment := range segments {
			n := segment.before(number)
			if n > 0 && segment.number(n-1) >= number || segment.number(n) < number {
				t.Fatalf("%v: %d before %d, the last is %d, the next %d", segment, n, number, segment.number(n-1), segment.number(n))
			}
			sum += n
		}
		if sum != number {
			t.Errorf("%d parts have %d of %d", parts, sum, number)
		}
	}
}

func TestSegmentsHaveOrdersOfTheirOwn(t *testing.T) {
	weights := []int{70, 20, 7, 2, 1}
	s := serve(t, always(ok))
	var orders [][]uint32
	for _, segment := range []Segment{{}, NewSegment(0, []int64{3}, 3), NewSegment(1, []int64{3}, 3), NewSegment(2, []int64{3}, 3)} {
		o := options(s.url)
		o.Requests, o.Segment = 1, segment
		for _, weight := range weights {
			o.Mix = append(o.Mix, Request{Target: "/", Weight: weight})
		}
		p, err := newPlan(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
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
		o.Rate, o.Duration, o.Connections, o.Threads, o.Arrivals = 2000, 400*time.Millisecond, 4, 2, arrivals
		o.Segment = NewSegment(0, []int64{1, 3}, 4)
		// Half of the 800, of a Poisson process give or take 5 times 14, and what the last wait made late.
		r := load(t, o)
		if n := r.Responses[0] + r.InFlight + r.Unsent; arrivals == ConstantArrivals && n != 400 || n < 330 || n > 470 {
			t.Errorf("%s: %d responses, %d in flight, %d unsent", arrivals, r.Responses[0], r.InFlight, r.Unsent)
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
	// Turns have their own.
	o.StartAt = time.Time{}
	at := time.Now().Add(ahead)
	results, err := Alternate(context.Background(), []Side{{Options: o}, {Options: o}}, Turns{Slice: time.Millisecond, StartAt: at})
	if err != nil {
		t.Fatal(err)
	}
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
		-1200 * time.Millisecond: `^startAt: began (1\.[2-9]\d*|[2-9](\.\d+)?) s too late: set it further ahead$`,
		2 * time.Minute:          `^startAt: is 1[12]\d s ahead, and may be 1m0s: set it nearer, and the clocks right$`,
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
	time.AfterFunc(50*time.Millisecond, cancel)
	if r := loadWithin(t, ctx, o); r.Requests+r.InFlight != 0 || time.Now().After(o.StartAt) {
		t.Errorf("%d requests, %d in flight", r.Requests, r.InFlight)
	}
}
