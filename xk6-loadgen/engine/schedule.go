package engine

import (
	"math/rand/v2"
	"slices"
)

// schedule says when attempts of the open model are due on one loop: all loops share the rate, those of other processes too, and
// take turns. Times are counted from the phase's start, so that no error adds up. In the closed model it is empty.
type schedule struct {
	// rate is requests/s of all loops of all processes. Of these requests the process has those of its stripe, and the loop of
	// these again offset, offset+step, offset+2·step …
	rate         float64
	stripe       Stripe
	offset, step int64
	start        int64
	taken        int64
	// nextDue is when the next attempt is due.
	nextDue int64
	// poisson: arrivals are those of a Poisson process, drawn anew in each phase by random, as many as drawn so far; else evenly
	// spread. Who has a part of one draws all of it.
	poisson      bool
	seed, stream uint64
	phase        uint64
	random       *rand.Rand
	drawn        int64
}

func newSchedule(p *plan, loop int) schedule {
	s := schedule{
		rate: p.Rate, stripe: p.Stripe, offset: int64(loop), step: int64(p.Threads), poisson: p.Arrivals == PoissonArrivals, seed: p.seed, nextDue: never,
	}
	if s.poisson && s.stripe.isWhole() {
		// Several such processes make one of the sum of their rates: a loop draws its own, and no other's.
		s.rate, s.offset, s.step, s.stream = p.Rate/float64(p.Threads), 0, 1, uint64(loop)
	}
	return s
}

// begin starts a phase.
func (s *schedule) begin(now int64) {
	s.start, s.taken, s.drawn = now, 0, 0
	if s.poisson {
		// By the phase, not by what the one before it has used up: all sides of a run have the same arrivals.
		s.phase++
		s.random, s.nextDue = rand.New(rand.NewPCG(s.seed+s.phase<<32, s.stream+1)), now
	}
	s.advance()
}

// shift: what is still due is due so much later.
func (s *schedule) shift(by int64) {
	s.start += by
	if s.nextDue < never {
		s.nextDue += by
	}
}

// advance finds when the attempt is due that is next.
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

// take hands out the attempt that is due next.
func (s *schedule) take() {
	s.taken++
	s.advance()
}

// number is that of an attempt, counted from 0 on this loop, among those of all loops.
func (s *schedule) number(attempt int64) int64 { return s.stripe.number(s.offset + attempt*s.step) }

// dueAt is when the attempt with this number is due, counted from 0 on this loop, of those that are evenly spread.
func (s *schedule) dueAt(attempt int64) int64 {
	after := float64(s.number(attempt)) * 1e9 / s.rate
	if after >= float64(never) {
		return never
	}
	return s.start + int64(after)
}

// dueBefore is how many attempts were due before this time, of those that are evenly spread; never less than were taken.
func (s *schedule) dueBefore(now int64) int64 {
	// The first guess is off by one at most, by rounding.
	n := max(s.taken, (s.stripe.before(int64(float64(now-s.start)*s.rate/1e9))-s.offset)/s.step)
	for n > s.taken && s.dueAt(n-1) >= now {
		n--
	}
	for s.dueAt(n) < now {
		n++
	}
	return n
}

// mostMissed are told one by one; of more, several at a time with the time of the first of them.
const mostMissed = 1_000_000

// missed hands out what was due before this time, most of it at most, and tells when.
func (s *schedule) missed(before, most int64, call func(due, count int64)) (n int64) {
	switch {
	case s.rate == 0:
		return 0
	case s.poisson:
		for ; n < most && s.nextDue < before; n++ {
			if n == mostMissed {
				// As many as are to be expected.
				rest := min(most-n, 1+int64(float64(before-s.nextDue)*s.rate*s.stripe.share()/1e9/float64(s.step)))
				call(s.nextDue, rest)
				s.taken += rest
				return n + rest
			}
			call(s.nextDue, 1)
			s.take()
		}
		return n
	}
	n = min(most, s.dueBefore(before)-s.taken)
	stride := 1 + n/mostMissed
	for i := int64(0); i < n; i += stride {
		call(s.dueAt(s.taken+i), min(stride, n-i))
	}
	s.taken += n
	s.advance()
	return n
}

// connRing is a queue of slots in which each stands at most once.
type connRing struct {
	slots     []*conn
	head, len int
}

func newConnRing(capacity int) connRing { return connRing{slots: make([]*conn, capacity)} }

func (r *connRing) push(c *conn) {
	r.slots[(r.head+r.len)%len(r.slots)] = c
	r.len++
}

func (r *connRing) pop() *conn {
	c := r.slots[r.head]
	r.head = (r.head + 1) % len(r.slots)
	r.len--
	return c
}

// Stripe says which requests of a rate are this process's, of several that make one load together: all count them alike, from 0,
// and each has its own. The zero Stripe has all of them.
type Stripe struct {
	// places, ascending, are its own in each cycle.
	places []int64
	cycle  int64
}

// NewStripe has the request `first`, and each that is one of the steps after the one before, over and over; the sum of the steps is
// the cycle.
func NewStripe(first int64, steps []int64, cycle int64) Stripe {
	places := make([]int64, len(steps))
	for i, step := range steps {
		places[i] = first
		first += step
	}
	return Stripe{places, cycle}
}

func (s Stripe) isWhole() bool { return int64(len(s.places)) == s.cycle }

// share of all requests, 0 to 1.
func (s Stripe) share() float64 {
	if s.isWhole() {
		return 1
	}
	return float64(len(s.places)) / float64(s.cycle)
}

// number of its n-th request, counted from 0, among all.
func (s Stripe) number(n int64) int64 {
	if s.isWhole() {
		return n
	}
	own := int64(len(s.places))
	return n/own*s.cycle + s.places[n%own]
}

// before is how many of its own are among the first of all.
func (s Stripe) before(number int64) int64 {
	if s.isWhole() {
		return number
	}
	in, _ := slices.BinarySearch(s.places, number%s.cycle)
	return number/s.cycle*int64(len(s.places)) + int64(in)
}
