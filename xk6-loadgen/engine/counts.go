package engine

import "time"

// interval is about a second of one loop. The loop owns it until handOver, then the collector, which gives it back by spare.
type interval struct {
	loop        *loop
	end         int64
	cpu         cpuReading // read at the end
	last        bool
	measured    bool // the loop has opened the window
	connections int
	Counts
	latency *recorder
}

// loopCounts are what a loop counts. Events are counted in current: in window, or outside, at the edges of turns.
type loopCounts struct {
	current, window, outside *interval
	interval                 *interval // interval is the present second. It is also the window, unless there are cycles: then that is a cycle's.
	spare                    chan *interval
	outstanding              int64 // outstanding attempts are under way: taken, without a response or an error.
	responses, failures      int64 // those of the phase so far
	lastEnd                  int64 // when the last attempt ended, on the run's clock
	warmup                   int64 // responses and failures before the window
	example                  string
}

// newLoopCounts makes two intervals, one in use and one spare, so that seconds allocate nothing.
func newLoopCounts(l *loop) loopCounts {
	c := loopCounts{
		spare: make(chan *interval, 2), interval: &interval{loop: l, latency: newRecorder()}, outside: &interval{latency: newRecorder()},
	}
	c.current, c.window = c.interval, c.interval
	c.spare <- &interval{loop: l, latency: newRecorder()}
	return c
}

func (c *loopCounts) ended() int64 { return c.responses + c.failures }

// inWindow returns the number of responses in the window's counts, which leave out the edges of turns.
func (c *loopCounts) inWindow() int64 { return c.responses - c.outside.ResponseTotal() }

// of returns the counts to which an attempt that ends now is added.
func (c *loopCounts) of(a *attempt) *interval {
	if a.isOfRamp {
		return c.outside
	}
	return c.current
}

func (c *loopCounts) set(inWindow bool) {
	c.current = c.outside
	if inWindow {
		c.current = c.window
	}
}

// countIn has the window's events counted in another interval from now on.
func (c *loopCounts) countIn(window *interval) { c.current, c.window = window, window }

// reset leaves out what was counted so far: the warm-up.
func (c *loopCounts) reset() {
	c.warmup, c.responses, c.failures, c.example = c.ended(), 0, 0, ""
	c.interval.Counts, c.outside.Counts = Counts{}, Counts{}
	c.interval.latency.reset()
}

// nextSecond takes a spare interval in place of the present one, which it returns; nil if there is no spare.
func (c *loopCounts) nextSecond() (done *interval) {
	select {
	case next := <-c.spare:
		done = c.interval
		for _, place := range []**interval{&c.current, &c.window, &c.interval} {
			if *place == done {
				*place = next
			}
		}
	default:
	}
	return done
}

// tally is what a loop records of the whole window, or of a cycle.
type tally struct {
	connectTimes, firstByteTimes *recorder
	// tcpTimes and handshakeTimes are the two parts of connectTimes with TLS over TCP, otherwise nil.
	tcpTimes, handshakeTimes *recorder
	// sendDelays and waits (of requests without a response, since they were due) are nil in the closed model.
	sendDelays, waits *recorder
	// readDelays are those of some responses, see stamp; nil over QUIC.
	readDelays   *recorder
	bucketCounts []int64       // bucketCounts has one more than the plan has buckets
	pages        *pageRecorder // pages is nil for a single one
}

// newTally makes only the recorders that the plan needs: each takes about 260 KB. The others are nil.
func newTally(p *plan) tally {
	t := tally{connectTimes: newRecorder(), firstByteTimes: newRecorder(), bucketCounts: make([]int64, len(p.Buckets)+1), pages: newPages(p)}
	if p.Rate > 0 {
		t.sendDelays, t.waits = newRecorder(), newRecorder()
	}
	if p.Protocol != H3 {
		t.readDelays = newRecorder()
	}
	if p.isTLSOverTCP() {
		t.tcpTimes, t.handshakeTimes = newRecorder(), newRecorder()
	}
	return t
}

// recorders returns the tally's recorders, some of them nil, in the order that add relies on.
func (t *tally) recorders() [7]*recorder {
	return [7]*recorder{t.connectTimes, t.firstByteTimes, t.tcpTimes, t.handshakeTimes, t.sendDelays, t.waits, t.readDelays}
}

func (t *tally) add(other *tally) {
	others := other.recorders()
	for i, r := range t.recorders() {
		r.merge(others[i])
	}
	addEach(t.bucketCounts, other.bucketCounts)
	t.pages.add(other.pages)
}

func (t *tally) reset() {
	for _, r := range t.recorders() {
		r.reset()
	}
	clear(t.bucketCounts)
	t.pages.reset()
}

const threadSampleEvery = int64(100 * time.Millisecond) // how often wrk samples requests/s per thread

// samples are a loop's requests/s, taken every threadSampleEvery as wrk takes them.
type samples struct {
	next       int64 // next is when the next one is due.
	from, base int64 // from is when the present one began, with so many responses.
	perSecond  []float64
	halfAfter  int64 // halfAfter is the time to the middle of the window, never if that is not known
	// time is the total length of the samples. half and byHalf are time and responses when the window's middle had passed; 0: not yet.
	time, half, byHalf int64
}

// restart begins the first sample, of a window of this length without responses so far; 0: its length is not known.
func (s *samples) restart(at, window int64) {
	*s = samples{next: at + threadSampleEvery, from: at, perSecond: s.perSecond, halfAfter: never}
	if window > 0 {
		s.halfAfter = window / 2
	}
}

// take ends the present sample, with so many responses by now, and begins the next one.
func (s *samples) take(clock, responses int64) {
	if elapsed := clock - s.from; elapsed > 0 {
		s.perSecond = append(s.perSecond, float64(responses-s.base)*1e9/float64(elapsed))
		s.time += elapsed
	}
	if s.half == 0 && s.time >= s.halfAfter {
		s.half, s.byHalf = s.time, responses
	}
	s.next, s.from, s.base = clock+threadSampleEvery, clock, responses
}

func (s *samples) shift(by int64) {
	s.next += by
	s.from += by
}
