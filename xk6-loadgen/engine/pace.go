package engine

import (
	"cmp"
	"slices"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

const (
	// shortestTurn is shorter than most noise of the machine, so that all sides have a part. 10 ms are no more precise.
	shortestTurn = 20 * time.Millisecond
	rateSlice    = 250 * time.Millisecond // rateSlice: at a rate the edges of a turn must be a small part of it.
	// drainLimit bounds a drain, unless the warm-up had longer latencies, and that of the warm-up, unless it began with longer ones;
	// longestDrain bounds one without a warm-up, and a window's last wait.
	drainLimit, longestDrain = second, 10 * second
	// shortestQuiet without a response ends the drain of a server that waits: it has no CPU work left for the outstanding requests.
	shortestQuiet = 50 * int64(time.Millisecond)
	// A turn takes answersPerSlice ages of the load, since requests in the ramp and the drain do not count. In a short window it takes down
	// to fewestAnswersPerSlice, so that each side has turnsPerWindow: with few turns, sides do not share the machine's noise.
	answersPerSlice, fewestAnswersPerSlice, turnsPerWindow = 16, 4, 4
	// A queue at a rate settles over many responses, the more slowly the nearer the rate is to the server's limit.
	answersPerRateSlice = 40
	longestRamp         = 10 * second
	fewestTurns         = 2 // with fewer, sides are loaded one after the other
	probeRequests       = 3 // so many requests are made one after the other before all others: the least latency is that without a queue
	probeLimit          = second
	longestProbe        = longestRamp / 2 // for the first answer: twice a longer one does not fit into a ramp
	queuesFrom          = 2               // from this multiple of the latency without a queue on, the requests of a load queue
	growsFrom           = 0.01            // a queue that grows by this share of the rate settles late, if at all
	neverSettles        = 0.5             // one that grows by this share never does, however long the ramp is

	longestSteal = int64(20e6) // how much of a turn's cores the host may take; with more the generator stalled
	mostLeftOut  = 0.25        // the share of cycles to leave out at most: on a machine that is never quiet all count
)

// overtimeWindows: a server that cannot do a third of a rate is not asked for all of its requests. The windows of a sweep fit into a turn.
const overtimeWindows = 2

// longestStandstill is how late a request may leave although a connection is free for it; later, the generator stalled.
var longestStandstill = int64(5e6)

// pace is how a side's turns go, in nanoseconds except for slice; xk6-loadgen/README.md has the rules.
type pace struct {
	slice time.Duration // the mean length of a turn, without ramp and drain
	// ramp comes before a turn's window; a random part of step makes it longer, since responses can come in step with a turn's begin.
	// Over spread the connections begin one after the other (0: at once).
	ramp, step, spread int64
	patience, quiet    int64 // A drain ends patience after the turn, or quiet after the last response.
	isFutile           bool  // the queue of a rate never settles, so a ramp would only make it longer
	waits              bool  // no queue forms: the server spends its time waiting for a backend, a disk or a timer, or is hardly loaded
}

// choosePace chooses the turns by the end of the warm-up, whose latencies are those of continuous load.
func (r *run) choosePace() {
	s := r.shared
	s.turn.pace = pace{slice: shortestTurn, patience: drainLimit, quiet: drainLimit}
	p := &s.turn.pace
	if r.plan.Rate > 0 {
		p.slice = rateSlice
	}
	latency := newRecorder()
	for _, l := range r.loops {
		latency.merge(l.counts.interval.latency)
	}
	if r.plan.Warmup == 0 && r.plan.Rate == 0 {
		p.patience, p.quiet = longestDrain, longestDrain // Handshakes of all connections keep some servers busy for seconds
	}
	if r.plan.Warmup == 0 || latency.count == 0 {
		return
	}
	at := latency.histogram.Percentiles(50, 99, 99.9)
	p50, p99, worst := at[0], at[1], at[2]
	if c := s.warmth.continuous; c != nil {
		c.P50Ms, c.P99Ms = inMs(p50), inMs(p99)
	}
	p.patience = max(drainLimit, 2*p99)
	p.quiet = max(shortestQuiet, 2*p50)
	age := latency.ageOf(p99)
	if r.plan.Rate > 0 {
		p.ramp = min(2*age, longestRamp)
		p.slice = max(rateSlice, time.Duration(answersPerRateSlice*age))
		growth := 0.0
		if c := s.warmth.continuous; c != nil {
			growth = c.QueueGrowthPerSecond / r.plan.Rate
		}
		if growth > growsFrom {
			p.slice = longestSlice
		}
		if growth > neverSettles {
			p.ramp, p.isFutile = 0, true
		}
		p.slice = min(longestSlice, p.slice)
		return
	}
	age = max(age, r.leftWork())
	slice := answersPerSlice * age
	if window := r.plan.window(); window > 0 {
		slice = max(fewestAnswersPerSlice*age, min(slice, window/turnsPerWindow))
	}
	p.slice = max(shortestTurn, time.Duration(slice))
	p.ramp, p.step = 2*age-p50, age
	if p50 < queuesFrom*cmp.Or(s.probe.latency, probeLimit) {
		p.waits = true
		p.slice = max(p.slice, time.Duration(worst))
		p.ramp, p.spread = max(p.ramp, 2*worst), p50
	} else {
		p.quiet = p.patience
	}
	p.slice = min(longestSlice, p.slice)
	p.ramp = min(p.ramp, longestRamp)
	if r.plan.Requests > 0 {
		p.ramp, p.step, p.spread = 0, 0, 0 // All of a count is made in turns, and counts
	}
}

// leftWork is the CPU time, in nanoseconds, of work that the server puts off under load. When a turn begins that work is done, so the
// server is too fast until as much is put off again. Of a server that does not come to rest it is what it has used so far, unless it works without load
// too. The work for requests that were under way at the warm-up's end is taken off.
func (r *run) leftWork() int64 {
	s := r.shared
	c := s.warmth.continuous
	if c == nil || s.turn.hasMoreWork && s.server.worksAnyway() {
		return 0
	}
	underWay := float64(r.plan.Connections * r.plan.Streams)
	return max(0, s.turn.workAfter-int64(underWay*c.CPUMicros*1e3))
}

// grow is the next turns' mean length for a number of requests without a warm-up. Nothing but the drain shows how long the queue is there.
func (r *run) grow(slice time.Duration) time.Duration {
	if s := r.shared; r.plan.Warmup == 0 && r.plan.divided && s.turn.left-s.turn.sliceEnd > int64(slice) {
		return min(longestSlice, time.Duration(answersPerSlice*(s.turn.left-s.turn.sliceEnd)))
	}
	return slice
}

// takesOneTurn tells whether the side's window has room for fewer than fewestTurns of this length. All sides then have one turn each.
func (r *run) takesOneTurn(slice time.Duration) bool {
	window := r.plan.window()
	return window > 0 && int64(slice) > window/fewestTurns
}

// window is the length of the load's window in nanoseconds: at a rate until an interval after its last request is due. 0: that of a count
// depends on the server.
func (p *plan) window() int64 {
	if p.Rate > 0 && p.Requests > 0 {
		return int64(float64(p.Segment.Number(p.Requests-1)+1) / p.Rate * float64(second))
	}
	return int64(p.Duration)
}

// overtime limits how long a count at a rate may go on after its window. Requests that have not left by then never do.
func (p *plan) overtime() int64 { return overtimeWindows*p.window() + second }

// settlePaces gives all sides turns of one mean length, which it returns: `asked`, or the longest that one of them needs.
func settlePaces(runs []*run, asked time.Duration) time.Duration {
	slice, rateRamp := asked, int64(0)
	for _, r := range runs {
		if asked == 0 {
			slice = max(slice, r.shared.turn.pace.slice)
		}
	}
	inOneTurn := slices.ContainsFunc(runs, func(r *run) bool { return r.takesOneTurn(slice) })
	for _, r := range runs {
		p := &r.shared.turn.pace
		r.shared.turn.inOneTurn = inOneTurn
		if isOpen := r.plan.Rate > 0; inOneTurn && !p.isFutile && (isOpen || p.ramp > 0) {
			p.ramp = max(p.ramp, int64(r.plan.Warmup))
			if isOpen {
				// The queue settles in a ramp of half a turn, which is long against the ages that the turn was chosen by.
				p.ramp = max(p.ramp, min(int64(p.slice)/2, r.plan.window(), longestRamp))
			}
		}
		if r.plan.Rate > 0 {
			rateRamp = max(rateRamp, p.ramp)
		}
	}
	if inOneTurn {
		slice = longestSlice
	}
	for _, r := range runs {
		p := &r.shared.turn.pace
		if p.slice = slice; r.plan.Rate > 0 && !p.isFutile {
			p.ramp = rateRamp // All sides have the same arrivals
		}
	}
	return slice
}

// cycle is what a side at a rate did in an order of turns and its mirror. If the generator stalled meanwhile, it is repeated.
type cycle struct {
	interval
	before tally // of the cycles before it
}

// cycles judges the cycles of all sides, and reads what the machine's cores did in them.
type cycles struct {
	all, stalled, leftOut int  // stalled are those in which the generator stalled.
	stalls                bool // it did so in the present cycle
	// cores are the generator's and the servers'. serverCores are nil if they are not known, or not the servers' alone.
	cores, serverCores []int
	readAt             time.Time
	last, serverLast   linux.CoreTime // last, serverLast and servers, the CPU time of all servers, are as of readAt.
	servers            int64
}

// newCycles begins to watch the cores. serverCores stay unknown if the generator may run on one of them.
func newCycles(runs []*run) *cycles {
	c := &cycles{}
	haveOwnCores := true
	for _, r := range runs {
		haveOwnCores = haveOwnCores && r.shared.hasOwnCores
		for _, pid := range r.cpuOf {
			c.serverCores = append(c.serverCores, linux.CoresOf(pid)...)
		}
	}
	c.cores = append(linux.Cores(), c.serverCores...)
	if !haveOwnCores {
		c.serverCores = nil
	}
	c.read(runs)
	return c
}

// startCycles has the loop record by cycle from now on, beside what it has of the window, so that a cycle can be left out.
func (l *loop) startCycles() {
	l.cycle = &cycle{interval: interval{latency: newRecorder()}, before: l.tally}
	l.tally = newTally(l.plan)
	l.counts.countIn(&l.cycle.interval)
}

// endCycle adds the cycle to the window. Without keep it throws the cycle away, and its requests are to be made again.
func (l *loop) endCycle(keep bool) {
	c := l.cycle
	if keep {
		l.growth.keep()
		l.counts.interval.Counts.add(&c.Counts)
		l.counts.interval.latency.merge(c.latency)
		c.before.add(&l.tally)
	} else {
		l.growth.drop()
		l.counts.warmup += c.Requests
		if l.plan.Requests > 0 {
			l.share.left += c.Requests
		}
	}
	c.Counts = Counts{}
	c.latency.reset()
	l.tally.reset()
}

// leaveCycles keeps the last cycle, whole or not, when the loop ends.
func (l *loop) leaveCycles() {
	c := l.cycle
	if c == nil {
		return
	}
	l.endCycle(true)
	l.tally, l.cycle = c.before, nil
	l.counts.countIn(l.counts.interval)
}

// end decides whether the cycle counts, and has all sides begin the next one.
func (c *cycles) end(runs []*run) {
	c.all++
	keep := true
	if c.stalls {
		c.stalled++
		keep = float64(c.leftOut) >= mostLeftOut*float64(c.all)
	}
	if !keep {
		c.leftOut++
	}
	c.stalls = false
	for _, r := range runs {
		s := r.shared
		if !keep {
			s.turn.away += s.cycle.time
			s.cpu.away.Add(s.cycle.cpu)
		}
		s.cycle.isOver, s.cycle.counts, s.cycle.time, s.cycle.cpu = true, keep, 0, 0
	}
}

// read reads what the cores have done, and the servers' CPU time. It takes time, so it belongs between turns.
func (c *cycles) read(runs []*run) {
	times := linux.CoreTimes(c.cores, c.serverCores)
	c.readAt, c.last, c.serverLast, c.servers = time.Now(), times[0], times[1], 0
	for _, r := range runs {
		c.servers += r.shared.server.processes.CPU()
	}
}

// observe notes what the cores did in the side's turn, and since the one before.
func (c *cycles) observe(r *run, runs []*run) {
	before := *c
	c.read(runs)
	stalled := func(l *loop) bool { return l.turn.state != over && l.model.standstill() > longestStandstill }
	c.stalls = c.stalls || c.last.Steal-before.last.Steal > longestSteal || slices.ContainsFunc(r.loops, stalled)
	if c.serverCores != nil {
		u := &r.shared.server.cores
		stolen := float64(c.last.Steal-before.last.Steal) / 1e9
		ofServer := float64(c.serverLast.Steal-before.serverLast.Steal) / 1e9
		u.Stolen += ofServer
		r.shared.server.waits.Generator += (stolen - ofServer) / float64(len(linux.Cores()))
		u.Seconds += c.readAt.Sub(before.readAt).Seconds()
		u.Processes += float64(c.serverLast.Processes-before.serverLast.Processes) / 1e9
		u.Interrupts += float64(c.serverLast.Interrupts-before.serverLast.Interrupts) / 1e9
		u.Servers += float64(c.servers-before.servers) / 1e9
	}
}
