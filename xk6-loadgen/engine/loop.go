//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package engine

import (
	"crypto/tls"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
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
	never       = int64(1) << 62
	noSlot      = -1                            // the event of a descriptor that is no connection
	awakeBefore = int64(60 * time.Microsecond)  // At a rate a loop is awake this long before the next request is due.
	spinStep    = int64(100 * time.Microsecond) // a loop publishes its spinning in steps of this, for other loops that read CPU time
	offCore     = int64(50 * time.Microsecond)  // A poll that took this long did not run all the time: another thread had its core
)

// loop is an event loop on a thread of its own. It owns all it touches: only intervals leave it, and its totals at the end.
type loop struct {
	plan                 *plan
	shared               *shared
	number               int
	epoll                int
	events               [eventsPerWait]syscall.EpollEvent
	buffer               [readBufferBytes]byte
	conns                []conn
	open                 int
	lastHead             headCache // lastHead and lastBlock are shared by the connections
	lastBlock            blockCache
	strings              hpackStrings
	out, sealed          []byte      // out is where a session gathers what it sends until its flush; sealed is for its encryption.
	tls                  *tls.Config // tls and keys are nil without TLS; tlsState is the outcome of the first handshake
	keys                 *keyLog
	tlsState             *TLSState
	handshakes           int   // handshakes are under way, or will be once TCP is connected.
	maxConcurrentStreams int64 // the least that the server has allowed; 0: no limit
	late                 int   // late counts connections in a row that were not up when connect returned.
	clock, nextTimer     int64 // clock is the run's clock when it was last read; nextTimer is when timers() has something to do
	nextTick, nextSample int64
	nextTimeoutCheck     int64   // nextTimeoutCheck begins the next pass over the slots
	timeoutCheckFrom     int     // where the present pass goes on; 0: there is none
	backoffs             []*conn // backoffs are slots that wait before they connect again, checked next at nextRetry
	nextRetry            int64
	inbox                *inbox // inbox brings what happens on connections over QUIC; nil without them
	failing              int    // failing counts connections that have failed failuresOfHopeless times in a row. It matters until the first response
	isHopeless           bool   // see giveUpIfHopeless. hasAnswered: there was a response before the counts were reset.
	hasAnswered          bool
	loadBegan            int64
	wire                 Wire // wire is of the connections that have closed; tcpInfo is what the last of them came to
	tcpInfo              unix.TCPInfo
	attempts
	loopTurn
	measurement
}

// newLoop makes a loop with its slots, sessions and buffers. number is its place among the loops of its side, from 0.
func newLoop(p *plan, s *shared, number int) *loop {
	connections := int(share(int64(p.Connections), p.Threads, number))
	l := &loop{plan: p, shared: s, number: number, epoll: -1, conns: make([]conn, connections), nextRetry: never}
	l.attempts = attempts{
		starting: newConnRing(connections), chunk: min(longestChunk, max(1, p.Requests/int64(16*p.Threads))),
		step: number * len(p.order) / p.Threads, // Each loop begins elsewhere in the cycle, so that they are not in step
	}
	if p.Rate > 0 {
		l.idle, l.schedule = newConnRing(connections), newSchedule(p, number)
	}
	l.loopTurn = loopTurn{wakeFD: -1, resume: make(chan struct{}, 1)}
	l.measurement = newMeasurement(l, connections)
	l.growth.next = never
	if p.Protocol == H3 {
		l.inbox = &inbox{now: s.now, wake: l.wake, wakeup: make(chan struct{}, 1), timer: time.NewTimer(0)}
	} else if p.tls != nil {
		l.keys = &keyLog{}
		l.tls = p.tls.Clone()
		l.tls.KeyLogWriter = l.keys
	}
	for i := range l.conns {
		c := &l.conns[i]
		*c = conn{loop: l, slot: int32(i), fd: -1}
		if l.tls != nil {
			c.secure = &secure{conn: c}
		}
		switch {
		case l.inbox != nil:
			s := &h3{streaming: streaming{conn: c}}
			c.session, s.own = s, s
		case p.Protocol.isHTTP2():
			s := &h2{streaming: streaming{conn: c}}
			c.session, s.own = s, s
		default:
			c.session = &http1{conn: c}
		}
	}
	return l
}

// connection is the number of a slot's connection among those of all loops. Low numbers are spread over the loops.
func (l *loop) connection(slot int) int { return slot*l.plan.Threads + l.number }

// start starts the loop on a thread of its own, which ends with the loop, since its network, policy and cores are no other goroutine's. See
// isOfGoroutines for the exception.
func (l *loop) start(entered chan<- error) {
	if l.plan.isOfGoroutines {
		go l.run(entered)
	} else {
		go linux.OnOwnThread(func() { l.run(entered) })
	}
}

// enter moves the loop's thread into its network, and opens what it waits for.
func (l *loop) enter() error {
	err := l.plan.network.enter()
	if err == nil {
		l.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	}
	if err == nil && (!l.shared.alone || l.inbox != nil) {
		if l.wakeFD, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err == nil {
			// Edge-triggered: each write is an event, so that it need not be read.
			linux.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, l.wakeFD, &syscall.EpollEvent{Events: syscall.EPOLLIN | linux.EpollEdge, Fd: noSlot})
		}
	}
	return err
}

// run is the whole life of the loop. It sends an error, or nil, when it is in its network, and waits for its first turn.
func (l *loop) run(entered chan<- error) {
	var err error
	if !l.plan.isOfGoroutines {
		err = l.enter()
		defer linux.Close(l.wakeFD)
		defer linux.Close(l.epoll)
	}
	entered <- err
	if _, begins := <-l.resume; !begins {
		return
	}
	if !l.plan.isOfGoroutines {
		l.claimCores()
	}
	l.joinTurn()
	l.loadBegan = l.clock
	l.nextTimeoutCheck = l.clock + l.timeoutCheckInterval()
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
		case l.clock < l.sliceEnd || !l.turnIsDone():
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
		l.inbox.goroutines.Wait() // They end with their connections
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

// coresOf are the cores of a loop, nil for all. Every loops-th core is dealt to a loop: on most machines the two hardware threads of a core
// are numbered half of all cores apart, so a loop gets both.
func coresOf(allowed []int, loops, number int) (own []int) {
	if loops == 1 || len(allowed) < loops {
		return nil
	}
	for i := number; i < len(allowed); i += loops {
		own = append(own, allowed[i])
	}
	return own
}

// iterate is one pass of the event loop. Responses are handled before requests start, since sending would make them look later.
func (l *loop) iterate() {
	events := l.events[:l.maxEvents()]
	n := l.poll(events)
	if n == 0 && l.starting.len == 0 {
		n = l.wait(events)
	}
	reported := l.shared.now()
	l.clock, l.sawNothing = reported, n == 0
	if l.turnState.isAtEdge() {
		l.advanceTurn(polled)
		before := l.responses + l.failures
		l.handle(n)
		if l.responses+l.failures > before {
			l.setEdge()
		}
	} else {
		l.handle(n)
	}
	if l.plan.Rate > 0 {
		l.startDue()
	}
	if l.starting.len > 0 {
		l.startQueued()
	}
	if l.clock >= l.nextTimer || l.phase != warming && l.phase != measuring {
		l.timers()
	}
	if l.phase == measuring {
		l.trackGap(reported)
	}
}

// poll returns the events that have happened. It does not wait: iterate does, if there are none.
func (l *loop) poll(events []syscall.EpollEvent) int {
	if l.plan.isOfGoroutines {
		return l.inbox.wait(events, 0)
	}
	return linux.EpollWait(l.epoll, events, 0)
}

// wait waits for events until the next timer, request or end of a turn: by the cheapest call that is exact enough.
func (l *loop) wait(events []syscall.EpollEvent) int {
	now := l.shared.now()
	turnEnd := l.sliceEnd
	if l.clock >= turnEnd {
		turnEnd = l.drainEnd()
	}
	wait := min(l.nextTimer-now, longestWait, turnEnd-now)
	due := never
	if l.plan.Rate > 0 && l.idle.len > 0 && l.mayStart() {
		due = l.schedule.nextDue - now
	}
	switch {
	case l.plan.Spin && l.inbox == nil, due <= awakeBefore && due > 0:
		return l.spin(events, now, min(wait, due)) // A sleeping core takes a while to wake up
	case l.plan.Rate > 0:
		if wait = min(wait, due-awakeBefore); wait <= 0 {
			return 0
		}
		return l.waitExactly(events, wait)
	case !l.shared.alone || l.inbox != nil:
		return l.waitExactly(events, max(0, wait))
	}
	// Milliseconds are rounded up, since a wait of 0 would poll through the last one. Only loops that open the window together must not be
	// late.
	if l.phase != drained {
		wait += int64(time.Millisecond) - 1
	}
	return linux.EpollWait(l.epoll, events, int(max(0, wait/int64(time.Millisecond))))
}

// waitExactly waits for at most this many nanoseconds, where epoll_wait's milliseconds would be too late.
func (l *loop) waitExactly(events []syscall.EpollEvent, wait int64) int {
	if l.inbox != nil {
		return l.waitYielding(events, wait)
	}
	return linux.EpollWaitExact(l.epoll, events, wait)
}

// waitYielding waits in a way that the Go scheduler sees, so that other goroutines get the processor meanwhile.
func (l *loop) waitYielding(events []syscall.EpollEvent, wait int64) int {
	if l.plan.isOfGoroutines {
		return l.inbox.wait(events, wait)
	}
	return linux.EpollWaitYielding(l.epoll, events, wait)
}

// spin polls until there are events, for `wait` nanoseconds from now at most. It measures how long it polled in vain.
func (l *loop) spin(events []syscall.EpollEvent, now, wait int64) int {
	idle, end := int64(0), now+wait
	defer func() { l.shared.spun.Add(idle) }()
	for {
		n := linux.EpollWait(l.epoll, events, 0)
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

// wake ends the loop's wait.
func (l *loop) wake() {
	if !l.plan.isOfGoroutines {
		linux.Write(l.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		return
	}
	select {
	case l.inbox.wakeup <- struct{}{}:
	default:
	}
}

// pause sleeps. A loop that is a goroutine lets others have its processor.
func (l *loop) pause(length time.Duration) {
	if l.plan.isOfGoroutines {
		time.Sleep(length)
	} else {
		linux.Sleep(int64(length))
	}
}

// handle passes the events of a poll on to their connections. Those of a batch are fetched into the cache first.
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
			l.ahead += byte(c.responses) + byte(c.session.discardable())
		}
	}
}

// maxEvents bounds an iteration's events, so that the last one is not handled long after it was reported.
func (l *loop) maxEvents() int {
	switch {
	case l.handshakes > 0:
		return eventsWithHandshakes
	case l.starting.len > 0:
		return startsPerIteration
	}
	return eventsPerWait
}

// ended tells whether the loop is through: it was stopped, its window is over, or all of its requests are answered.
func (l *loop) ended() bool {
	if l.shared.stop.Load() {
		return true
	}
	if l.phase != measuring {
		return false
	}
	if l.turnState == over {
		return true
	}
	if l.cycle != nil || l.plan.Duration > 0 {
		return l.shared.alone && l.clock >= l.phaseEnd
	}
	return l.outstanding == 0 && l.allowance == 0 && l.shared.quota.Load() <= 0
}

// setTimer finds when timers has something to do next, so that most iterations compare one number.
func (l *loop) setTimer() {
	l.nextTimer = min(l.nextTimeoutCheck, l.nextRetry)
	if l.turnState.starts() { // They wait for the next turn
		l.nextTimer = min(l.nextTimer, l.nextTick, l.nextSample, l.growth.next)
	}
	if l.timeoutCheckFrom > 0 {
		l.nextTimer = l.clock
	}
	if l.clock < l.phaseEnd && (l.phase == warming || l.plan.Duration > 0) {
		l.nextTimer = min(l.nextTimer, l.phaseEnd)
	}
	switch l.phase {
	case warming:
		if l.stretch.isMarking() {
			l.nextTimer = min(l.nextTimer, l.stretch.nextMark)
		}
	case probing:
		l.nextTimer = min(l.nextTimer, l.clock+recheckEvery)
	case reaching:
		l.nextTimer = min(l.nextTimer, l.shared.reached.due())
	case drained:
		l.nextTimer = min(l.nextTimer, l.shared.drained.due())
	}
}

// timers does what depends on time alone: phases, seconds, time-outs and back-offs. iterate calls it at nextTimer, and always in phases
// that wait for a condition.
func (l *loop) timers() {
	if l.isHopeless && l.responses > 0 {
		l.regainHope()
	}
	l.advancePhase()
	if l.timeoutCheckFrom > 0 || l.clock >= l.nextTimeoutCheck {
		l.checkTimeouts()
	}
	if l.clock >= l.nextRetry {
		l.endBackoffs()
	}
	l.setTimer()
}
