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

// timeList are the times of all requests of a load that has them.
type timeList struct {
	times []int64 // times within the span, in nanoseconds; nil if a rate or responses start the requests
	span  int64
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

// schedule says when a loop's requests are due, from the phase's start on, so that no error adds up. They come at a constant rate, by
// chance (Poisson), or at the times of a list.
type schedule interface {
	begin(start int64) (due int64) // begin starts a phase at this time of the run's clock. It returns when the first request is due.
	next() (due int64)             // next takes the request that is due, and returns when the one after it is.
	shift(by int64)
	request(mix *mixPlace) *request // the request that was taken last
	// missed takes up to `most` requests that were due before a time and never left, and reports when they were due. A loop calls it once, at
	// its window's end. It returns how many there were, and when the next one is due.
	missed(before, most int64, report func(due, count int64)) (n, due int64)
}

// portion says which requests of a load are a loop's: offset, offset+step … of its process's segment.
type portion struct {
	segment      Segment
	offset, step int64
	start, taken int64 // taken requests of the phase that began at start have left, or were missed.
}

// newSchedule is a loop's part of a rate: each step-th request of the process, or with Poisson arrivals of a single process a stream of its
// own.
func newSchedule(p *plan, loop int) schedule {
	own := portionOf(p, loop)
	if p.Arrivals != PoissonArrivals {
		return &evenSchedule{own, p.Rate}
	}
	a := &poissonSchedule{portion: own, rate: p.Rate, seed: p.seed}
	if p.Segment.isWhole() {
		// Poisson processes add up to one of the sum of their rates.
		a.rate, a.offset, a.step, a.stream = p.Rate/float64(p.Threads), 0, 1, uint64(loop)
	}
	return a
}

// portionOf is that of one of the plan's loops.
func portionOf(p *plan, loop int) portion {
	return portion{segment: p.Segment, offset: int64(loop), step: int64(p.Threads)}
}

// number is that of the loop's n-th request, from 0, among the requests of all loops and processes.
func (p *portion) number(n int64) int64 { return p.segment.number(p.offset + n*p.step) }

// before is how many of the loop's requests are among the first `all` ones, rounded down or up by `round`, 0 to step-1.
func (p *portion) before(all, round int64) int64 {
	return (p.segment.before(all) - p.offset + round) / p.step
}

func (p *portion) shift(by int64)                 { p.start += by }
func (p *portion) request(mix *mixPlace) *request { return mix.next() }

// mostMissed requests of even arrivals are reported one by one; of more, several together with the time of the first.
const mostMissed = 1_000_000

// miss is missed for arrivals whose times have a formula. due is how many are due by then, dueAt when the n-th one is.
func (p *portion) miss(due, most int64, dueAt func(n int64) int64, report func(due, count int64)) (n int64) {
	n = min(most, due-p.taken)
	stride := 1 + n/mostMissed
	for i := int64(0); i < n; i += stride {
		report(dueAt(p.taken+i), min(stride, n-i))
	}
	p.taken += n
	return n
}

// evenSchedule is a constant rate, which is that of all loops of all processes.
type evenSchedule struct {
	portion
	rate float64
}

func (a *evenSchedule) begin(start int64) int64 {
	a.start, a.taken = start, 0
	return a.dueAt(0)
}

func (a *evenSchedule) next() int64 {
	a.taken++
	return a.dueAt(a.taken)
}

// dueAt is when the loop's n-th request is due, on the run's clock, computed from the start.
func (a *evenSchedule) dueAt(n int64) int64 {
	after := float64(a.number(n)) * 1e9 / a.rate
	if after >= float64(never) {
		return never
	}
	return a.start + int64(after)
}

// dueBefore is how many requests were due before this time; never less than were taken.
func (a *evenSchedule) dueBefore(now int64) int64 {
	// The first guess is off by one at most, by rounding.
	n := max(a.taken, a.before(int64(float64(now-a.start)*a.rate/1e9), 0))
	for n > a.taken && a.dueAt(n-1) >= now {
		n--
	}
	for a.dueAt(n) < now {
		n++
	}
	return n
}

func (a *evenSchedule) missed(before, most int64, report func(due, count int64)) (n, due int64) {
	n = a.miss(a.dueBefore(before), most, a.dueAt, report)
	return n, a.dueAt(a.taken)
}

// listedSchedule is a list of times. It has those of all loops and lasts for span.
type listedSchedule struct {
	portion
	timeList
}

// newListedSchedule is a loop's part of the plan's list.
func newListedSchedule(p *plan, loop int) *listedSchedule {
	return &listedSchedule{portionOf(p, loop), p.list}
}

func (a *listedSchedule) begin(start int64) int64 {
	a.start, a.taken = start, 0
	return a.dueAt(0)
}

func (a *listedSchedule) next() int64 {
	a.taken++
	return a.dueAt(a.taken)
}

// request is the one whose time was taken: the list's order is the mix's.
func (a *listedSchedule) request(mix *mixPlace) *request { return mix.at(a.number(a.taken - 1)) }

// dueAt is when the loop's n-th request is due, on the run's clock; at the list's end for those after the last one.
func (a *listedSchedule) dueAt(n int64) int64 {
	if number := a.number(n); number < int64(len(a.times)) {
		return a.start + a.times[number]
	}
	return a.start + a.span
}

// dueBefore is how many requests were due before this time; never less than were taken.
func (a *listedSchedule) dueBefore(now int64) int64 {
	all, _ := slices.BinarySearch(a.times, now-a.start)
	return max(a.taken, a.before(int64(all), a.step-1))
}

func (a *listedSchedule) missed(before, most int64, report func(due, count int64)) (n, due int64) {
	n = a.miss(a.dueBefore(before), most, a.dueAt, report)
	return n, a.dueAt(a.taken)
}

// poissonSchedule draws its times at random, `drawn` so far, each after the one before: they have no formula. Loops of a segment draw those of the
// whole load, and skip the others'.
type poissonSchedule struct {
	portion
	rate         float64
	seed, stream uint64
	phase        uint64
	random       *rand.Rand
	drawn, due   int64
}

// begin starts a new sequence. Its seed depends on the phase alone: all sides have the same arrivals.
func (a *poissonSchedule) begin(start int64) int64 {
	a.phase++
	a.random = rand.New(rand.NewPCG(a.seed+a.phase<<32, a.stream+1))
	a.start, a.taken, a.drawn, a.due = start, 0, 0, start
	return a.draw()
}

func (a *poissonSchedule) next() int64 {
	a.taken++
	return a.draw()
}

// draw goes on to the loop's next request.
func (a *poissonSchedule) draw() int64 {
	for last := a.number(a.taken); a.drawn <= last; a.drawn++ {
		a.due += int64(min(a.random.ExpFloat64()*1e9/a.rate, float64(never-a.due)))
	}
	return a.due
}

func (a *poissonSchedule) shift(by int64) { a.due += by }

func (a *poissonSchedule) missed(before, most int64, report func(due, count int64)) (n, due int64) {
	for ; n < most && a.due < before; n++ {
		report(a.due, 1)
		a.next()
	}
	return n, a.due
}
