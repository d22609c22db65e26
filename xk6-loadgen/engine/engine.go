// Package engine is a load generator for web servers: event loops on threads of their own that spend as little CPU on a
// request as the kernel allows, and count all that happens. It knows nothing of k6.
//
// Flow: Options → plan (checked, resolved, encoded) → one loop per thread → intervals of a second → Second (merged, to
// the caller) and Result (at the end). A loop owns slots for connections (conn); what the bytes mean is the business of
// a session, one implementation per protocol.
package engine

import (
	"context"
	"runtime"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// Second is what happened in one whole second of the window, on all threads (the last one may be shorter). The sums over
// all seconds are the Result's figures, exactly.
type Second struct {
	// End is the second's end on the wall clock.
	End time.Time
	Counts
	// LatencyMs is all zero when there were no responses. WithinSD is not computed per second.
	LatencyMs LatencyDistribution
	Buckets   []Bucket
	// Connections are open, or being opened, at the second's end.
	Connections int
	// GeneratorCPU is CPU seconds per second of the whole process.
	GeneratorCPU float64
}

// Result is what a load phase measured. See Counts for what the counts mean.
type Result struct {
	Counts
	// WarmupRequests ended before the window; InFlight were unanswered at its end. Neither is in Requests.
	WarmupRequests, InFlight int64
	// StartedAt and EndedAt bound the window. In count mode without warm-up it runs from the first connect to the last
	// response.
	StartedAt, EndedAt time.Time
	Seconds, RPS       float64
	// LatencyMs runs from the request's bytes to the last byte of the response, without the connect; with a new
	// connection per request it includes the connect. ConnectMs and FirstByteMs run from the start of the connect, once
	// per connection made in the window.
	// In the open model LatencyMs runs from when the request was to leave, and SendDelayMs is how late it left.
	LatencyMs, ConnectMs, FirstByteMs, SendDelayMs LatencyDistribution
	// Unsent were due in the window of the open model and could not leave before its end. They are in no other figure.
	Unsent int64
	// Buckets count the responses by latency; empty unless asked for.
	Buckets []LatencyBucket
	// TLS is what was negotiated; nil without TLS, and when no handshake was completed.
	TLS *TLSState
	// MaxConcurrentStreams is the server's limit per connection (HTTP/2); 0: it named none.
	MaxConcurrentStreams int64
	// PerConnectionRPS is over slots: a connection that was reopened counts as the same one. Over the window, or where the
	// connections make a number of requests each, from a connection's first attempt to its last response. PerThreadRPS is
	// sampled each 100 ms on each thread, as wrk does.
	PerConnectionRPS, PerThreadRPS Distribution
	// CPUSeconds the whole process used within the window.
	CPUSeconds float64
	// ErrorExample is the text of one of the errors; empty when there were none.
	ErrorExample string
}

// Run loads the server until the options' end or until ctx ends, whichever is first; a ctx that ends under load is not an
// error, the result then covers the time until it. onSecond, which may be nil, is called from this goroutine once for
// each second. The error names the option that is wrong, the host that could not be resolved, or the namespace that could
// not be entered.
//
// GOMAXPROCS is raised to two more than there are threads when it is lower: a loop keeps a P for itself.
func Run(ctx context.Context, options Options, onSecond func(Second)) (Result, error) {
	p, err := newPlan(ctx, options)
	if err != nil {
		return Result{}, err
	}
	defer p.close()
	return p.run(ctx, onSecond)
}

func (p *plan) run(ctx context.Context, onSecond func(Second)) (Result, error) {
	var err error
	// Loops hand over at most their two intervals and the last one: they never wait for the collector.
	s := &shared{intervals: make(chan *interval, 3*p.Threads)}
	if !p.divided && p.Rate == 0 {
		s.quota.Store(p.Requests)
	}
	loops := make([]*loop, p.Threads)
	for i := range loops {
		if loops[i], err = newLoop(p, s, i); err != nil {
			for _, l := range loops[:i] {
				linux.Close(l.epoll)
			}
			return Result{}, err
		}
	}
	if runtime.GOMAXPROCS(0) < p.Threads+2 {
		runtime.GOMAXPROCS(p.Threads + 2)
	}
	defer context.AfterFunc(ctx, func() { s.stop.Store(true) })()
	entered, begin := make(chan error), make(chan bool)
	for _, l := range loops {
		go l.run(entered, begin)
	}
	// None makes a socket before all are inside: there is no load on another network, not even some of it.
	for range loops {
		if problem := <-entered; problem != nil {
			err = problem
		}
	}
	s.epoch = time.Now()
	for range loops {
		begin <- err == nil
	}
	if err != nil {
		return Result{}, err
	}
	return collect(s, loops, onSecond), nil
}

// collect merges what the loops hand over into seconds and, at the end, into the result.
func collect(s *shared, loops []*loop, onSecond func(Second)) Result {
	var (
		result  Result
		total   = newRecorder()
		pending = &pendingSecond{reported: map[*loop]bool{}, latency: newRecorder()}
		running = len(loops)
		// A second is whole when all loops that ran in it have reported.
		expected = running
		lastCPU  int64
	)
	emit := func() {
		if lastCPU == 0 {
			lastCPU = s.windowCPU.Load()
		}
		if onSecond != nil {
			onSecond(pending.second(s.epoch, pending.cpu-lastCPU))
		}
		lastCPU = pending.cpu
		expected = running
		pending.clear()
	}
	for running > 0 {
		i := <-s.intervals
		if pending.reported[i.loop] {
			// Another loop is late with its second: it goes out with the next one.
			emit()
		}
		pending.add(i)
		result.Counts.add(&i.Counts)
		total.merge(i.latency)
		if i.last {
			running--
		} else {
			i.Counts = Counts{}
			i.latency.reset()
			i.loop.spare <- i
		}
		if len(pending.reported) >= expected {
			emit()
		}
	}
	result.LatencyMs = total.distribution()
	result.sumUp(s, loops)
	return result
}

// sumUp adds what the loops have kept to themselves until their end.
func (r *Result) sumUp(s *shared, loops []*loop) {
	connect, firstByte, sendDelay := newRecorder(), newRecorder(), newRecorder()
	bucketCounts := make([]int64, len(loops[0].bucketCounts))
	var connRps, threadRps []float64
	start, end, endCPU := never, int64(0), s.windowCPU.Load()
	for _, l := range loops {
		// A loop for which no request was left has no part in the window: it may have opened its own long after it.
		if l.requests > 0 || r.Requests == 0 {
			start, end, endCPU = min(start, l.windowStart), max(end, l.windowEnd), max(endCPU, l.endCPU)
		}
		r.WarmupRequests += l.warmup
		r.InFlight += l.inFlight
		connect.merge(l.connectTimes)
		firstByte.merge(l.firstByteTimes)
		if l.sendDelays != nil {
			sendDelay.merge(l.sendDelays)
		}
		for i, n := range l.bucketCounts {
			bucketCounts[i] += n
		}
		r.Unsent += l.unsent
		if r.TLS == nil {
			r.TLS = l.tlsState
		}
		if limit := l.maxConcurrentStreams; limit > 0 && (r.MaxConcurrentStreams == 0 || limit < r.MaxConcurrentStreams) {
			r.MaxConcurrentStreams = limit
		}
		connRps = append(connRps, l.connRps...)
		threadRps = append(threadRps, l.threadRps...)
		if r.ErrorExample == "" {
			r.ErrorExample = l.example
		}
	}
	r.StartedAt, r.EndedAt = s.epoch.Add(time.Duration(start)), s.epoch.Add(time.Duration(end))
	if r.Seconds = float64(end-start) / 1e9; r.Seconds > 0 {
		r.RPS = float64(r.Requests) / r.Seconds
	}
	r.CPUSeconds = float64(endCPU-s.windowCPU.Load()) / 1e9
	r.ConnectMs, r.FirstByteMs, r.SendDelayMs = connect.distribution(), firstByte.distribution(), sendDelay.distribution()
	r.Buckets = latencyBuckets(loops[0].plan.Buckets, bucketCounts)
	r.PerConnectionRPS, r.PerThreadRPS = describe(connRps), describe(threadRps)
}

// pendingSecond gathers the loops' intervals of one second.
type pendingSecond struct {
	Counts
	reported    map[*loop]bool
	latency     *recorder
	connections int
	start, end  int64
	cpu         int64
}

func (p *pendingSecond) add(i *interval) {
	if len(p.reported) == 0 && p.start == 0 {
		p.start = i.loop.windowStart
	}
	p.reported[i.loop] = true
	p.Counts.add(&i.Counts)
	p.latency.merge(i.latency)
	p.connections += i.connections
	// Two seconds never share a timestamp.
	p.end = max(p.end, i.end, p.start+1)
	p.cpu = max(p.cpu, i.cpu)
}

// second is what was gathered; cpu is the process's CPU time since the last one, in nanoseconds.
func (p *pendingSecond) second(epoch time.Time, cpu int64) Second {
	return Second{
		End: epoch.Add(time.Duration(p.end)), Counts: p.Counts, LatencyMs: p.latency.withoutWithinSD(), Buckets: p.latency.buckets(),
		Connections: p.connections, GeneratorCPU: float64(cpu) / float64(max(1, p.end-p.start)),
	}
}

func (p *pendingSecond) clear() {
	clear(p.reported)
	p.Counts = Counts{}
	p.latency.reset()
	p.connections, p.start = 0, p.end
}
