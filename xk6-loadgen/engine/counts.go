package engine

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

// ended is how many attempts of the phase have ended.
func (c *loopCounts) ended() int64 { return c.responses + c.failures }

// inWindow is how many responses are in the window's counts, which those at the edges of turns are not.
func (c *loopCounts) inWindow() int64 { return c.responses - c.outside.ResponseTotal() }

// of is where an attempt that ended now counts.
func (c *loopCounts) of(a *attempt) *interval {
	if a.isOfRamp {
		return c.outside
	}
	return c.current
}

// set sets whether events count in the window.
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
