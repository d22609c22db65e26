package engine

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// Second is about a second of the window, on all threads; the last one has 0.5 to 1.5 s or less. Seconds add up to the Result.
type Second struct {
	End     time.Time // on the wall clock; no two seconds of a run share it
	Seconds float64
	Counts
	LatencyMs    LatencyDistribution // zero without responses
	Buckets      []Bucket
	Connections  int     // Connections are open, or being opened, at the second's end.
	GeneratorCPU float64 // CPU seconds per second of the process
}

// Result is a load's outcome. Times and counts are of the window unless a field says otherwise.
type Result struct {
	Counts
	// WarmupRequests ended before the window, or at a turn's edges; InFlight had no response at its end. Neither is in Requests.
	WarmupRequests, InFlight int64
	Wire                     Wire
	Turns                    *TurnFigures // Turns is nil for one side alone, ServerCPU where the server's processes are not known
	ServerCPU                *ServerCPU
	ServerMemoryBytes        int64        // ServerMemoryBytes is of the server's processes at the window's end, while connections are open; 0: unknown
	Continuous               *Continuous  // nil without a warm-up
	QueueGrowth              *QueueGrowth // nil except at a rate
	Window                   Window
	// RPS is responses of any status per second; at a rate those that came within the windows, whenever their requests were due.
	Seconds, RPS float64
	Gain         float64 // Gain is RPS of the window's second half as a multiple of that of the first; 0: not known, as at a rate and of a count
	// Hung are those InFlight that were older than a second and than twice p99.9 of the latency, since they were taken or due.
	Hung         int64
	LongestGapMs float64 // the longest time with requests under way and no response on any thread, see sharedGap
	// LatencyMs runs from the request's bytes (a new connection: from the connect) to the response's last byte; at a rate from when it was
	// due, and requests without a response count with their wait. ConnectMs and FirstByteMs run from the connect, once per connection.
	// SendDelayMs is how late requests of a rate left. ReadDelayMs is the part of a latency between the kernel's receipt of the response's
	// last byte and the loop's read, of some responses; not known over QUIC.
	LatencyMs, ConnectMs, FirstByteMs, SendDelayMs, ReadDelayMs LatencyDistribution
	TCPMs, HandshakeMs                                          LatencyDistribution // the parts of ConnectMs; a handshake of QUIC is all of it
	Unsent                                                      int64               // due at a rate in the window, could not leave; in no other count
	Buckets                                                     []LatencyBucket     // Buckets count the responses by latency, if asked for.
	Pages                                                       []PageFigures       // Pages, the greatest weight first, are empty for a single one.
	TLS                                                         *TLSState           // nil without TLS, and if no handshake was completed
	MaxConcurrentStreams                                        int64               // the server's limit per connection (HTTP/2); 0: it named none
	// PerConnectionRPS is over slots; with a shared number of requests its time ends with its last response. PerThreadRPS is sampled as in wrk.
	PerConnectionRPS, PerThreadRPS Distribution
	CPUSeconds                     float64 // CPUSeconds of the process within the window, without spinning.
	ErrorExample                   string  // the text of one of the errors
}

// Window is when a window was: a count without warm-up runs from the first connect to the last response; at a rate until an interval after
// the last request was due.
type Window struct {
	StartedAt, EndedAt time.Time
	MonotonicMs        [2]float64 // the same bounds on CLOCK_MONOTONIC
}

// Run loads the server until the load is complete or ctx ends; the result covers the time until that. Its errors name the option;
// with ErrNoAnswer, which ends a hopeless load, there are results.
// onSecond, which may be nil, is called from a goroutine of its own. GOMAXPROCS is raised: a loop keeps a P for itself.
func Run(ctx context.Context, options Options, onSecond func(Second)) (Result, error) {
	p, err := newPlan(ctx, options)
	if err != nil {
		return Result{}, err
	}
	defer p.network.close()
	return p.run(ctx, onSecond)
}

// run is Run for a plan that has been made.
func (p *plan) run(ctx context.Context, onSecond func(Second)) (Result, error) {
	results, err := start(ctx, []*run{{plan: p, onSecond: onSecond}}, Turns{})
	return results[0], err
}

// run is one load of a call: the only one, or a side. It owns the loops.
type run struct {
	plan     *plan
	onSecond func(Second)
	cpuOf    []int
	shared   *shared
	loops    []*loop
	running  int // running loops are not through yet.
}

// start runs the loads of a call to their ends: it starts the threads, waits for all to be in their networks, gives the turns and adds up.
// Results have the order of runs. An error means that a loop could not begin, and that no request was made.
func start(ctx context.Context, runs []*run, turns Turns) ([]Result, error) {
	results, threads := make([]Result, len(runs)), 0
	for _, r := range runs {
		needed := r.plan.Threads
		if r.plan.Protocol == H3 {
			needed += len(linux.Cores()) // QUIC is the work of other goroutines
		}
		switch {
		case r.plan.isOfGoroutines:
		case turns.WarmTogether:
			threads += needed
		default:
			threads = max(threads, needed) // One side's loops are at work at a time
		}
	}
	defer reserveProcessors(threads)()
	defer collectFor(runs)()
	err := prepare(runs)
	if err == nil {
		err = awaitStart(ctx, runs[0].plan.StartAt)
	}
	if err != nil {
		for _, r := range runs {
			for _, l := range r.loops {
				close(l.turn.resume)
			}
		}
		return results, err
	}
	for _, r := range runs {
		if r.plan.isOfGoroutines && !r.shared.hasOwnCores {
			linux.SetPolicies(unix.SCHED_BATCH) // As the threads of other loops
			defer linux.SetPolicies(unix.SCHED_NORMAL)
		}
	}
	stop := func() {
		for _, r := range runs {
			r.shared.stop.Store(true)
		}
	}
	defer context.AfterFunc(ctx, stop)()
	if ctx.Err() != nil {
		stop() // At once, so that no request leaves
	}
	var collectors sync.WaitGroup
	for i, r := range runs {
		r.shared.hopeless.giveUp = stop
		r.shared.startClock()
		collectors.Go(func() { results[i] = collect(r.shared, r.loops, r.onSecond) })
	}
	c := takeTurns(runs, turns)
	collectors.Wait()
	for i, r := range runs {
		results[i].Turns, results[i].ServerCPU = r.shared.figures()
		results[i].Continuous, results[i].ServerMemoryBytes = r.shared.warmth.continuous, r.shared.memory.bytes
		growth, served := queueGrowthOf(r.loops)
		if results[i].QueueGrowth = growth; growth != nil {
			results[i].RPS = served
		}
		if t := results[i].Turns; t != nil && r.plan.Rate > 0 {
			t.StoodStill = float64(c.stalled) / float64(max(1, c.all))
		}
		if none := r.shared.hopeless.err(r.plan); none != nil && len(runs) > 1 {
			err = cmp.Or(err, fmt.Errorf("sides[%d]: %w", i, none))
		} else {
			err = cmp.Or(err, none)
		}
	}
	return results, err
}

// prepare starts the loops' threads. All must be inside their networks before one makes a socket.
func prepare(runs []*run) (err error) {
	entered, loops := make(chan error), 0
	for _, r := range runs {
		r.makeLoops(len(runs) == 1)
		loops += len(r.loops)
		for _, l := range r.loops {
			l.start(entered)
		}
	}
	for range loops {
		err = cmp.Or(err, <-entered)
	}
	return err
}

const furthestStart = time.Minute // a later start means a wrong clock or a wrong unit

// awaitStart waits until a time of the wall clock, at which several k6 begin together. If ctx ends first there is no error.
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

// makeLoops makes the side's loops and what they share. No thread starts yet. alone tells that there is no other side.
func (r *run) makeLoops(alone bool) {
	p := r.plan
	s := &shared{intervals: make(chan *interval, 3*p.Threads), alone: alone, gate: gate{back: make(chan *loop)}}
	s.turn.pace.patience, s.turn.pace.quiet = drainLimit, drainLimit
	cores := linux.Cores()
	s.hasOwnCores = len(r.cpuOf) > 0 && !slices.ContainsFunc(r.cpuOf, func(pid int) bool {
		return slices.ContainsFunc(linux.CoresOf(pid), func(core int) bool { return slices.Contains(cores, core) })
	})
	s.server.processes = linux.NewProcessTree(r.cpuOf)
	if !p.divided && p.Rate == 0 {
		s.quota.Store(p.Requests)
	}
	for i := range p.Threads {
		r.loops = append(r.loops, newLoop(p, s, i))
	}
	r.running, r.shared, s.loops = p.Threads, s, r.loops
}

// processors counts the loops of all loads that this process makes at present: k6's VUs may call at the same time.
var processors struct {
	sync.Mutex
	loops int
}

// reserveProcessors raises GOMAXPROCS, so that the loops at work until release leave two processors to all other goroutines: a loop never
// gives its own back. It is not lowered again, since each change stops all loops for a moment.
func reserveProcessors(loops int) (release func()) {
	change := func(by int) {
		processors.Lock()
		defer processors.Unlock()
		processors.loops += by
		if processors.loops > 0 && runtime.GOMAXPROCS(0) < processors.loops+2 {
			runtime.GOMAXPROCS(processors.loops + 2)
		}
	}
	change(loops)
	return func() { change(-loops) }
}

// SuccessRatio is the share of expected responses in all requests that were answered, failed or hung.
func (r *Result) SuccessRatio() float64 {
	return float64(r.ResponseTotal()-r.Unexpected) / float64(max(1, r.Requests+r.Hung))
}
