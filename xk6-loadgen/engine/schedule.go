//gosec:disable G115 G404 -- the numbers are small, random orders, not secrets
package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Segment says which requests of a rate, counted from 0, belong to this process of several. The zero Segment has all of them.
type Segment struct {
	places []int64 // places, ascending, are the segment's requests in each cycle
	cycle  int64
}

// NewSegment makes a segment in the form of k6's striped offsets: it has request `first`, and from there one after each step. The steps are
// repeated; their sum is the cycle.
func NewSegment(first int64, steps []int64, cycle int64) Segment {
	places := make([]int64, len(steps))
	for i, step := range steps {
		places[i] = first
		first += step
	}
	return Segment{places, cycle}
}

// isWhole tells whether this process makes all requests, as with the zero Segment.
func (s Segment) isWhole() bool { return int64(len(s.places)) == s.cycle }

// number is the place of the segment's n-th request among all requests, both from 0 on.
func (s Segment) number(n int64) int64 {
	if s.isWhole() {
		return n
	}
	own := int64(len(s.places))
	return n/own*s.cycle + s.places[n%own]
}

// before is how many of the segment's requests come before this number.
func (s Segment) before(number int64) int64 {
	if s.isWhole() {
		return number
	}
	in, _ := slices.BinarySearch(s.places, number%s.cycle)
	return number/s.cycle*int64(len(s.places)) + int64(in)
}

// schedule says when a loop's requests of a rate are due, from the phase's start on, so that no error adds up.
type schedule struct {
	// rate is that of all loops of all processes. The loop has the requests offset, offset+step … of its process's segment.
	rate         float64
	segment      Segment
	offset, step int64
	start        int64
	taken        int64
	nextDue      int64 // when the next request is due
	poisson      bool  // arrivals are drawn from random, `drawn` so far; loops of a segment draw those of the whole load, and skip the others'
	seed, stream uint64
	phase        uint64
	random       *rand.Rand
	drawn        int64
	listed       []int64 // listed are the times of all requests, if they do not follow from the rate
	span         int64   // span is how long the list lasts
}

// mostListed requests take 120 MB.
const mostListed = 10_000_000

// list handles a mix whose requests have times. It returns these times, the earliest first, and beside each the index of its request in
// Mix; nil for other loads. Options then have a number of requests and their mean rate in place of the duration.
func (o *Options) list() (times []int64, order []uint32, err error) {
	type due struct {
		at      time.Duration
		request uint32
	}
	var all []due
	for i, r := range o.Mix {
		for _, at := range r.At {
			if at < 0 || at >= o.Duration {
				return nil, nil, fmt.Errorf("mix[%d].atMs: %s is not within the duration, %s", i, at, o.Duration)
			}
			all = append(all, due{at, uint32(i)})
		}
	}
	switch {
	case len(all) == 0:
		return nil, nil, nil
	case o.Rate > 0 || o.Arrivals != "" || o.Requests > 0:
		return nil, nil, errors.New("mix: the requests have times (atMs): leave rate, arrivals and requests out")
	case len(all) > mostListed:
		return nil, nil, fmt.Errorf("mix: at most %d times, got %d", mostListed, len(all))
	}
	o.Mix = slices.Clone(o.Mix)
	for i := range o.Mix {
		if o.Mix[i].Weight = len(o.Mix[i].At); o.Mix[i].Weight == 0 {
			return nil, nil, fmt.Errorf("mix[%d].atMs: give times to all requests, or to none", i)
		}
	}
	slices.SortStableFunc(all, func(a, b due) int { return cmp.Compare(a.at, b.at) })
	for _, one := range all {
		times, order = append(times, int64(one.at)), append(order, one.request)
	}
	o.Rate = float64(len(all)) / o.Duration.Seconds()
	o.Requests, o.Duration = o.Segment.before(int64(len(all))), 0
	return times, order, nil
}

// newSchedule is a loop's part of a rate: each step-th request of the process, or with Poisson arrivals of a single process a stream of its
// own. It starts with begin.
func newSchedule(p *plan, loop int) schedule {
	s := schedule{rate: p.Rate, segment: p.Segment, offset: int64(loop), step: int64(p.Threads), seed: p.seed, nextDue: never}
	s.poisson = p.Arrivals == PoissonArrivals
	if s.poisson && s.segment.isWhole() {
		// Poisson processes add up to one of the sum of their rates.
		s.rate, s.offset, s.step, s.stream = p.Rate/float64(p.Threads), 0, 1, uint64(loop)
	}
	return s
}

// begin starts the schedule of a phase at `now`, on the run's clock.
func (s *schedule) begin(now int64) {
	s.start, s.taken, s.drawn = now, 0, 0
	if s.poisson {
		s.phase++ // The seed depends on the phase alone: all sides have the same arrivals
		s.random, s.nextDue = rand.New(rand.NewPCG(s.seed+s.phase<<32, s.stream+1)), now
	}
	s.advance()
}

// advance sets nextDue. Without a rate nothing is ever due.
func (s *schedule) advance() {
	switch {
	case s.rate == 0:
	case s.poisson:
		for last := s.number(s.taken); s.drawn <= last; s.drawn++ {
			s.nextDue += int64(min(s.random.ExpFloat64()*1e9/s.rate, float64(never-s.nextDue)))
		}
	default:
		s.nextDue = s.dueAt(s.taken)
	}
}

// take goes on to the next request. Attempts without a rate are taken, too.
func (s *schedule) take() {
	s.taken++
	s.advance()
}

// number is that of the loop's n-th request, from 0, among the requests of all loops and processes.
func (s *schedule) number(n int64) int64 { return s.segment.number(s.offset + n*s.step) }

// dueAt is when the loop's n-th request is due, on the run's clock, computed from the start. Poisson arrivals have no such formula.
func (s *schedule) dueAt(n int64) int64 {
	if s.listed != nil {
		if number := s.number(n); number < int64(len(s.listed)) {
			return s.start + s.listed[number]
		}
		return s.start + s.span
	}
	after := float64(s.number(n)) * 1e9 / s.rate
	if after >= float64(never) {
		return never
	}
	return s.start + int64(after)
}

// dueBefore is how many requests were due before this time; never less than were taken.
func (s *schedule) dueBefore(now int64) int64 {
	if s.listed != nil {
		all, _ := slices.BinarySearch(s.listed, now-s.start)
		return max(s.taken, (s.segment.before(int64(all))-s.offset+s.step-1)/s.step)
	}
	// The first guess is off by one at most, by rounding.
	n := max(s.taken, (s.segment.before(int64(float64(now-s.start)*s.rate/1e9))-s.offset)/s.step)
	for n > s.taken && s.dueAt(n-1) >= now {
		n--
	}
	for s.dueAt(n) < now {
		n++
	}
	return n
}

// mostMissed requests of even arrivals are reported one by one; of more, several together with the time of the first.
const mostMissed = 1_000_000

// missed takes up to `most` requests that were due before a time and never left, and reports when they were due. A loop calls it once, at
// its window's end.
func (s *schedule) missed(before, most int64, report func(due, count int64)) (n int64) {
	switch {
	case s.rate == 0:
		return 0
	case s.poisson:
		for ; n < most && s.nextDue < before; n++ {
			report(s.nextDue, 1)
			s.take()
		}
		return n
	}
	n = min(most, s.dueBefore(before)-s.taken)
	stride := 1 + n/mostMissed
	for i := int64(0); i < n; i += stride {
		report(s.dueAt(s.taken+i), min(stride, n-i))
	}
	s.taken += n
	s.advance()
	return n
}
