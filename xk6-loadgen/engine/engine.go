// Package engine is a load generator for web servers: event loops on threads of their own that spend as little CPU on a
// request as the kernel allows, and count all that happens. It knows nothing of k6.
//
// Flow: Options → plan (checked, resolved, encoded) → one loop per thread → intervals of a second → Second (merged, to
// the caller) and Result (at the end). A loop owns slots for connections (conn); what the bytes mean is the business of
// a session, one implementation per protocol.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// Second is what happened in about a second of the window, on all threads: the last one is of half a second to one and a half,
// or of the whole window where that is shorter. The sums over all seconds are the Result's figures, exactly.
type Second struct {
	// End is the second's end on the wall clock; no two seconds of a run share it.
	End time.Time
	// Seconds is how long it was. The sum is that of the Result but for rounding: a second begins where the one before ended,
	// at the latest end that a thread has noted.
	Seconds float64
	Counts
	// LatencyMs is all zero when there were no responses.
	LatencyMs LatencyDistribution
	Buckets   []Bucket
	// Connections are open, or being opened, at the second's end.
	Connections int
	// GeneratorCPU is CPU seconds per second of the whole process, read at the second's begin and end.
	GeneratorCPU float64
}

// Result is what a load phase measured. See Counts for what the counts mean.
type Result struct {
	Counts
	// WarmupRequests ended before the window, or at the edges of turns (see pace); InFlight were unanswered at its end. Neither is in Requests.
	WarmupRequests, InFlight int64
	// Turns is nil where there was one side alone, ServerCPU where the server's processes are not known.
	Turns     *TurnFigures
	ServerCPU *ServerCPU
	// StartedAt and EndedAt bound the window. In count mode without warm-up it runs from the first connect to the last
	// response.
	StartedAt, EndedAt time.Time
	// MonotonicMs is the same window on CLOCK_MONOTONIC, in milliseconds: no step of the wall clock moves it.
	MonotonicMs [2]float64
	// RPS is responses, of any status, per second of the window.
	Seconds, RPS float64
	// Hung are those InFlight that at the window's end were older than twice p99.9 of the latency and than a second: the server has
	// probably forgotten them. Their age is from when they were taken, or due in the open model, be it in the warm-up; it
	// includes a connect that is not over.
	Hung int64
	// LongestGapMs is the longest time within the window in which requests were under way and no response ended on any thread;
	// see silence.
	LongestGapMs float64
	// LatencyMs runs from the request's bytes to the last byte of the response, without the connect; with a new
	// connection per request it includes the connect. ConnectMs and FirstByteMs run from the start of the connect, once
	// per connection made in the window.
	// In the open model LatencyMs runs from when the request was to leave, and SendDelayMs is how late it left. Those that timed
	// out, were under way at the window's end or never left are then in LatencyMs with the time that they have waited.
	LatencyMs, ConnectMs, FirstByteMs, SendDelayMs LatencyDistribution
	// Unsent were due in the window of the open model and could not leave before its end. They are in no other count.
	Unsent int64
	// Buckets count the responses by latency; empty unless asked for.
	Buckets []LatencyBucket
	// TLS is what was negotiated; nil without TLS, and when no handshake was completed.
	TLS *TLSState
	// MaxConcurrentStreams is the server's limit per connection (HTTP/2); 0: it named none.
	MaxConcurrentStreams int64
	// Both are of responses. PerConnectionRPS is over slots: a connection that was reopened counts as the same one. Over the
	// window, or where the connections make a number of requests each, from a connection's first attempt to its last response.
	// PerThreadRPS is sampled each 100 ms on each thread, as wrk does.
	PerConnectionRPS, PerThreadRPS Distribution
	// CPUSeconds the whole process used within the window; what Spin does while there is nothing to read is left out.
	CPUSeconds float64
	// ErrorExample is the text of one of the errors; empty when there were none.
	ErrorExample string
}

// Run loads the server until the options' end or until ctx ends, whichever is first; a ctx that ends under load is not an
// error, the result then covers the time until it. onSecond, which may be nil, is called from a goroutine of its own
// once for each second. The error names the option that is wrong, the host that could not be resolved, or the namespace that could
// not be entered.
//
// GOMAXPROCS is raised to two more than there are threads, those of other runs under way included, when it is lower: a loop keeps
// a P for itself.
func Run(ctx context.Context, options Options, onSecond func(Second)) (Result, error) {
	p, err := newPlan(ctx, options)
	if err != nil {
		return Result{}, err
	}
	defer p.close()
	return p.run(ctx, onSecond)
}

// run is the load of one side that is alone.
func (p *plan) run(ctx context.Context, onSecond func(Second)) (Result, error) {
	results, err := start(ctx, []*run{{plan: p, onSecond: onSecond}}, Turns{})
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

// run is one load phase.
type run struct {
	plan     *plan
	onSecond func(Second)
	cpuOf    []int
	shared   *shared
	loops    []*loop
	// running loops are not through yet.
	running int
}

// start makes the loops of all runs, lets them load in turns, and returns when all are through.
func start(ctx context.Context, runs []*run, turns Turns) ([]Result, error) {
	threads := 0
	for _, r := range runs {
		threads = max(threads, r.plan.Threads)
	}
	// One run's loops are at work at a time.
	defer reserveProcessors(threads)()
	err := prepare(runs)
	if err == nil {
		err = awaitStart(ctx, runs[0].plan.StartAt)
	}
	if err != nil {
		for _, r := range runs {
			for _, l := range r.loops {
				close(l.resume)
			}
		}
		return nil, err
	}
	stop := func() {
		for _, r := range runs {
			r.shared.stop.Store(true)
		}
	}
	defer context.AfterFunc(ctx, stop)()
	if ctx.Err() != nil {
		// Now: no request leaves.
		stop()
	}
	results := make([]Result, len(runs))
	var collectors sync.WaitGroup
	for _, r := range runs {
		r.shared.startClock()
	}
	for i, r := range runs {
		collectors.Go(func() { results[i] = collect(r.shared, r.loops, r.onSecond) })
	}
	c := takeTurns(runs, turns)
	collectors.Wait()
	for i, r := range runs {
		results[i].Turns, results[i].ServerCPU = r.shared.figures()
		if t := results[i].Turns; t != nil && r.plan.Rate > 0 {
			t.StoodStill = float64(c.stood) / float64(max(1, c.all))
		}
	}
	return results, nil
}

// prepare makes the loops and starts their threads, which then wait for their first turns. None makes a socket before all are
// inside their networks: there is no load on another one, not even some of it.
func prepare(runs []*run) (err error) {
	var all []*loop
	for _, r := range runs {
		r.makeLoops(len(runs) == 1)
		all = append(all, r.loops...)
	}
	entered := make(chan error)
	for _, l := range all {
		go linux.OnOwnThread(func() { l.run(entered) })
	}
	for range all {
		err = cmp.Or(err, <-entered)
	}
	return err
}

// furthestStart is how far ahead a load may begin: further is a clock that is wrong, or another unit.
const furthestStart = time.Minute

// awaitStart waits until it is that late, or ctx ends; zero: not at all.
func awaitStart(ctx context.Context, at time.Time) error {
	if at.IsZero() {
		return nil
	}
	wait := time.Until(at)
	switch {
	case wait < 0:
		return fmt.Errorf("startAt: began %.3g s too late: set it further ahead", -wait.Seconds())
	case wait > furthestStart:
		return fmt.Errorf("startAt: is %.3g s ahead, and may be %s: set it nearer, and the clocks right", wait.Seconds(), furthestStart)
	}
	ctx, cancel := context.WithDeadline(ctx, at)
	defer cancel()
	<-ctx.Done()
	return nil
}

// makeLoops makes the run's loops, and what they share.
func (r *run) makeLoops(alone bool) {
	p := r.plan
	// Loops hand over at most their two intervals and the last one: they never wait for the collector.
	r.shared = &shared{intervals: make(chan *interval, 3*p.Threads), turn: turn{alone: alone, back: make(chan *loop)}}
	r.shared.pace.patience, r.shared.pace.quiet = drainLimit, drainLimit
	own := linux.Cores()
	r.shared.apart = len(r.cpuOf) > 0 && !slices.ContainsFunc(r.cpuOf, func(pid int) bool {
		return slices.ContainsFunc(linux.CoresOf(pid), func(core int) bool { return slices.Contains(own, core) })
	})
	r.shared.server.processes = linux.NewProcessTree(r.cpuOf)
	if !p.divided && p.Rate == 0 {
		r.shared.quota.Store(p.Requests)
	}
	for i := range p.Threads {
		r.loops = append(r.loops, newLoop(p, r.shared, i))
	}
	r.running, r.shared.turn.loops = p.Threads, r.loops
}

// processors counts the loops under way in this process.
var processors struct {
	sync.Mutex
	loops int
}

// reserveProcessors sees to it that these loops and those under way leave two of GOMAXPROCS to all else, until release is called.
// It is not lowered again: that would stop the loops of others for a moment.
func reserveProcessors(loops int) (release func()) {
	change := func(by int) {
		processors.Lock()
		defer processors.Unlock()
		processors.loops += by
		if runtime.GOMAXPROCS(0) < processors.loops+2 {
			runtime.GOMAXPROCS(processors.loops + 2)
		}
	}
	change(loops)
	return func() { change(-loops) }
}

// SuccessRatio is the share of 2xx and 3xx in all requests that were answered, failed or hung; 0 when there were none.
func (r *Result) SuccessRatio() float64 {
	if r.Requests+r.Hung == 0 {
		return 0
	}
	return float64(r.Responses[0]+r.Responses[1]) / float64(r.Requests+r.Hung)
}
