package engine

import (
	"slices"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

const (
	// saturatedSlice: sides that alternate faster than the machine's noise see the same of it. 10 ms are no more precise (docs/proof.md).
	saturatedSlice = 20 * time.Millisecond
	waitingSlice   = 100 * time.Millisecond // waitingSlice of a server that waits.
	rateSlice      = 250 * time.Millisecond // rateSlice: at a rate the edges of a turn must be a small part of it.
	// drainLimit is how long a turn waits for responses of which nothing is known, longestDrain in a count without a warm-up.
	drainLimit, longestDrain = second, 10 * second
	// longestShortDrain of a server at its limit is part of a turn; a longer queue is worked off under load.
	longestShortDrain = int64(10 * time.Millisecond)
	// shortestQuiet without a response: a server that waits is not working on the outstanding requests.
	shortestQuiet             = 50 * int64(time.Millisecond)
	busyShare                 = 0.8                 // of a core, or of the generator's threads: with less, the server waits
	waitsPerSlice             = 100                 // a turn of a busy server loses about one wait, which must be at most a percent of it
	answersPerSlice           = 10                  // answersPerSlice keeps the edges of a waiting server's window a small part of it
	longestQueue, longestRamp = second, 10 * second // longestQueue and longestRamp bound the ramp.
	soloRequests              = 3                   // are made one after the other before all others: the latency without a queue
	soloLimit                 = second

	longestSteal = int64(20e6) // how much of a turn's cores the host may take; with more the generator stood still
	mostLeftOut  = 0.25        // the share of cycles to leave out at most: on a machine that is never quiet all count
)

// longestStandstill is how late a request may leave although a connection is free for it; later, the generator stood still.
var longestStandstill = int64(5e6)

// pace is how a side's turns go, in nanoseconds except for slice; xk6-loadgen/README.md has the rules.
type pace struct {
	slice time.Duration // the mean length of a turn, without ramp and drain
	// ramp comes before a turn's window; over spread the connections begin one after the other (0: a server at its limit).
	ramp, spread    int64
	patience, quiet int64 // A drain ends patience after the turn, or quiet after the last response.
	waits           bool  // the server spends its time waiting for a backend, a disk or a timer
}

type probe struct {
	solo     int64 // the latency without a queue
	from, to probeReading
}

type probeReading struct{ at, generator, generatorDelay, server, serverDelay, answered int64 }

func (l *loop) readProbe() probeReading {
	s := l.shared
	r := probeReading{at: s.now(), generator: s.usedCPU(), generatorDelay: linux.TaskRunDelay("/proc/thread-self"), answered: l.responses}
	if s.server.processes != nil {
		r.server, r.serverDelay = s.server.processes.CPU(), s.server.processes.RunDelay()
	}
	return r
}

func (r *run) choosePace() {
	s := r.shared
	s.pace = pace{slice: saturatedSlice, patience: drainLimit, quiet: drainLimit}
	p := &s.pace
	if r.plan.Rate > 0 {
		p.slice = rateSlice
	}
	if r.plan.listed != nil {
		// In one turn: what a rush leaves in the queue is part of what comes after it.
		p.slice = time.Duration(r.plan.span)
		p.patience, p.quiet = int64(r.plan.Timeout), int64(r.plan.Timeout)
		return
	}
	latency := newRecorder()
	for _, l := range r.loops {
		latency.merge(l.interval.latency)
	}
	if r.plan.Warmup == 0 && r.plan.Rate == 0 {
		p.patience, p.quiet = longestDrain, longestDrain // Handshakes of all connections keep some servers busy for seconds
	}
	if r.plan.Warmup == 0 || latency.count == 0 {
		return
	}
	at := latency.histogram.Percentiles(50, 99, 99.9)
	p50, p99, worst := at[0], at[1], at[2]
	p.patience = max(drainLimit, 2*p99)
	p.quiet = max(shortestQuiet, 2*p50)
	if r.plan.Rate > 0 {
		return
	}
	if !s.isBusy(p50, p99, r.plan.Threads) {
		p.waits = true
		if r.plan.Requests == 0 {
			p.ramp, p.spread = min(2*max(worst, s.probe.solo), longestRamp), p50
		}
		p.slice = min(longestSlice, max(waitingSlice, time.Duration(answersPerSlice*p50), time.Duration(worst)))
		return
	}
	p.quiet = p.patience
	if p50 > longestShortDrain && r.plan.Requests == 0 {
		p.ramp, p.slice = min(p50, longestQueue), min(longestSlice, time.Duration(2*p50))
		return
	}
	// The wait is the latency without a queue, less the CPU time per response. All loops have the same share.
	answered := float64(max(1, s.probe.to.answered-s.probe.from.answered)) * float64(r.plan.Threads)
	wait := max(0, s.probe.solo-int64(float64(s.probe.to.server-s.probe.from.server)/answered))
	p.slice = min(longestSlice, max(saturatedSlice, time.Duration(waitsPerSlice*wait)))
	if p99 > waitsPerSlice*p50 {
		// Some responses wait: a turn that ends with one of them must be long against it.
		p.slice = min(longestSlice, max(p.slice, time.Duration(answersPerSlice*p99)))
	}
}

// grow lengthens the turns of a count without a warm-up with its queue, which only a drain tells.
func (r *run) grow(slice time.Duration) time.Duration {
	if s := r.shared; r.plan.Warmup == 0 && r.plan.divided && s.left-s.sliceEnd > int64(slice) {
		return min(longestSlice, time.Duration(answersPerSlice*(s.left-s.sliceEnd)))
	}
	return slice
}

// isBusy tells whether server or generator are busy, or wait for their cores. If the server's CPU time is not known its queue tells.
func (s *shared) isBusy(p50, p99 int64, threads int) bool {
	from, to := s.probe.from, s.probe.to
	busy := int64(busyShare * float64(to.at-from.at))
	switch {
	case to.generator-from.generator+int64(threads)*(to.generatorDelay-from.generatorDelay) >= int64(threads)*busy:
		return true
	case s.server.processes != nil:
		return to.server-from.server+to.serverDelay-from.serverDelay >= busy
	}
	return p50 >= 2*s.probe.solo && p99 <= 4*p50
}

// cycle is what a side at a rate did in an order of turns and its mirror. If the generator stood still meanwhile, it is repeated.
type cycle struct {
	interval
	before tally // of the cycles before it
}

type cycles struct {
	all, stood, leftOut int  // stood are those in which the generator stood still.
	stands              bool // it did so in the present cycle
	// cores are the generator's and the servers'. serverCores are nil if they are not known, or not the servers' alone.
	cores, serverCores []int
	lookedAt           time.Time
	last, serverLast   linux.CoreTime // last, serverLast and servers, the CPU time of all servers, are as of lookedAt.
	servers            int64
}

func newCycles(runs []*run) *cycles {
	c := &cycles{}
	apart := true
	for _, r := range runs {
		apart = apart && r.shared.apart
		for _, pid := range r.cpuOf {
			c.serverCores = append(c.serverCores, linux.CoresOf(pid)...)
		}
	}
	c.cores = append(linux.Cores(), c.serverCores...)
	if !apart {
		c.serverCores = nil
	}
	c.read(runs)
	return c
}

func (l *loop) startCycles() {
	l.cycle = &cycle{interval: interval{latency: newRecorder()}, before: l.tally}
	l.tally = newTally(l.plan)
	l.current = &l.cycle.interval
}

func (l *loop) endCycle(keep bool) {
	c := l.cycle
	if keep {
		l.interval.Counts.add(&c.Counts)
		l.interval.latency.merge(c.latency)
		c.before.add(&l.tally)
	} else {
		l.warmup += c.Requests
		if l.plan.Requests > 0 {
			l.allowance += c.Requests
		}
	}
	c.Counts = Counts{}
	c.latency.reset()
	l.tally.reset()
}

func (l *loop) leaveCycles() {
	c := l.cycle
	if c == nil {
		return
	}
	l.endCycle(true)
	l.tally, l.cycle = c.before, nil
	l.current = l.interval
}

func (l *loop) noteStandstill() {
	l.standstill = max(l.standstill, l.clock-max(l.schedule.nextDue, l.idleSince))
}

// end decides whether the cycle counts, and has all sides begin the next one.
func (c *cycles) end(runs []*run) {
	c.all++
	keep := true
	if c.stands {
		c.stood++
		keep = float64(c.leftOut) >= mostLeftOut*float64(c.all)
	}
	if !keep {
		c.leftOut++
	}
	c.stands = false
	for _, r := range runs {
		s := r.shared
		if !keep {
			s.away += s.cycleTime
			s.cpuAway.Add(s.cycleCPU)
		}
		s.cycleIsOver, s.cycleCounts, s.cycleTime, s.cycleCPU = true, keep, 0, 0
	}
}

// read is made between turns, since it takes time.
func (c *cycles) read(runs []*run) {
	times := linux.CoreTimes(c.cores, c.serverCores)
	c.lookedAt, c.last, c.serverLast, c.servers = time.Now(), times[0], times[1], 0
	for _, r := range runs {
		c.servers += r.shared.server.processes.CPU()
	}
}

// look notes what the cores did in the side's turn, and since the one before.
func (c *cycles) look(r *run, runs []*run) {
	before := *c
	c.read(runs)
	stood := func(l *loop) bool { return !l.through && l.standstill > longestStandstill }
	c.stands = c.stands || c.last.Steal-before.last.Steal > longestSteal || slices.ContainsFunc(r.loops, stood)
	if c.serverCores != nil {
		u := &r.shared.server.cores
		u.Seconds += c.lookedAt.Sub(before.lookedAt).Seconds()
		u.Processes += float64(c.serverLast.Processes-before.serverLast.Processes) / 1e9
		u.Interrupts += float64(c.serverLast.Interrupts-before.serverLast.Interrupts) / 1e9
		u.Servers += float64(c.servers-before.servers) / 1e9
	}
}
