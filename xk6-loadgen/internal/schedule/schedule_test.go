package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	second  = int64(1e9)
	maxRate = 10_000_000
)

func TestAScheduleCountsWhatItHandsOut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		step := 1 + random.Int64N(4)
		s := even{
			rate:     []float64{1000.0 / 3, 7, 0.3, 10_000.0 / 7, 33_333, 99_999.9, 3, 1e6}[random.IntN(8)],
			progress: progress{Part: Part{Loops: step, Loop: random.Int64N(step)}, start: random.Int64N(1e10)},
		}
		now := s.start + random.Int64N(20)*second + random.Int64N(2)*random.Int64N(second)
		due := s.dueBefore(now)
		if due > 0 && s.dueAt(due-1) >= now || s.dueAt(due) < now {
			t.Fatalf("%+v: %d are due before %d; number %d is at %d", s, due, now-s.start, due, s.dueAt(due)-s.start)
		}
	}
}

func TestAScheduleHandsOutWhatWasMissed(t *testing.T) {
	ofTwo := Part{Loops: 2, Loop: 1}
	for name, s := range map[string]Schedule{"constant": Even(ofTwo, 1000), "poisson": Poisson(ofTwo, 1000, 3)} {
		next := s.Begin(5 * second)
		for range 100 {
			next = s.Next()
		}
		var dues []int64
		n, due := s.Missed(6*second, Never, func(due, count int64) {
			if count != 1 {
				t.Fatalf("%s: %d at once", name, count)
			}
			dues = append(dues, due)
		})
		// 500 are due in a second; a Poisson process's are within 5 of its standard deviations of that.
		if n != int64(len(dues)) || dues[0] != next || !slices.IsSorted(dues) || dues[n-1] >= 6*second || due < 6*second || n < 288 || n > 512 {
			t.Errorf("%s: %d missed, from %d (was %d) to %d; then %d", name, n, dues[0], next, dues[n-1], due)
		}
		if n, _ := s.Missed(100*second, 7, func(_, _ int64) {}); n != 7 {
			t.Errorf("%s: %d are more than 7", name, n)
		}
	}
	for _, poisson := range []bool{false, true} {
		told, calls := int64(0), 0
		far := Even(Part{Loops: 1}, maxRate)
		if poisson {
			far = Poisson(Part{Loops: 1}, maxRate, 0)
		}
		far.Begin(0)
		n, _ := far.Missed(second/2, Never, func(_, count int64) { told, calls = told+count, calls+1 })
		if told != n || !poisson && calls > mostMissed+1 || math.Abs(float64(n)/(maxRate/2)-1) > 0.01 || !poisson && n != maxRate/2 {
			t.Errorf("poisson %t: %d of %d missed ones were reported, in %d calls", poisson, told, n, calls)
		}
	}
}

func TestPoissonArrivalsAreThoseOfAPoissonProcess(t *testing.T) {
	// Two loops share the rate: gaps between all arrivals are exponential, with a mean and a standard deviation of 1 / rate.
	const rate = 1000.0
	var all []int64
	for loop := range int64(2) {
		s := Poisson(Part{Loops: 2, Loop: loop}, rate, 7)
		s.Begin(0)
		s.Missed(100*second, Never, func(due, _ int64) { all = append(all, due) })
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
		s := Poisson(Part{Loops: 1}, rate, 7)
		s.Begin(0)
		s.Missed(second, taken, func(_, _ int64) {})
		s.Begin(second)
		s.Missed(2*second, Never, func(due, _ int64) { dues = append(dues, due) })
		return dues
	}
	if !slices.Equal(arrivals(3), arrivals(400)) {
		t.Error("the window's arrivals depend on the warm-up")
	}
	if sd := math.Sqrt(squares/n - mean*mean); math.Abs(mean*rate-1) > 0.02 || math.Abs(sd*rate-1) > 0.03 {
		t.Errorf("gaps of %g ± %g s, at %g/s", mean, sd, rate)
	}
}

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

func loopShare(requests int64, part Part) int64 {
	return (requests + part.Loops - 1 - part.Loop) / part.Loops
}

func TestSegmentsMakeOneScheduleTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const rate, requests = 1000.0 / 3, 2000
	dues := func(segment Segment, loops int64, isPoisson bool) (all []int64) {
		for loop := range loops {
			part := Part{segment, loop, loops}
			s := Even(part, rate)
			if isPoisson {
				s = Poisson(part, rate, 9)
			}
			s.Begin(0)
			s.Next()
			// The window: whatever the warm-up took.
			due := s.Begin(second)
			for range loopShare(segment.Before(requests), part) {
				all = append(all, due)
				due = s.Next()
			}
		}
		return all
	}
	for _, isPoisson := range []bool{false, true} {
		whole := dues(Segment{}, 1, isPoisson)
		for parts := 1; parts <= 16; parts++ {
			for _, cycle := range []int{parts, parts + random.IntN(100)} {
				segments := segmentsOf(random, parts, cycle)
				for loops := int64(1); loops <= 2; loops++ {
					if parts == 1 && loops == 2 && isPoisson {
						// Nobody else has a part: each loop draws its own.
						continue
					}
					var all []int64
					for _, segment := range segments {
						all = append(all, dues(segment, loops, isPoisson)...)
					}
					slices.Sort(all)
					if !slices.Equal(all, whole) {
						t.Errorf("Poisson %t, %d of a cycle of %d, %d loops: the parts are not the whole: %d of %d", isPoisson, parts, cycle, loops, len(all), len(whole))
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
			n := segment.Before(number)
			if n > 0 && segment.Number(n-1) >= number || segment.Number(n) < number {
				t.Fatalf("%v: %d before %d, the last is %d, the next %d", segment, n, number, segment.Number(n-1), segment.Number(n))
			}
			sum += n
		}
		if sum != number {
			t.Errorf("%d parts have %d of %d", parts, sum, number)
		}
	}
}

func TestARequestAllocatesNothing(t *testing.T) {
	third := NewSegment(1, []int64{3}, 3)
	for name, s := range map[string]Schedule{
		"constant": Even(Part{third, 0, 2}, 1000), "poisson": Poisson(Part{third, 1, 2}, 1000, 1),
	} {
		s.Begin(0)
		if n := testing.AllocsPerRun(100, func() { s.Next() }); n > 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
}
