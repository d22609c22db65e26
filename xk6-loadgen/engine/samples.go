package engine

import "time"

const threadSampleEvery = int64(100 * time.Millisecond) // how often wrk samples requests/s per thread

// samples are a loop's requests/s, taken every threadSampleEvery as wrk takes them.
type samples struct {
	next       int64 // next is when the next one is due.
	from, base int64 // from is when the present one began, with so many responses.
	perSecond  []float64
}

// restart begins the first sample, of a window without responses so far.
func (s *samples) restart(at int64) { s.next, s.from, s.base = at+threadSampleEvery, at, 0 }

// take ends the present sample, with so many responses by now, and begins the next one.
func (s *samples) take(clock, responses int64) {
	if elapsed := clock - s.from; elapsed > 0 {
		s.perSecond = append(s.perSecond, float64(responses-s.base)*1e9/float64(elapsed))
	}
	s.next, s.from, s.base = clock+threadSampleEvery, clock, responses
}

// shift leaves out time that was not under load.
func (s *samples) shift(by int64) {
	s.next += by
	s.from += by
}
