// Package schedule says which requests of a rate are a loop's, and when they are due: evenly or by chance (Poisson). It knows nothing of
// clocks, connections and requests. Even and Poisson make a Schedule. Next, the only call for each request, allocates nothing. Times are
// nanoseconds.
//
//gosec:disable G404 -- random times, not secrets
package schedule

import (
	"math/rand/v2"
	"slices"
)

// Never is later than any time.
const Never = int64(1) << 62

// Segment says which requests of a rate, counted from 0, belong to this process of several. The zero Segment has all of them.
type Segment struct {
	places []int64 // places, ascending, are the segment's requests in each cycle
	cycle  int64
}

// NewSegment makes a segment of k6's striped offsets: request `first`, and one after each step. The steps, of one cycle in sum, repeat.
func NewSegment(first int64, steps []int64, cycle int64) Segment {
	places := make([]int64, len(steps))
	for i, step := range steps {
		places[i] = first
		first += step
	}
	return Segment{places, cycle}
}

// IsWhole tells whether this process makes all requests, as with the zero Segment.
func (s Segment) IsWhole() bool { return int64(len(s.places)) == s.cycle }

// Number is the place of the segment's n-th request among all requests, both from 0 on.
func (s Segment) Number(n int64) int64 {
	if s.IsWhole() {
		return n
	}
	count := int64(len(s.places))
	return n/count*s.cycle + s.places[n%count]
}

// Before is how many of the segment's requests come before this number.
func (s Segment) Before(number int64) int64 {
	if s.IsWhole() {
		return number
	}
	in, _ := slices.BinarySearch(s.places, number%s.cycle)
	return number/s.cycle*int64(len(s.places)) + int64(in)
}

// Schedule says when a loop's requests are due. All times are computed from the start of the phase, so that no error adds up.
type Schedule interface {
	Begin(start int64) (due int64) // Begin starts a phase of the load at this time. It returns when the first request is due.
	Next() (due int64)             // Next takes the request that is due, and returns when the one after it is.
	Shift(by int64)                // Shift moves the times of all requests that have not been taken; the caller moves the due time it has.
	// Missed takes up to `most` requests that are due earlier than before, and reports when they are: one by one, or count of them together
	// with the time of the first. A loop calls it at its window's end, or where it leaves requests out. It returns how many there were, and when the next one is due.
	Missed(before, most int64, report func(due, count int64)) (n, due int64)
}

// Part is a loop's part of a load: the requests Loop, Loop+Loops … of its process's segment.
type Part struct {
	Segment     Segment
	Loop, Loops int64
}

// progress is how far a loop is with its part.
type progress struct {
	Part
	start, taken int64 // taken requests of the phase that began at start have left, or were missed.
}

// number is that of the loop's n-th request, from 0, among the requests of all loops and processes.
func (p *progress) number(n int64) int64 { return p.Segment.Number(p.Loop + n*p.Loops) }

func (p *progress) Shift(by int64) { p.start += by }

// mostMissed requests of even arrivals are reported one by one; of more, several together with the time of the first.
const mostMissed = 1_000_000

// even is a constant rate, which is that of all loops of all processes.
type even struct {
	progress
	rate float64
}

// Even has the requests of a load come at a constant rate, in requests/s.
func Even(part Part, rate float64) Schedule { return &even{progress{Part: part}, rate} }

func (e *even) Begin(start int64) int64 {
	e.start, e.taken = start, 0
	return e.dueAt(0)
}

func (e *even) Next() int64 {
	e.taken++
	return e.dueAt(e.taken)
}

func (e *even) dueAt(n int64) int64 {
	after := float64(e.number(n)) * 1e9 / e.rate
	if after >= float64(Never) {
		return Never
	}
	return e.start + int64(after)
}

// dueBefore is how many requests were due before this time; never less than were taken.
func (e *even) dueBefore(now int64) int64 {
	// The first guess is off by one at most, by rounding.
	all := int64(float64(now-e.start) * e.rate / 1e9)
	n := max(e.taken, (e.Segment.Before(all)-e.Loop)/e.Loops)
	for n > e.taken && e.dueAt(n-1) >= now {
		n--
	}
	for e.dueAt(n) < now {
		n++
	}
	return n
}

func (e *even) Missed(before, most int64, report func(due, count int64)) (n, due int64) {
	n = min(most, e.dueBefore(before)-e.taken)
	stride := 1 + n/mostMissed
	for i := int64(0); i < n; i += stride {
		report(e.dueAt(e.taken+i), min(stride, n-i))
	}
	e.taken += n
	return n, e.dueAt(e.taken)
}

// poisson draws its times, `drawn` so far, each after the one before. Loops of a segment draw those of the whole load, and skip others'.
type poisson struct {
	progress
	rate                float64
	seed, stream, phase uint64
	random              *rand.Rand
	drawn, due          int64
}

// Poisson has the requests of a load come as a Poisson process of this rate, in requests/s. Its times depend on the seed and the number of
// the phase, so that several loads of the same rate and the same parts have the same.
func Poisson(part Part, rate float64, seed uint64) Schedule {
	p := &poisson{progress: progress{Part: part}, rate: rate, seed: seed}
	if part.Segment.IsWhole() {
		// Poisson processes add up to one of the sum of their rates, so each loop has a stream of its own.
		p.rate, p.stream, p.Part = rate/float64(part.Loops), uint64(part.Loop), Part{Loops: 1}
	}
	return p
}

func (p *poisson) Begin(start int64) int64 {
	p.phase++
	p.random = rand.New(rand.NewPCG(p.seed+p.phase<<32, p.stream+1))
	p.taken, p.drawn, p.due = 0, 0, start
	return p.draw()
}

func (p *poisson) Next() int64 {
	p.taken++
	return p.draw()
}

func (p *poisson) draw() int64 {
	for last := p.number(p.taken); p.drawn <= last; p.drawn++ {
		p.due += int64(min(p.random.ExpFloat64()*1e9/p.rate, float64(Never-p.due)))
	}
	return p.due
}

func (p *poisson) Shift(by int64) { p.due += by }

func (p *poisson) Missed(before, most int64, report func(due, count int64)) (n, due int64) {
	for ; n < most && p.due < before; n++ {
		report(p.due, 1)
		p.Next()
	}
	return n, p.due
}
