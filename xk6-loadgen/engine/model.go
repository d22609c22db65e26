package engine

import "bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/schedule"

// model says what starts a request: the end of the one before it, or its own time. A loop has one, so that a request does not ask which.
type model interface {
	// take allows a slot to start an attempt, while requests may start at all: see turnState.starts.
	take(c *conn) (a attempt, taken bool)
	latencyFrom(begun, due int64) int64 // when the latency of an attempt that is sent now begins
	noteSent(due int64)                 // the kernel, or QUIC, has taken the attempt that was due then
	startDue()                          // startDue starts what is due, in every iteration.
	untilDue(now int64) int64           // how long until it has something to start; never: only an event starts requests

	begin(at int64)            // begin starts the warm-up's times.
	beginWindow(origin int64)  // beginWindow deals out a number of requests, and starts the window's times.
	beginTurn()                // beginTurn follows each begin of a turn.
	shift(by int64)            // shift leaves out time that was not under load.
	queued(at int64) int64     // the queue, in requests: those that are due and have no answer
	standstill() int64         // the loop's longest one of the turn, in nanoseconds
	missed(before int64) int64 // missed ends the window: it records requests that were due before this time and did not leave, and counts them.
}

func newModel(l *loop, slots int) model {
	p := l.plan
	if p.Rate == 0 {
		return &closedModel{l}
	}
	part := schedule.Part{Segment: p.Segment, Loop: int64(l.number), Loops: int64(p.Threads)}
	m := &openModel{loop: l, idle: newConnRing(slots), due: never}
	if p.Arrivals == PoissonArrivals {
		m.schedule = schedule.Poisson(part, p.Rate, p.seed)
	} else {
		m.schedule = schedule.Even(part, p.Rate)
	}
	return m
}

// closedModel starts an attempt when the one before it has ended on its connection. Nothing is due at a time.
type closedModel struct{ loop *loop }

// take allows an attempt at once, as long as a count has one left. While the warm-up probes there is one at a time.
func (m *closedModel) take(c *conn) (a attempt, taken bool) {
	l := m.loop
	switch phase := l.window.phase; {
	case !l.turn.state.starts(), phase == probing && l.counts.outstanding > 0:
		return a, false
	case l.plan.Requests > 0 && phase > warming && (phase != measuring || !m.takeCounted(c)):
		return a, false
	}
	return l.begins(l.mix.next(), l.clock), true
}

// takeCounted takes one of a number of requests: of the connection's share, or of the shared quota. It returns false when none is left.
func (m *closedModel) takeCounted(c *conn) bool {
	l := m.loop
	if !l.plan.divided {
		return l.share.take(l.shared)
	}
	if c.left == 0 {
		return false
	}
	c.left--
	l.share.left--
	if c.firstAt == 0 {
		c.firstAt = l.clock - l.shared.turn.away
	}
	return true
}

// latencyFrom is the connect's begin for a request with a connection of its own, as in ab.
func (m *closedModel) latencyFrom(begun, _ int64) int64 {
	if !m.loop.plan.KeepAlive {
		return begun
	}
	return m.loop.clock
}

// beginWindow deals the requests out to kept connections. Others draw theirs from the shared quota.
func (m *closedModel) beginWindow(int64) {
	l := m.loop
	if !l.plan.divided {
		return
	}
	for i := range l.conns {
		c := &l.conns[i]
		c.left = share(l.plan.Requests, l.plan.Connections, l.connection(i))
		l.share.left += c.left
	}
}

// The other methods concern requests that are due at a time; these have none.
func (*closedModel) untilDue(int64) int64 { return never }
func (*closedModel) noteSent(int64)       {}
func (*closedModel) startDue()            {}
func (*closedModel) begin(int64)          {}
func (*closedModel) beginTurn()           {}
func (*closedModel) shift(int64)          {}
func (*closedModel) queued(int64) int64   { return 0 }
func (*closedModel) standstill() int64    { return 0 }
func (*closedModel) missed(int64) int64   { return 0 }

// openModel starts requests at the times of a rate, whatever became of those before.
type openModel struct {
	loop      *loop
	schedule  schedule.Schedule
	due       int64    // due is when the next request is due.
	idle      connRing // idle slots could start an attempt as soon as one is due, since idleSince.
	idleSince int64
	stalled   int64 // see standstill
	givenUp   int64 // givenUp are requests of a count that could not leave in time.
	overdue   int64 // overdue is how long the window was over by then, in nanoseconds.
}

// take allows the request that is due. A slot that asks too early becomes idle.
func (m *openModel) take(c *conn) (a attempt, taken bool) {
	l := m.loop
	phase := l.window.phase
	if !l.turn.state.starts() {
		return a, false
	}
	if l.plan.KeepAlive && phase <= warming && !c.openedAhead {
		c.openedAhead = true // A first request before the window, so that none in it waits for a connect
		return l.begins(l.mix.next(), l.clock), true
	}
	if m.isFarBehind() {
		_, m.due = m.schedule.Missed(l.turn.dueFrom, never, func(int64, int64) {})
	}
	due := m.due
	if due > l.clock || !m.mayStart() {
		m.idles(c)
		return a, false
	}
	if phase == measuring && due >= l.turn.dueFrom && l.plan.Requests > 0 {
		l.share.left--
	}
	m.due = m.schedule.Next()
	if phase == measuring && l.share.left == 0 && l.plan.Requests > 0 {
		m.endCount(due)
	}
	a = l.begins(l.mix.next(), due)
	a.isOfRamp = due < l.turn.dueFrom
	return a, true
}

// isFarBehind tells whether a turn's ramp is over, and less than half of what was due in it has left. Its requests, which do not count, would
// then take all of the turn's time; they are left out. So is what an earlier turn could not send.
func (m *openModel) isFarBehind() bool {
	l := m.loop
	if l.window.phase != measuring || l.shared.alone || l.clock < l.turn.dueFrom {
		return false
	}
	return l.turn.dueFrom-m.due > max(l.shared.turn.ramp/2, int64(rateSlice))
}

// mayStart tells whether a request that is due now may leave: the turn goes on, and the phase or the loop's share of a count is not over.
func (m *openModel) mayStart() bool {
	l := m.loop
	if !l.turn.state.starts() {
		return false
	}
	if l.plan.Requests == 0 || l.window.phase == warming {
		return m.due < l.window.phaseEnd
	}
	if l.window.phase != measuring || l.share.left == 0 {
		return false
	}
	if l.clock > l.window.phaseEnd+l.plan.overtime() {
		m.giveUp()
		return false
	}
	return true
}

// giveUp ends a count whose time is long over.
func (m *openModel) giveUp() {
	l := m.loop
	m.givenUp, l.share.left = m.givenUp+l.share.left, 0
	m.overdue = l.clock - l.window.phaseEnd
	if !l.shared.alone {
		l.turn.endBy(l.clock)
	}
}

func (m *openModel) idles(c *conn) {
	if c.idle {
		return
	}
	c.idle = true
	if m.idle.len == 0 {
		m.idleSince = m.loop.clock
	}
	m.idle.push(c)
}

// endCount ends the turn that has made the last request of a count, which was due then. Alone, the window of random times ends a mean
// interval after the last one.
func (m *openModel) endCount(due int64) {
	l := m.loop
	switch {
	case !l.shared.alone:
		l.turn.endBy(m.due)
	case l.plan.Arrivals == PoissonArrivals:
		l.window.phaseEnd = due + int64(float64(second)/l.plan.Rate)
	}
}

// latencyFrom is when the request was due, so that its wait for a connection is a part.
func (m *openModel) latencyFrom(_, due int64) int64 { return due }

func (m *openModel) noteSent(due int64) {
	if l := m.loop; due >= l.turn.dueFrom {
		l.tally.sendDelays.record(l.clock - due)
	}
}

// startDue hands what is due to idle slots; one with several streams takes several.
func (m *openModel) startDue() {
	for m.idle.len > 0 && m.due <= m.loop.clock && m.mayStart() {
		m.noteStandstill()
		c := m.idle.pop()
		c.idle = false
		m.loop.clock = m.loop.shared.now()
		c.start()
	}
}

// untilDue looks only at idle slots: a busy one asks when its response is there.
func (m *openModel) untilDue(now int64) int64 {
	if m.idle.len == 0 || !m.mayStart() {
		return never
	}
	return m.due - now
}

func (m *openModel) begin(at int64) { m.due = m.schedule.Begin(at) }

// beginWindow gives the loop its share of a count: another loop could not send in time what this one misses.
func (m *openModel) beginWindow(origin int64) {
	l := m.loop
	l.share.left = share(l.plan.Requests, l.plan.Threads, l.number)
	m.begin(origin - l.shared.turn.ramp)
}

func (m *openModel) beginTurn() { m.stalled = 0 }

// shift moves the times by that of the others' turns. The requests that are due in a ramp are made, and do not count.
func (m *openModel) shift(by int64) {
	m.due += by
	m.schedule.Shift(by)
}

// queued leaves out a request that is due while a connection is free: it waits for the generator.
func (m *openModel) queued(at int64) int64 {
	l := m.loop
	waiting := int64(0)
	if m.idle.len == 0 && m.due < at {
		waiting = int64(float64(at-m.due) * l.plan.Rate / float64(l.plan.Threads) / 1e9)
	}
	return l.counts.outstanding + waiting
}

// noteStandstill notes for how long a request that starts and an idle slot have both been there: the generator's own delay.
func (m *openModel) noteStandstill() {
	m.stalled = max(m.stalled, m.loop.clock-max(m.due, m.idleSince))
}

func (m *openModel) standstill() int64 { return m.stalled }

// missed finds none of a count, all of which were made, unless the load was stopped or the rest was given up.
func (m *openModel) missed(before int64) (n int64) {
	l := m.loop
	if m.givenUp > 0 {
		n = m.givenUp + l.share.left
		l.noteWait(m.overdue, n) // At least: all were due in the window
		return n
	}
	most := never
	switch stopped := l.shared.stop.Load(); {
	case l.plan.Requests > 0 && !stopped:
		most, before = l.share.left, 0 // All requests were made
	case l.plan.Requests > 0:
		most = l.share.left
	}
	n, m.due = m.schedule.Missed(before, most, func(due, count int64) { l.noteWait(l.clock-due, count) })
	return n
}
