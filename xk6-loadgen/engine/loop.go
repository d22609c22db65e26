//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package engine

import (
	"cmp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h1"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h2"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/schedule"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

const (
	readBufferBytes = 64 << 10 // A read takes a server's burst; the rest follows in later iterations
	eventsPerWait   = 512      // further events wait for the next poll, after what is due has left
	// A TLS handshake takes up to a millisecond: more of them per iteration would delay a stop, or the window's end.
	eventsWithHandshakes = 16
	// Loops draw attempts from the shared quota in chunks of at most this, so that they rarely touch the same cache line.
	longestChunk = 32
	// startsPerIteration keeps a loop reading while it opens connections: responses that wait to be read would look late.
	startsPerIteration = 64
	longestWait        = int64(20 * time.Millisecond) // The longest wait bounds how late a stop is noticed
	second             = int64(time.Second)
	cacheLinesBytes    = 128 // two lines of 64 bytes: processors fetch them in pairs
	// firstNice puts a loop at a rate before everything else on its core: k6's other threads, the database, the runner.
	firstNice   = -15
	never       = schedule.Never
	noSlot      = -1                            // the event of a descriptor that is no connection
	awakeBefore = int64(60 * time.Microsecond)  // At a rate a loop is awake this long before the next request is due.
	spinStep    = int64(100 * time.Microsecond) // a loop publishes its spinning in steps of this, for other loops that read CPU time
	offCore     = int64(50 * time.Microsecond)  // A poll that took this long did not run all the time: another thread had its core
)

// loop is an event loop on a thread of its own. It coordinates its parts, each of which has one job: see the package comment.
type loop struct {
	plan             *plan
	shared           *shared
	number           int
	clock, nextTimer int64 // clock is the run's clock when it was last read; nextTimer is when timers() has something to do

	conns       []conn
	open        int    // open connections, or those being opened
	late        int    // late counts connections in a row that were not up when connect returned.
	streamLimit int64  // the least that the server has allowed; 0: no limit
	fetched     byte   // a sum of bytes of connections read ahead, see mixPlace.read
	poller      poller // poller is epoll or a bell.
	spins       bool   // an idle loop polls
	isExact     bool   // A wait must not be a millisecond too long.
	epoll       epoll
	inbox       *h3.Inbox[h3Attempt] // inbox brings what happens on connections over QUIC; nil without them
	events      [eventsPerWait]syscall.EpollEvent
	buffers     buffers
	head        h1.HeadCache // head has the last HTTP/1 response's headers. Connections share it, since a server's headers are alike.
	h2          h2.Shared    // h2 has the same of HTTP/2, and in Out what a session of any protocol gathers to send.
	tls         loopTLS
	receipts    receipts
	timeouts    timeouts
	backoffs    backoffs
	hope        hope
	wire        wireCount

	starts   starts
	mix      mixPlace
	share    loopShare
	model    model
	turn     loopTurn
	coreWait *linux.ThreadWait // nothing is known of a goroutine without a thread

	window  window
	outcome loopOutcome
	reach   reach
	counts  loopCounts
	// firstBodies are the loop's copies of those of shared.
	firstBodies [statusClasses]int64
	tally       tally
	cycle       *cycle // nil except at a rate in turns
	warmup      loopWarmup
	growth      queueGrowth
	gap         loopGap
	samples     samples
}

// buffers are a loop's memory for bytes that come and go, which its connections share.
type buffers struct {
	read   [readBufferBytes]byte
	sealed []byte // sealed is for the encryption of what a session sends.
}

// newLoop makes a loop with its slots, sessions and buffers. number is its place among the loops of its side, from 0.
func newLoop(p *plan, s *shared, number int) *loop {
	connections := int(share(int64(p.Connections), p.Threads, number))
	l := &loop{
		plan: p, shared: s, number: number, conns: make([]conn, connections),
		backoffs: backoffs{next: never}, timeouts: timeoutsAfter(p.Timeout), turn: loopTurn{resume: make(chan struct{}, 1)},
		starts: starts{ring: newConnRing(connections)}, share: loopShare{chunk: min(longestChunk, max(1, p.Requests/int64(16*p.Threads)))},
		// Each loop begins elsewhere in the cycle, so that they are not in step
		mix:   mixPlace{requests: p.requests, order: p.order, step: number * len(p.order) / p.Threads},
		reach: newReach(connections, p.patience), coreWait: &linux.ThreadWait{}, hope: hope{after: cmp.Or(p.patience, hopelessAfter)}, tally: newTally(p), growth: queueGrowth{next: never}, gap: loopGap{shared: &s.gap},
	}
	l.model, l.counts = newModel(l, connections), newLoopCounts(l)
	l.epoll = epoll{fd: -1, wakeFD: -1, isWoken: !s.alone || p.Protocol == H3, yields: p.Protocol == H3}
	l.poller, l.spins = &l.epoll, p.Spin && p.Protocol != H3
	l.isExact = p.Rate > 0 || l.epoll.isWoken
	if p.isOfGoroutines {
		l.poller = newBell()
	}
	if p.Protocol == H3 {
		l.inbox = newInbox(p, s.now, l.poller.wake)
	} else if p.tls != nil {
		l.tls.shared = tlsconn.NewShared(p.tls, p.Protocol == H2, p.TLS.Resume)
	}
	for i := range l.conns {
		c := &l.conns[i]
		*c = conn{loop: l, slot: int32(i), fd: -1}
		if l.tls.shared != nil {
			c.secure = &tlsconn.Conn{Out: &c.backlog}
		}
		switch {
		case l.inbox != nil:
			s := &h3Session{streaming: streaming{conn: c}, peer: &h3.Conn[h3Attempt]{}}
			c.session, s.own = s, s
		case p.Protocol.isHTTP2():
			s := &h2Session{streaming: streaming{conn: c}}
			c.session, s.own = s, s
		default:
			c.session = &http1{conn: c}
		}
	}
	return l
}

// connection is the number of a slot's connection among those of all loops. Low numbers are spread over the loops.
func (l *loop) connection(slot int) int { return slot*l.plan.Threads + l.number }

// start starts the loop on a thread that ends with it, since its network, policy and cores are no other goroutine's; see isOfGoroutines.
func (l *loop) start(entered chan<- error) {
	if l.plan.isOfGoroutines {
		go l.run(entered)
	} else {
		go linux.OnOwnThread(func() { l.run(entered) })
	}
}

// enter moves the loop's thread into its network, and opens what it waits for. A goroutine has no thread: dial enters the network.
func (l *loop) enter() error {
	if !l.plan.isOfGoroutines {
		if err := l.plan.network.enter(); err != nil {
			return err
		}
	}
	return l.poller.open()
}

// run is the whole life of the loop. It sends an error, or nil, when it is in its network, and waits for its first turn.
func (l *loop) run(entered chan<- error) {
	err := l.enter()
	defer l.poller.close()
	entered <- err
	if _, begins := <-l.turn.resume; !begins {
		return
	}
	if !l.plan.isOfGoroutines {
		l.claimCores()
		l.coreWait = linux.NewThreadWait("/proc/thread-self")
	}
	l.joinTurn()
	l.hope.began = l.clock
	l.timeouts.next = l.clock + l.timeouts.interval
	if l.plan.Warmup > 0 {
		l.begin()
	} else {
		l.beginWindow()
	}
	l.endSliceEarly()
	l.watchTurnsQueue()
	l.setTimer()
	for !l.ended() {
		switch {
		case l.clock < l.turn.sliceEnd || !l.turnIsDone():
			l.iterate()
		case l.wasLastTurn():
			l.iterate() // What has come meanwhile
			l.advanceTurn(loopDone)
		default:
			l.nextTurn()
		}
	}
	l.finish()
	if l.inbox != nil {
		l.inbox.Goroutines.Wait() // They end with their connections
	}
	l.advanceTurn(loopDone)
	l.endTurn()
}

// claimCores sets the thread's scheduling. Where the kernel refuses, the load is the same and costs more CPU time.
func (l *loop) claimCores() {
	linux.SetTimerSlack()
	if l.plan.Rate == 0 && !l.shared.hasOwnCores {
		linux.SetPolicy(0, unix.SCHED_BATCH)
	} else {
		linux.SetShortSlice() // k6's other threads would delay a response by up to 4 ms
	}
	if l.plan.Rate > 0 {
		// Requests that are due must not wait for other threads of this core.
		syscall.Setpriority(syscall.PRIO_PROCESS, 0, firstNice) //nolint:errcheck // needs root or CAP_SYS_NICE
	}
	linux.UseCores(coresOf(linux.Cores(), l.plan.Threads, l.number)) //nolint:errcheck // see above
}

// coresOf deals a loop every loops-th core, nil for all. Mostly a core's two threads are numbered half of all apart, so a loop has both.
func coresOf(allowed []int, loops, number int) (cores []int) {
	if loops == 1 || len(allowed) < loops {
		return nil
	}
	for i := number; i < len(allowed); i += loops {
		cores = append(cores, allowed[i])
	}
	return cores
}

// iterate is one pass of the event loop. Responses are handled before requests start, since sending would make them look later.
func (l *loop) iterate() {
	events := l.events[:l.maxEvents()]
	n := l.poller.poll(events)
	if n == 0 && l.starts.untilNext(l.clock-l.turn.began, len(l.conns)) > 0 {
		n = l.wait(events)
	}
	reported := l.shared.now()
	l.clock, l.turn.sawNothing = reported, n == 0
	if l.turn.state.isAtEdge() {
		l.advanceTurn(polled)
		before := l.counts.responses + l.counts.failures
		l.handle(n)
		if l.counts.responses+l.counts.failures > before {
			l.setEdge()
		}
	} else {
		l.handle(n)
	}
	l.model.startDue()
	if l.starts.ring.len > 0 {
		l.startQueued()
	}
	if l.clock >= l.nextTimer || l.window.phase != warming && l.window.phase != measuring {
		l.timers()
	}
	if l.window.phase == measuring {
		l.trackGap(reported)
	}
}

// wait waits for events until the next timer, request or end of a turn: by the cheapest call that is exact enough.
func (l *loop) wait(events []syscall.EpollEvent) int {
	now := l.shared.now()
	turnEnd := l.turn.sliceEnd
	if l.clock >= turnEnd {
		turnEnd = l.drainEnd()
	}
	wait := min(l.nextTimer-now, longestWait, turnEnd-now, l.starts.untilNext(now-l.turn.began, len(l.conns)))
	due := l.model.untilDue(now)
	switch {
	case l.spins, due <= awakeBefore && due > 0:
		return l.spin(events, now, min(wait, due)) // A sleeping core takes a while to wake up
	case l.isExact:
		if wait = min(wait, due-awakeBefore); wait <= 0 {
			return 0
		}
		return l.poller.wait(events, wait)
	}
	// Rounded up, since a wait of 0 would poll through the last millisecond. Only loops that open the window together must not be late.
	if l.window.phase != drained {
		wait += int64(time.Millisecond) - 1
	}
	return linux.EpollWait(l.epoll.fd, events, int(max(0, wait/int64(time.Millisecond))))
}

// spin polls until there are events, for `wait` nanoseconds from now at most. It measures how long it polled in vain.
func (l *loop) spin(events []syscall.EpollEvent, now, wait int64) int {
	idle, end := int64(0), now+wait
	defer func() { l.shared.spun.Add(idle) }()
	for {
		n := linux.EpollWait(l.epoll.fd, events, 0)
		if n > 0 || now >= end {
			return n
		}
		polled := l.shared.now()
		if took := polled - now; took < offCore {
			idle += took
		}
		if idle > spinStep {
			l.shared.spun.Add(idle)
			idle = 0
		}
		now = polled
	}
}

// handle passes the events of a poll on to their connections. It first fetches the connections of a batch into the cache.
func (l *loop) handle(n int) {
	for i := range n {
		if i%readAhead == 0 {
			l.readConns(l.events[i:min(i+readAhead, n)])
		}
		if slot := l.events[i].Fd; slot != noSlot {
			l.conns[slot].ready(l.events[i].Events)
		} else if l.inbox != nil {
			l.readInbox()
		}
	}
}

// readConns reads something of the connections of the next events, so that the processor fetches them all at the same time.
func (l *loop) readConns(events []syscall.EpollEvent) {
	for _, e := range events {
		if e.Fd != noSlot {
			c := &l.conns[e.Fd]
			l.fetched += byte(c.responses) + byte(c.session.discardable())
		}
	}
}

// trackGap is called at the end of each iteration in the window. reported is when the poll returned.
func (l *loop) trackGap(reported int64) {
	if l.counts.responses != l.gap.responses {
		if l.hope.isLost {
			l.regainHope()
		}
		l.gap.responded(l.counts.responses, reported, l.clock)
	}
	if underWay := l.counts.outstanding > 0; underWay != l.gap.underWay {
		l.gap.setUnderWay(underWay, l.clock)
	}
}

// maxEvents bounds an iteration's events, so that the last one is not handled long after it was reported.
func (l *loop) maxEvents() int {
	switch {
	case l.tls.handshakes > 0:
		return eventsWithHandshakes
	case l.starts.ring.len > 0:
		return startsPerIteration
	}
	return eventsPerWait
}

// setTimer finds when timers has something to do next, so that most iterations compare one number.
func (l *loop) setTimer() {
	l.nextTimer = min(l.timeouts.due(l.clock), l.backoffs.next)
	if l.turn.state.starts() { // They wait for the next turn
		l.nextTimer = min(l.nextTimer, l.window.nextTick, l.samples.next, l.growth.next)
	}
	if l.clock < l.window.phaseEnd && (l.window.phase == warming || l.plan.Duration > 0 || l.plan.Rate > 0) {
		l.nextTimer = min(l.nextTimer, l.window.phaseEnd)
	}
	switch l.window.phase {
	case warming:
		if l.warmup.stretch.isMarking() {
			l.nextTimer = min(l.nextTimer, l.warmup.stretch.nextMark)
		}
	case probing:
		l.nextTimer = min(l.nextTimer, l.clock+recheckEvery)
	case reaching:
		l.nextTimer = min(l.nextTimer, l.shared.opening.reached.due())
	case drained:
		l.nextTimer = min(l.nextTimer, l.shared.opening.drained.due())
	}
}

// timers does what depends on time alone. iterate calls it at nextTimer, and always in phases that wait for a condition.
func (l *loop) timers() {
	if l.hope.isLost && l.counts.responses > 0 {
		l.regainHope()
	}
	l.advancePhase()
	if l.clock >= l.timeouts.due(l.clock) {
		l.checkTimeouts()
	}
	if l.clock >= l.backoffs.next {
		l.backoffs.end(l.clock, l.starts.push)
	}
	l.setTimer()
}
