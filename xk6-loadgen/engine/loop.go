package engine

import (
	"crypto/tls"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
	// One read takes what a server sends in a burst; more than this is read in turns.
	readBufferBytes = 64 << 10
	eventsPerWait   = 512
	// A handshake takes up to a millisecond: with more of them in one turn a stop or the window's end would be late.
	eventsWithHandshakes = 16
	// Loops draw attempts from the shared quota in chunks of at most this, so that they rarely touch the same cache line.
	longestChunk = 32
	// startsPerTurn bounds how long opening connections keeps a loop from reading: ten thousand at once would put the
	// generator's own queue into the latencies.
	startsPerTurn = 64
	// wrk samples requests/s per thread at this interval.
	threadSampleEvery = int64(100 * time.Millisecond)
	// The longest wait: bounds how late a stop is noticed.
	longestWait = int64(20 * time.Millisecond)
	second      = int64(time.Second)
	// cacheLinesBytes is two lines of 64 bytes.
	cacheLinesBytes = 128
	// firstNice is above all that shares the generator's cores: k6's other threads, the database, the runner. Where the kernel weighs
	// sessions against each other it is above those of k6's own session; that one's weight is for who starts k6 to set.
	firstNice = -15
	never     = int64(1) << 62
	// noSlot is what epoll reports for what is no connection.
	noSlot = -1
)

// phase is what a loop's attempts count as. Only the loop's own timing and quota ask for it: the window's opening sets
// the counts to zero, so what records results need not.
type phase int

const (
	unbegun phase = iota
	// solo: one request at a time is made, see soloRequests.
	solo
	// reaching: the connections make their first requests, before there is a load at a rate.
	reaching
	warming
	// warmedUp: the first turn was for the warm-up, the next one opens the window.
	warmedUp
	// draining: warm-up is over, the attempts it started are awaited so that a count can be exact.
	draining
	// drained: nothing is under way on this loop. When that holds for all of them, they open the window together: one that
	// began alone would count its time before the others as time under load.
	drained
	measuring
)

// shared is what the loops of one run have in common.
type shared struct {
	// epoch and stop are read in every turn of every loop.
	epoch time.Time
	stop  atomic.Bool
	// quota is the number of attempts not yet handed out, in count mode. It has cache lines of its own (processors fetch them
	// in pairs): each draw would take those of epoch and stop away from the other loops.
	_     [cacheLinesBytes]byte
	quota atomic.Int64
	_     [cacheLinesBytes]byte
	// spun is how long loops were awake and had nothing to do, in nanoseconds.
	spun atomic.Int64
	_    [cacheLinesBytes]byte
	// intervals carries finished seconds to the collector.
	intervals chan *interval
	// monotonic is the epoch on CLOCK_MONOTONIC, in nanoseconds.
	monotonic int64
	opening
	silence silence
	// apart: the server is known to have none of the generator's cores.
	apart bool
	turn
	probe    probe
	soloDone atomic.Bool
}

// now is the run's clock: monotonic nanoseconds since its epoch.
func (s *shared) now() int64 { return int64(time.Since(s.epoch)) }

// takeQuota hands out up to n attempts.
func (s *shared) takeQuota(n int64) int64 {
	left := s.quota.Add(-n)
	return max(0, min(n, left+n))
}

// interval is what one loop measured in one second of the window.
type interval struct {
	loop *loop
	end  int64
	// cpu is read at the end.
	cpu  cpuReading
	last bool
	// measured: the loop has opened the window.
	measured    bool
	connections int
	Counts
	latency *recorder
}

// loop is an event loop on a thread of its own. It owns all it touches; the only things that leave it are intervals,
// and its totals once it has ended.
type loop struct {
	plan   *plan
	shared *shared
	number int

	epoll  int
	events [eventsPerWait]syscall.EpollEvent
	buffer [readBufferBytes]byte
	conns  []conn
	// lastHead and lastBlock are shared by the loop's connections: they talk to one server.
	lastHead  headCache
	lastBlock blockCache
	strings   hpackStrings
	// out is where a session gathers what it sends until its flush, sealed where TLS encrypts it.
	out, sealed []byte
	// tls, with the keys that it logs, is nil without TLS; tlsState is what the first handshake came to.
	tls      *tls.Config
	keys     *keyLog
	tlsState *TLSState
	// handshakes are under way, or will be when TCP's is over.
	handshakes int
	// maxConcurrentStreams is the least that the server has allowed; 0: it named no limit.
	maxConcurrentStreams int64
	// step is where the loop is in the order of the plan's requests.
	step int

	// clock is the time of the last look at it; nextTimer is when timers() has something to do.
	clock, nextTimer                 int64
	nextTick, nextSample             int64
	phase                            phase
	phaseEnd, windowStart, windowEnd int64
	// nextSweep is when the next pass over the slots begins; sweepFrom is where the one under way goes on, 0: there is none.
	nextSweep int64
	sweepFrom int
	// allowance is what is left of the chunk drawn last, of the connections' shares, or of the loop's in the open model.
	allowance, chunk int64
	outstanding      int64
	open             int
	// late counts connections in a row that were not up when connect returned.
	late int
	// pauses are the slots that wait before they connect again, looked at next at nextRetry.
	pauses    []pause
	nextRetry int64
	// starting is a ring of slots that are to start an attempt after the events of this turn: connections opened from
	// within an event could nest without end, and many at once would keep the loop from reading.
	starting connRing
	// idle are the slots that could start an attempt as soon as one is due, in the open model; schedule says when.
	idle     connRing
	schedule schedule

	// resume begins a turn; closed, it ends a loop that has not begun. turnIsOver: nothing more is started in this turn. windowIsOver:
	// the last one was over. through: it has no more turns.
	resume                            chan struct{}
	turnIsOver, windowIsOver, through bool
	// readsLate: the loop awaits its turn with answers that are late; wake ends a wait for those.
	readsLate bool
	wake      int
	// began, steadyFrom and sliceEnd are those of the turn; started connections have made their first request in it, and latencies of requests
	// from recordFrom on are recorded.
	began, steadyFrom, sliceEnd, recordFrom int64
	// Connections begin one after the other over spread.
	spread      int64
	started     int
	isReopening bool
	// older attempts are under way since an earlier turn. left is when the time under load ended with the turn, answered how many
	// responses there were at its begin or end.
	older, left, answered int64
	// sawNothing: there was nothing to read at the last look.
	sawNothing bool
	// cycle is nil but at a rate in turns. stood is how long the loop stood still at most in the turn, idleSince since when a connection
	// is free.
	cycle            *cycle
	stood, idleSince int64

	// interval is the second under way. Events are counted in current, which is the interval, or outside: at the edges of turns.
	current, interval, outside *interval
	spare                      chan *interval
	// responses and failures of the phase so far; lastEnd is when the last one ended.
	responses, failures, lastEnd int64
	warmup, inFlight             int64
	// unreached are slots of which no attempt has ended yet; at lastStep one of them got further. arrived: the others need not wait
	// for this loop.
	unreached int
	lastStep  int64
	arrived   bool
	// overdue are the ages, at the window's end, of the attempts under way that are old enough to be called hung.
	overdue                      []int64
	quiet                        quiet
	endCPU                       cpuReading
	connectTimes, firstByteTimes *recorder
	// sendDelays, and waits, how long attempts without an answer waited since they were due, are nil in the closed model.
	sendDelays, waits *recorder
	// bucketCounts has one more than the plan has buckets.
	bucketCounts           []int64
	unsent                 int64
	sampleFrom, sampleBase int64
	threadRps, connRps     []float64
	example                string
}

func newLoop(p *plan, s *shared, number int) *loop {
	connections := int(share(int64(p.Connections), p.Threads, number))
	l := &loop{
		plan: p, shared: s, number: number,
		conns: make([]conn, connections), unreached: connections, wake: -1, spare: make(chan *interval, 2), resume: make(chan struct{}, 1), nextRetry: never,
		connectTimes: newRecorder(), firstByteTimes: newRecorder(),
		starting: newConnRing(connections), bucketCounts: make([]int64, len(p.Buckets)+1),
		// Each begins elsewhere in the cycle, so that together they are not in step.
		step: number * len(p.order) / p.Threads,
	}
	if p.tls != nil {
		l.keys = &keyLog{}
		l.tls = p.tls.Clone()
		l.tls.KeyLogWriter = l.keys
	}
	l.chunk = min(longestChunk, max(1, p.Requests/int64(16*p.Threads)))
	if p.Rate > 0 {
		l.sendDelays, l.waits, l.idle = newRecorder(), newRecorder(), newConnRing(connections)
		l.schedule = newSchedule(p, number)
	}
	l.interval, l.outside = &interval{loop: l, latency: newRecorder()}, &interval{latency: newRecorder()}
	l.current = l.interval
	l.spare <- &interval{loop: l, latency: newRecorder()}
	for i := range l.conns {
		c := &l.conns[i]
		*c = conn{loop: l, slot: int32(i), fd: -1}
		if p.tls != nil {
			c.secure = &secure{conn: c}
		}
		if p.Protocol.isHTTP2() {
			c.session = &h2{conn: c}
		} else {
			c.session = &http1{conn: c, parser: parser{isHead: p.isHead}}
		}
	}
	return l
}

// connection is the number of a slot's connection among those of all loops: what comes to the first of them is spread over
// the loops.
func (l *loop) connection(slot int) int { return slot*l.plan.Threads + l.number }

// run is the whole life of the loop: warm-up, window, end. It says whether its thread is in the namespace and can wait, and
// begins with its first turn.
//
// It needs a thread of its own, which ends with it: the thread's network, scheduling policy and cores are the loop's. Threads
// that the Go runtime makes meanwhile have nothing of that, since it never clones one that a goroutine is locked to.
func (l *loop) run(entered chan<- error) {
	err := l.plan.network.enter()
	if err == nil {
		l.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
		defer linux.Close(l.epoll)
	}
	if err == nil && !l.shared.alone {
		l.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		defer linux.Close(l.wake)
		linux.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, l.wake, &syscall.EpollEvent{Events: linux.EpollIn, Fd: noSlot})
	}
	entered <- err
	if _, begins := <-l.resume; !begins {
		return
	}
	linux.SetTimerSlack()
	switch {
	case l.plan.Rate == 0 && !l.shared.apart:
		linux.SetBatchPolicy()
	case l.plan.Rate == 0:
		// k6's other threads would keep an answer waiting for up to 4 ms.
		linux.SetShortSlice()
	default:
		// What is due must not wait for others of this core, and where one is at work must take its place at once.
		linux.SetShortSlice()
		syscall.Setpriority(syscall.PRIO_PROCESS, 0, firstNice) //nolint:errcheck // without the privilege (root, CAP_SYS_NICE) it waits its turn
	}
	linux.UseCores(coresOf(linux.Cores(), l.plan.Threads, l.number)) //nolint:errcheck // without it all is right, only slower

	l.joinTurn()
	l.nextSweep = l.clock + l.sweepInterval()
	if l.plan.Warmup > 0 {
		l.begin()
	} else {
		l.beginWindow()
	}
	l.endSliceEarly()
	l.setTimer()
	for !l.ended() {
		if l.clock >= l.sliceEnd && l.turnIsDone() && !l.windowIsOver {
			l.nextTurn()
			continue
		}
		events := l.events[:l.eventsThisTurn()]
		n := linux.EpollWait(l.epoll, events, 0)
		if n == 0 && l.starting.len == 0 {
			n = l.wait(events)
		}
		reported := l.shared.now()
		l.clock, l.sawNothing = reported, n == 0
		for i := range n {
			l.conns[events[i].Fd].ready(events[i].Events)
		}
		if l.plan.Rate > 0 {
			l.startDue()
		}
		if l.starting.len > 0 {
			l.startSome()
		}
		if l.clock >= l.nextTimer || l.phase != warming && l.phase != measuring {
			l.timers()
		}
		if l.phase == measuring {
			l.lookForSilence(reported)
		}
	}
	l.finish()
	l.through = true
	l.endTurn()
}

// handle acts on so many events outside of a turn.
func (l *loop) handle(n int) {
	for i := range max(0, n) {
		if slot := l.events[i].Fd; slot != noSlot {
			l.conns[slot].ready(l.events[i].Events)
		}
	}
}

// coresOf are the cores of one of so many loops: each has its own of those that are allowed, so that no two share one while
// another is idle. Where there are as many loops as cores that is one for each; where there are fewer the kernel still chooses,
// since other work may be bound to a core. With too few for that, nil leaves all to the kernel.
//
// They are dealt out in turn: where a core's second hardware thread is numbered half of all higher, as on most machines, a
// loop has both.
func coresOf(allowed []int, loops, number int) []int {
	if loops == 1 || len(allowed) < loops {
		return nil
	}
	var own []int
	for i := number; i < len(allowed); i += loops {
		own = append(own, allowed[i])
	}
	return own
}

// eventsThisTurn is how many events are handled before something else has its turn.
func (l *loop) eventsThisTurn() int {
	switch {
	case l.handshakes > 0:
		return eventsWithHandshakes
	case l.starting.len > 0:
		// As many as connections are opened: those that are open, and ask again at once, must not put off the others.
		return startsPerTurn
	}
	return eventsPerWait
}

// ended tells whether the loop is through: by the clock, by the count, or because it was told to stop.
func (l *loop) ended() bool {
	if l.shared.stop.Load() {
		return true
	}
	if l.phase != measuring {
		return false
	}
	if l.cycle != nil || l.plan.Duration > 0 {
		return l.windowIsOver || l.shared.alone && l.clock >= l.phaseEnd
	}
	return l.outstanding == 0 && l.allowance == 0 && l.shared.quota.Load() <= 0
}

func (l *loop) setTimer() {
	l.nextTimer = min(l.nextTick, l.nextSample, l.nextSweep, l.nextRetry)
	if l.sweepFrom > 0 {
		l.nextTimer = l.clock
	}
	if l.clock < l.phaseEnd && (l.phase == warming || l.plan.Duration > 0) {
		l.nextTimer = min(l.nextTimer, l.phaseEnd)
	}
	if l.clock < l.steadyFrom {
		l.nextTimer = min(l.nextTimer, l.steadyFrom)
	}
	switch l.phase {
	case solo:
		l.nextTimer = min(l.nextTimer, l.clock+looksAgain)
	case reaching:
		l.nextTimer = min(l.nextTimer, l.shared.reached.due())
	case drained:
		l.nextTimer = min(l.nextTimer, l.shared.drained.due())
	}
}

func (l *loop) timers() {
	if l.current == l.outside && !l.turnIsOver && l.clock >= l.steadyFrom {
		l.setCounting(true)
		if l.number == 0 {
			l.shared.enterCPU()
		}
	}
	switch l.phase {
	case solo:
		l.endSolo()
	case warming:
		switch {
		case l.clock < l.phaseEnd:
		case l.plan.awaitsAll() && l.clock < l.shared.reached.due():
			l.phaseEnd = min(l.clock+looksAgain, l.shared.reached.due())
		case !l.shared.alone:
			l.phase, l.sliceEnd = warmedUp, l.clock
			if l.number == 0 {
				l.shared.probe.to = l.readProbe()
			}
		case l.plan.Requests > 0:
			l.phase = draining
		default:
			l.beginWindow()
		}
	case measuring:
		if l.clock >= l.nextSample && !l.turnIsOver {
			l.sampleThread()
		}
		// The end of the window is the last second's: finish hands that one over.
		if l.clock >= l.nextTick && !l.turnIsOver && (l.plan.Duration == 0 || l.clock < l.phaseEnd) {
			l.handOver()
			origin := l.windowStart + l.shared.away
			l.nextTick = origin + ((l.clock-origin)/second+1)*second
		}
	}
	l.meet()
	if l.sweepFrom > 0 || l.clock >= l.nextSweep {
		l.sweep()
	}
	if l.clock >= l.nextRetry {
		l.endPauses()
	}
	l.setTimer()
}

const (
	// In the open model a loop is awake this long before the next start is due.
	awakeBefore = int64(60 * time.Microsecond)
	// A look for events that took this long did not run for all of it: another thread had its core.
	offCore = int64(50 * time.Microsecond)
)

// wait waits for events, until the next timer at most. In the open model it is exact: there, time is what is measured.
func (l *loop) wait(events []syscall.EpollEvent) int {
	now := l.shared.now()
	wait := min(l.nextTimer-now, longestWait, l.turnEnd()-now)
	mayStart := l.plan.Rate > 0 && l.idle.len > 0 && l.mayStart()
	if l.plan.Spin {
		if mayStart {
			wait = min(wait, l.schedule.nextDue-now)
		}
		return l.spin(events, now, wait)
	}
	if l.plan.Rate > 0 {
		if mayStart {
			due := l.schedule.nextDue - now
			if due <= awakeBefore && due > 0 {
				// A sleeping core takes a while to wake up: the last moment before a start is spent awake.
				return l.spin(events, now, min(wait, due))
			}
			wait = min(wait, due-awakeBefore)
		}
		if wait <= 0 {
			return 0
		}
		return linux.EpollWaitExact(l.epoll, events, wait)
	}
	if !l.shared.alone {
		return linux.EpollWaitExact(l.epoll, events, max(0, wait))
	}
	// Rounded up: a wait of 0 would spin through the last millisecond. Before the window opens it may, once: all are to open it
	// at the same time.
	if l.phase != drained {
		wait += int64(time.Millisecond) - 1
	}
	return linux.EpollWait(l.epoll, events, int(max(0, wait/int64(time.Millisecond))))
}

// spin looks for events until there are some, for `wait` nanoseconds from now at most.
func (l *loop) spin(events []syscall.EpollEvent, now, wait int64) int {
	idle, end := int64(0), now+wait
	defer func() { l.shared.spun.Add(idle) }()
	for {
		n := linux.EpollWait(l.epoll, events, 0)
		if n > 0 || now >= end {
			return n
		}
		looked := l.shared.now()
		if took := looked - now; took < offCore {
			idle += took
		}
		now = looked
	}
}
