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
	// LatencyMs is all zero when there were no responses. WithinSD is not computed per second.
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
	// WarmupRequests ended before the window; InFlight were unanswered at its end. Neither is in Requests.
	WarmupRequests, InFlight int64
	// StartedAt and EndedAt bound the window. In count mode without warm-up it runs from the first connect to the last
	// response.
	StartedAt, EndedAt time.Time
	// MonotonicMs is the same window on CLOCK_MONOTONIC, in milliseconds: no step of the wall clock moves it.
	MonotonicMs [2]float64
	// RPS is responses, of any status, per second of the window.
	Seconds, RPS float64
	// Hung are those InFlight that at the window's end were older than p99.9 of the latency and than a second: the server has
	// probably forgotten them. Their age is from when they were taken, or due in the open model, be it in the warm-up; it
	// includes a connect that is not over.
	Hung int64
	// LongestGapMs is the longest time within the window in which requests were under way and no response ended on any thread;
	// see silence.
	LongestGapMs float64
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
	// Both are of responses. PerConnectionRPS is over slots: a connection that was reopened counts as the same one. Over the
	// window, or where the connections make a number of requests each, from a connection's first attempt to its last response.
	// PerThreadRPS is sampled each 100 ms on each thread, as wrk does.
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
	defer reserveProcessors(p.Threads)()
	defer context.AfterFunc(ctx, func() { s.stop.Store(true) })()
	entered, begin := make(chan error), make(chan bool)
	for _, l := range loops {
		go linux.OnOwnThread(func() { l.run(entered, begin) })
	}
	// None makes a socket before all are inside: there is no load on another network, not even some of it.
	for range loops {
		if problem := <-entered; problem != nil {
			err = problem
		}
	}
	s.startClock()
	for range loops {
		begin <- err == nil
	}
	if err != nil {
		return Result{}, err
	}
	return collect(s, loops, onSecond), nil
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
