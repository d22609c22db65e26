package engine

import (
	"runtime"
	"time"
)

// collector merges the loops' intervals into seconds. It holds back the last whole second, since the rest may be too short for one.
type collector struct {
	shared           *shared
	onSecond         func(Second)
	gathering, whole *pendingSecond // gathering is the present second, whole the one before it.
	running          int            // running loops have not ended; reported are those that have reported past the second's shortest length
	reported         map[*loop]bool
	leastEnd         int64
	open             map[*loop]int
	connections      int
}

// pendingSecond is a second while loops add to it. start and end are nanoseconds under load, without other sides' turns.
type pendingSecond struct {
	Counts
	latency     *recorder
	connections int
	start, end  int64
	from, to    cpuReading // from and to are the process's CPU time at start and end.
}

// collect is a goroutine of each side. It receives the loops' intervals until each has sent its last one, and gives them back for reuse.
func collect(s *shared, loops []*loop, onSecond func(Second)) Result {
	var result Result
	total := newRecorder()
	c := &collector{
		shared: s, onSecond: onSecond, running: len(loops), reported: map[*loop]bool{}, leastEnd: -1, open: map[*loop]int{},
		gathering: &pendingSecond{latency: newRecorder()},
	}
	for c.running > 0 {
		i := <-s.intervals
		result.Counts.add(&i.Counts)
		total.merge(i.latency)
		c.add(i)
		if !i.last {
			i.Counts = Counts{}
			i.latency.reset()
			i.loop.counts.spare <- i
		}
	}
	result.LatencyMs = total.distribution()
	end, endCPU := result.sumUp(s, loops)
	total.merge(loops[0].tally.waits) // After sumUp, which tells hung requests by the latency of responses alone
	result.LatencyMs = total.distribution()
	c.finish(end, endCPU)
	return result
}

// add takes a loop's interval. A second is complete when all loops that still run have reported past leastEnd.
func (c *collector) add(i *interval) {
	if c.leastEnd < 0 && i.measured {
		c.gathering.start, c.gathering.from = c.shared.opening.windowStart, c.shared.opening.startCPU
		c.leastEnd = c.shared.opening.windowStart + second/2
	}
	if c.reported[i.loop] {
		c.next() // Another loop is late with its second, which goes out with the next one
	}
	p := c.gathering
	p.Counts.add(&i.Counts)
	p.latency.merge(i.latency)
	if i.end > p.end {
		p.end, p.to = i.end, i.cpu
	}
	c.connections += i.connections - c.open[i.loop]
	c.open[i.loop] = i.connections
	if i.last {
		c.running--
		delete(c.reported, i.loop)
	} else if i.end >= c.leastEnd {
		c.reported[i.loop] = true
	}
	if c.running > 0 && len(c.reported) == c.running {
		c.next()
	}
}

// next ends the present second. It passes on the second before, and holds this one back.
func (c *collector) next() {
	done, free := c.gathering, c.whole
	if free == nil {
		free = &pendingSecond{latency: newRecorder()}
	} else {
		c.emit(free)
	}
	done.connections = c.connections
	free.Counts = Counts{}
	free.latency.reset()
	free.start, free.end, free.from, free.to = done.end, done.end, done.to, done.to
	c.whole, c.gathering = done, free
	clear(c.reported)
	c.leastEnd = done.end + second/2
}

// finish ends the last second at the window's end. Less than half a second is added to the second before.
func (c *collector) finish(end int64, cpu cpuReading) {
	last := c.gathering
	if c.whole != nil {
		if end-c.whole.end < second/2 {
			c.whole.Counts.add(&last.Counts)
			c.whole.latency.merge(last.latency)
			last = c.whole
		} else {
			c.emit(c.whole)
		}
	}
	// A loop that was kept from its core may have handed over a second after what turns out to be the window's end.
	last.end, last.to, last.connections = max(end, last.start), cpu, c.connections
	if c.shared.opening.opened {
		c.emit(last)
	}
}

// emit passes a second on to the caller, on this goroutine: a slow caller delays seconds, never a loop.
func (c *collector) emit(p *pendingSecond) {
	if c.onSecond == nil {
		return
	}
	// The kernel books CPU time every few milliseconds, spinning is known at once: in a short window the difference can be negative, or more
	// than the machine has.
	cpu := float64(p.to.used-p.from.used) / float64(max(1, p.to.at-p.from.at))
	cpu = min(max(0, cpu), float64(runtime.NumCPU()))
	c.onSecond(Second{
		End: c.shared.epoch.Add(time.Duration(p.end + p.to.away)), Seconds: float64(p.end-p.start) / 1e9, Counts: p.Counts,
		LatencyMs: p.latency.distribution(), Buckets: p.latency.buckets(), Connections: p.connections, GeneratorCPU: cpu,
	})
}

// sumUp adds the loops' totals, their tallies to that of the first, and returns the window's end and the CPU time then.
func (r *Result) sumUp(s *shared, loops []*loop) (end int64, endCPU cpuReading) {
	var connRps, threadRps []float64
	var byHalf [2]float64
	hungAfter := max(int64(hangOfLatencies*r.LatencyMs.P999*1e6), shortestHang)
	all := &loops[0].tally
	for i, l := range loops {
		// A loop without a request has no part in the window's end, which it may have noticed late.
		if (l.counts.responses+l.counts.failures > 0 || r.Requests == 0) && l.outcome.end >= end {
			end, endCPU = l.outcome.end, l.outcome.endCPU
		}
		r.Wire.add(&l.wire.Wire)
		r.WarmupRequests += l.counts.warmup
		r.InFlight += l.outcome.inFlight
		for _, age := range l.outcome.overdue {
			if age > hungAfter {
				r.Hung++
			}
		}
		if i > 0 {
			all.add(&l.tally)
		}
		r.Unsent += l.outcome.unsent
		if r.TLS == nil {
			r.TLS = l.tls.state
		}
		if limit := l.streamLimit; limit > 0 && (r.MaxConcurrentStreams == 0 || limit < r.MaxConcurrentStreams) {
			r.MaxConcurrentStreams = limit
		}
		connRps = append(connRps, l.outcome.connRps...)
		threadRps = append(threadRps, l.samples.perSecond...)
		byHalf[0] += l.outcome.rpsByHalf[0]
		byHalf[1] += l.outcome.rpsByHalf[1]
		if r.ErrorExample == "" {
			r.ErrorExample = l.counts.example
		}
	}
	start, startCPU := s.opening.windowStart, s.opening.startCPU
	if !s.opening.opened {
		start, startCPU = end, endCPU // Stopped during the warm-up: the window is empty
	}
	startedAt, endedAt := start+startCPU.away, end+endCPU.away
	r.Window.StartedAt, r.Window.EndedAt = s.epoch.Add(time.Duration(startedAt)), s.epoch.Add(time.Duration(endedAt))
	r.Window.MonotonicMs = [2]float64{inMs(s.monotonic + startedAt), inMs(s.monotonic + endedAt)}
	if r.Seconds = float64(end-start) / 1e9; r.Seconds > 0 {
		r.RPS = float64(r.ResponseTotal()) / r.Seconds
	}
	// Spinning is measured by the wall clock, so an idle thread can seem to use less than nothing.
	r.CPUSeconds = float64(max(0, endCPU.used-startCPU.used)) / 1e9
	r.LongestGapMs = inMs(s.gap.longest.Load())
	r.ConnectMs, r.FirstByteMs, r.SendDelayMs = all.connectTimes.distribution(), all.firstByteTimes.distribution(), all.sendDelays.distribution()
	r.ReadDelayMs = all.readDelays.distribution()
	r.TCPMs, r.HandshakeMs = all.tcpTimes.distribution(), all.handshakeTimes.distribution()
	switch p := loops[0].plan; {
	case p.Protocol == H3:
		r.HandshakeMs = r.ConnectMs
	case !p.isTLSOverTCP():
		r.TCPMs = r.ConnectMs
	}
	r.Pages = all.pages.figures(loops[0].plan.pages)
	r.Buckets = latencyBuckets(loops[0].plan.Buckets, all.bucketCounts)
	r.PerConnectionRPS, r.PerThreadRPS = describe(connRps), describe(threadRps)
	if loops[0].plan.Rate == 0 && byHalf[0] > 0 {
		r.Gain = byHalf[1] / byHalf[0]
	}
	return end, endCPU
}
