package engine

import (
	"sync/atomic"
	"time"
)

// attempts is a loop's share of the load: which requests it may still start, and on which slots.
type attempts struct {
	step  int  // the loop's place in the order of the plan's requests
	ahead byte // a sum of bytes read ahead: without a use of them the compiler would leave the reads out
	// allowance is how many of a number of requests the loop may still take: the rest of the chunk that it drew last from the quota, of its
	// connections' shares, or of its own share at a rate. outstanding attempts are under way: taken, without a response or an error.
	allowance, chunk int64
	outstanding      int64
	// starting slots start an attempt after the events of this iteration: within an event they could nest without end.
	starting  connRing
	idle      connRing // idle slots could start an attempt as soon as one is due at a rate, since idleSince
	idleSince int64
	schedule  schedule
}

// share is the size of a part, from 0 on, if whole things are divided evenly: the first parts get one more each.
func share(of int64, parts, part int) int64 {
	return (of + int64(parts-1-part)) / int64(parts)
}

// startAll queues every slot, at the begin of the warm-up, of the window and of each turn. A busy slot then does nothing.
func (l *loop) startAll() {
	for i := range l.conns {
		l.enqueue(&l.conns[i])
	}
}

// enqueue has a slot start an attempt, or open its connection, after this iteration's events. A slot is queued once at most.
func (l *loop) enqueue(c *conn) {
	if !c.queued {
		c.queued = true
		l.starting.push(c)
	}
}

// startQueued lets the first queued slots start, and all that need a TLS connection, which is little work.
func (l *loop) startQueued() {
	left := startsPerIteration
	if l.clock < l.began+l.spread {
		// One after the other, so that responses come steadily.
		left = min(left, 1+int(int64(len(l.conns))*(l.clock-l.began)/l.spread)-l.started)
	}
	for range l.starting.len {
		if left <= 0 {
			return
		}
		c := l.starting.pop()
		c.queued = false
		l.started++
		if l.tls == nil || c.state != closed {
			left--
		}
		l.clock = l.shared.now()
		c.start()
	}
	if l.recordFrom == never {
		l.recordFrom = l.clock
	}
}

// startDue is called in every iteration at a rate. It hands what is due to idle slots; one with several streams takes several.
func (l *loop) startDue() {
	for l.idle.len > 0 && l.schedule.nextDue <= l.clock && l.mayStart() {
		l.noteStandstill()
		c := l.idle.pop()
		c.idle = false
		l.clock = l.shared.now()
		c.start()
	}
}

// mayStart tells whether a request of the rate that is due now may leave: the turn goes on, and the phase or the loop's share of a count is
// not over.
func (l *loop) mayStart() bool {
	if !l.turnState.starts() {
		return false
	}
	if l.plan.Requests == 0 || l.phase == warming {
		return l.schedule.nextDue < l.phaseEnd
	}
	return l.phase == measuring && l.allowance > 0
}

// take allows the slot to start an attempt, due now or by a rate's schedule. A slot that asks too early becomes idle.
func (l *loop) take(c *conn) (a attempt, taken bool) {
	due := l.clock
	if !l.turnState.starts() || l.phase == probing && l.outstanding > 0 {
		return a, false
	}
	if l.plan.Rate > 0 && l.plan.KeepAlive && l.phase <= warming && !c.openedAhead {
		c.openedAhead = true // A first request before the window, so that none in it waits for a connect
		l.outstanding++
		return l.attempt(due), true
	}
	if l.plan.Rate > 0 {
		if due = l.schedule.nextDue; due > l.clock || !l.mayStart() {
			if !c.idle {
				if c.idle = true; l.idle.len == 0 {
					l.idleSince = l.clock
				}
				l.idle.push(c)
			}
			return a, false
		}
	}
	if l.plan.Requests > 0 && l.phase > warming && due >= l.dueFrom && !l.takeCounted(c) {
		return a, false
	}
	l.schedule.take()
	l.outstanding++
	if l.plan.Rate > 0 && l.allowance == 0 && l.plan.Requests > 0 && l.phase == measuring && !l.shared.alone {
		end := l.schedule.nextDue
		if l.plan.listed != nil {
			end = max(end, l.clock)
		}
		l.endTurnBy(end)
	}
	a = l.attempt(due)
	a.isOfRamp = due < l.dueFrom
	return a, true
}

// attempt makes an attempt at the next request of the mix. Its mix entry is chosen when it is taken, not when it is sent.
func (l *loop) attempt(due int64) attempt {
	r := l.nextRequest()
	return attempt{begun: l.clock, due: due, request: r, expected: r.expected}
}

// takeCounted takes one of a number of requests: from the connection's share, from the loop's share of a rate, or from a chunk of the
// shared quota. It returns false when none is left.
func (l *loop) takeCounted(c *conn) bool {
	if l.phase != measuring {
		return false
	}
	if l.plan.divided {
		if c.left == 0 {
			return false
		}
		c.left--
		if c.firstAt == 0 {
			c.firstAt = l.clock - l.shared.away
		}
	} else if l.allowance == 0 {
		if l.allowance = l.shared.takeQuota(l.chunk); l.allowance == 0 {
			return false
		}
	}
	l.allowance--
	return true
}

// startOfLatency is when the latency of an attempt that is sent now begins. HTTP/1, 2 and 3 all call it right before they send.
func (l *loop) startOfLatency(begun, due int64) int64 {
	switch {
	case l.plan.Rate > 0:
		return due
	case !l.plan.KeepAlive:
		return begun // The latency of a request with a connection of its own includes the connect, as in ab
	}
	return l.clock
}

// noteSent records how late a request of a rate left. It is called when the kernel, or QUIC, has taken the request.
func (l *loop) noteSent(due int64) {
	if l.sendDelays != nil && due >= l.dueFrom {
		l.sendDelays.record(l.clock - due)
	}
}

// noLatency marks a response that is not the last one of its page (Options.Together).
const noLatency = -1

// response ends an attempt by the loop's clock. The load's latency runs from `from` (noLatency: it has none), its page's from a.start.
func (l *loop) response(a *attempt, from int64, status int, headerBytes, decodedBytes, bodyBytes int64) {
	l.outstanding--
	l.responses++
	l.lastEnd = l.clock
	i := l.countOf(a)
	i.Requests++
	i.Responses[status/100-2]++ // Parsers let only 200 to 599 through
	if status >= 300 {
		i.Statuses[status-300]++
	}
	i.HeaderBytes += headerBytes
	i.HeadersDecodedBytes += decodedBytes
	i.BodyBytes += bodyBytes
	isUnexpected := status != int(a.expected.status) && (a.expected.status != 0 || status >= 400)
	if isUnexpected {
		i.Unexpected++
	}
	if l.pages != nil && i != l.outside {
		class := notRecorded
		if l.records(a.start) {
			class = pageClass(l.clock - a.start)
		}
		l.pages.note(pageResponse{bodyBytes, a.expected.page, class, isUnexpected})
	}
	if a.start < l.began {
		l.older--
	}
	if from == noLatency || a.isOfRamp || !l.records(from) {
		return
	}
	// A latency counts by its request's start, so that a turn's last requests, which end after the window, are not left out.
	l.recordsTo().latency.record(l.clock - from)
	if len(l.plan.Buckets) > 0 {
		l.bucketCounts[bucketOf(l.plan.Buckets, l.clock-from)]++
	}
}

// records tells whether latencies from this start on count: of requests of earlier turns, or from this turn's window.
func (l *loop) records(start int64) bool { return start < l.began || start >= l.recordFrom }

// recordsTo is the interval that takes latencies. It may differ from current: in a drain responses count outside, but their latencies
// belong to the window in which they started.
func (l *loop) recordsTo() *interval {
	if l.cycle != nil {
		return &l.cycle.interval
	}
	return l.interval
}

// countOf is where an attempt that ended now counts.
func (l *loop) countOf(a *attempt) *interval {
	if a.isOfRamp {
		return l.outside
	}
	return l.current
}

// failure ends an attempt without a response, by the loop's clock. It keeps example as the report's text if it is the loop's first.
func (l *loop) failure(c *conn, kind ErrorKind, cause ErrorCause, example string, a *attempt) {
	i := l.countOf(a)
	if cause == CauseTimedOut && i != l.outside {
		l.noteWait(l.clock-a.due, 1)
	}
	if a.due < l.began {
		l.older--
	}
	if l.pages != nil && i != l.outside {
		l.pages.pages[a.expected.page].errors++
	}
	c.noteReached()
	l.outstanding--
	l.failures++
	l.lastEnd = l.clock
	i.Requests++
	i.Errors[kind]++
	i.Causes[cause]++
	if l.example == "" {
		l.example = example
	}
}

// noteWait records waits without a response at a rate. Without these, a server that answers fewer requests would have shorter latencies.
func (l *loop) noteWait(nanoseconds, count int64) {
	if l.waits != nil {
		l.waits.recordMany(nanoseconds, count)
	}
}

// sharedGap is the longest time within the window with requests under way and no response, on any loop. An error ends no gap.
type sharedGap struct {
	_             [64]byte     // Cache lines of its own: every iteration reads what stands around it.
	responded     atomic.Int64 // when a loop last had a response, as far as published
	loopsUnderWay atomic.Int32 // loopsUnderWay have requests under way, without a pause since underWaySince
	underWaySince atomic.Int64
	longest       atomic.Int64
	_             [64]byte
}

// publishEvery bounds how often a loop writes to the shared cache line, in nanoseconds. A gap can be too long by this.
const publishEvery = int64(100_000)

// loopGap is a loop's part in the longest gap. Times are nanoseconds of the run's clock.
type loopGap struct {
	// The last response was in the iteration that ended at since; published is when the other loops last learnt of one.
	responses, since, published int64
	underWay                    bool
	longest                     int64
}

// trackGap is called at the end of each iteration in the window. reported is when the poll returned: by then this iteration's responses had
// come.
func (l *loop) trackGap(reported int64) {
	g, s := &l.gap, &l.shared.gap
	responded, underWay := l.responses != g.responses, l.outstanding > 0
	if responded {
		if l.isHopeless {
			l.regainHope()
		}
		l.endGap(reported)
		g.responses, g.since = l.responses, l.clock
		if g.since-g.published >= publishEvery {
			raise(&s.responded, g.since)
			g.published = g.since
		}
	}
	if underWay == g.underWay {
		return
	}
	g.underWay = underWay
	if !underWay {
		l.endGap(l.clock)
		s.loopsUnderWay.Add(-1)
		return
	}
	// Before the loop counts, so that no other loop takes the time before for time under load.
	if s.loopsUnderWay.Load() == 0 {
		s.underWaySince.Store(l.clock)
	}
	s.loopsUnderWay.Add(1)
}

// endGap ends the loop's own gap, and raises the shared maximum if no other loop had a response in it.
func (l *loop) endGap(at int64) {
	g, s := &l.gap, &l.shared.gap
	// The gap of all loops is no longer than this loop's, so most iterations need not look at the others.
	if at-g.since <= g.longest || s.loopsUnderWay.Load() == 0 {
		return
	}
	raise(&s.longest, at-max(g.since, s.responded.Load(), s.underWaySince.Load()))
	g.longest = s.longest.Load()
}

func raise(value *atomic.Int64, to int64) {
	for {
		if old := value.Load(); to <= old || value.CompareAndSwap(old, to) {
			return
		}
	}
}

const (
	// A pass over all slots looks for time-outs, after a hundredth of the time-out within these bounds.
	longestTimeoutCheckInterval, shortestTimeoutCheckInterval = second, int64(5 * time.Millisecond)
	// An iteration checks this many slots: all at once would keep a loop from reading for milliseconds.
	slotsPerTimeoutCheck = 1000
)

// checkTimeouts goes on with a pass over the slots, or begins one. Requests set no timers: passes find those that are too old.
func (l *loop) checkTimeouts() {
	if l.timeoutCheckFrom == 0 {
		l.nextTimeoutCheck = l.clock + l.timeoutCheckInterval()
	}
	end := min(l.timeoutCheckFrom+slotsPerTimeoutCheck, len(l.conns))
	for i := l.timeoutCheckFrom; i < end; i++ {
		l.conns[i].checkTimeouts()
	}
	if l.timeoutCheckFrom = end; end == len(l.conns) {
		l.timeoutCheckFrom = 0
	}
}

// timeoutCheckInterval is the time from pass to pass, and so the most by which a time-out is noticed late.
func (l *loop) timeoutCheckInterval() int64 {
	return min(longestTimeoutCheckInterval, max(shortestTimeoutCheckInterval, int64(l.plan.Timeout)/100))
}

// checkTimeoutsBy brings the next pass forward for a limit that is shorter than the time-out, such as lingerLimit.
func (l *loop) checkTimeoutsBy(at int64) {
	if at = max(at, l.clock+shortestTimeoutCheckInterval); at < l.nextTimeoutCheck {
		l.nextTimeoutCheck = at
		l.setTimer()
	}
}

// connRing is a FIFO of slots that allocates nothing: it has a place for every slot, and a slot is in it once at most.
type connRing struct {
	slots     []*conn
	head, len int
}

func newConnRing(capacity int) connRing { return connRing{slots: make([]*conn, capacity)} }

func (r *connRing) push(c *conn) {
	r.slots[(r.head+r.len)%len(r.slots)] = c
	r.len++
}

func (r *connRing) pop() *conn {
	c := r.slots[r.head]
	r.head = (r.head + 1) % len(r.slots)
	r.len--
	return c
}
