package engine

import "slices"

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
