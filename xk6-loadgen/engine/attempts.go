package engine

// share returns the size of a part, numbered from 0, of things that are divided evenly. The first parts get one more each.
func share(of int64, parts, part int) int64 {
	return (of + int64(parts-1-part)) / int64(parts)
}

// loopShare is a loop's part of a number of requests.
type loopShare struct {
	left  int64 // left are those that it may still take: of its connections' shares, of its own share at a rate, or of its last draw.
	chunk int64 // chunk is how many it draws from the shared quota at a time.
}

// take takes one of the shared quota's, of which the loop draws chunks. It returns false when none is left.
func (s *loopShare) take(from *shared) bool {
	if s.left == 0 {
		if s.left = from.takeQuota(s.chunk); s.left == 0 {
			return false
		}
	}
	s.left--
	return true
}

// startAll queues every slot, at the begin of the warm-up, of the window and of each turn. A busy slot then does nothing.
func (l *loop) startAll() {
	for i := range l.conns {
		l.starts.push(&l.conns[i])
	}
}

// startQueued lets the first queued slots start, and all that need a TLS connection, which is little work, unless starts are spread.
func (l *loop) startQueued() {
	since := l.clock - l.turn.began
	left := l.starts.room(since, len(l.conns))
	for range l.starts.ring.len {
		if left <= 0 {
			return
		}
		c := l.starts.pop()
		if since < l.starts.spread || l.tls.shared == nil || c.state != closed {
			left--
		}
		l.clock = l.shared.now()
		c.start()
	}
	if l.turn.recordFrom == never {
		l.turn.recordFrom = l.clock
	}
}

// begins makes an attempt at a request. It is chosen when the attempt is taken, not when it is sent.
func (l *loop) begins(r *request, due int64) attempt {
	l.counts.outstanding++
	return attempt{begun: l.clock, due: due, request: r, expected: r.expected}
}

// noLatency marks a response that is not the last one of its page (Options.Together).
const noLatency = -1

// fewBytes is the variation in length of a page with a counter or a date.
const fewBytes = 16

// isFar tells whether a body has less than half, or more than one and a half times, the length of the side's first one of its class. A few
// bytes are never far.
func (l *loop) isFar(class int, bodyBytes int64) bool {
	if l.firstBodies[class] == 0 {
		l.shared.firstBodies[class].CompareAndSwap(0, bodyBytes+1)
		l.firstBodies[class] = l.shared.firstBodies[class].Load()
	}
	first := l.firstBodies[class] - 1
	return 2*max(bodyBytes-first, first-bodyBytes) > max(first, 2*fewBytes)
}

// response ends an attempt by the loop's clock. The load's latency runs from `from` (noLatency: it has none), its page's from a.start.
func (l *loop) response(a *attempt, from int64, status int, headerBytes, decodedBytes, bodyBytes int64) {
	n := &l.counts
	n.outstanding--
	n.responses++
	n.lastEnd = l.clock
	l.noteWarmup(a)
	i := n.of(a)
	i.Requests++
	class := status/100 - 2 // Parsers let only 200 to 599 through
	i.Responses[class]++
	i.BodyBytes[class] += bodyBytes
	if len(l.plan.requests) == 1 && l.isFar(class, bodyBytes) {
		i.OtherBodies++
	}
	if status >= 300 {
		i.Statuses[status-300]++
	}
	i.HeaderBytes += headerBytes
	i.HeadersDecodedBytes += decodedBytes
	isUnexpected := status != int(a.expected.status) && (a.expected.status != 0 || status >= 400)
	if isUnexpected {
		i.Unexpected++
	}
	if l.tally.pages != nil && i != n.outside {
		latency := notRecorded
		if l.turn.records(a.start) {
			latency = pageClass(l.clock - a.start)
		}
		l.tally.pages.note(pageResponse{bodyBytes, a.expected.page, latency, isUnexpected})
	}
	if a.start < l.turn.began {
		l.turn.older--
	}
	if from == noLatency || a.isOfRamp || !l.turn.records(from) {
		return
	}
	// A latency counts by its request's start, so that a turn's last requests, which end after the window, are not left out.
	n.window.latency.record(l.clock - from)
	if delay := l.receipts.delay; delay > 0 {
		l.tally.readDelays.record(delay)
	}
	if len(l.plan.Buckets) > 0 {
		l.tally.bucketCounts[bucketOf(l.plan.Buckets, l.clock-from)]++
	}
}

// failure ends an attempt without a response, by the loop's clock. It keeps example as the report's text if it is the loop's first.
func (l *loop) failure(c *conn, kind ErrorKind, cause ErrorCause, example string, a *attempt) {
	n := &l.counts
	l.noteWarmup(a)
	i := n.of(a)
	if cause == CauseTimedOut && i != n.outside {
		l.noteWait(l.clock-a.due, 1)
	}
	if a.due < l.turn.began {
		l.turn.older--
	}
	if l.tally.pages != nil && i != n.outside {
		l.tally.pages.pages[a.expected.page].errors++
	}
	c.noteReached()
	n.outstanding--
	n.failures++
	n.lastEnd = l.clock
	i.Requests++
	i.Errors[kind]++
	i.Causes[cause]++
	if n.example == "" {
		n.example = example
	}
}

// noteWarmup marks an attempt that was due in the warm-up of a rate but ends in the window of a load that is alone. It counts as in a ramp.
func (l *loop) noteWarmup(a *attempt) {
	a.isOfRamp = a.isOfRamp || l.shared.alone && a.due < l.turn.dueFrom
}

// noteWait records waits without a response at a rate. Without these, a server that answers fewer requests would have shorter latencies.
func (l *loop) noteWait(nanoseconds, count int64) {
	if l.tally.waits != nil {
		l.tally.waits.recordMany(nanoseconds, count)
	}
}

func (l *loop) checkTimeouts() {
	from, to := l.timeouts.step(l.clock, len(l.conns))
	for i := from; i < to; i++ {
		l.conns[i].checkTimeouts()
	}
}

// checkTimeoutsBy brings the next pass forward for a limit that is shorter than the time-out, such as lingerLimit.
func (l *loop) checkTimeoutsBy(at int64) {
	if l.timeouts.bringForward(at, l.clock) {
		l.setTimer()
	}
}

// starts are the slots that start an attempt after the events of this iteration: within an event they could nest without end.
type starts struct {
	ring   connRing
	begun  int   // begun connections have started in this turn, which they do one after the other over spread
	spread int64 // 0: at once
}

func (s *starts) push(c *conn) {
	if !c.queued {
		c.queued = true
		s.ring.push(c)
	}
}

func (s *starts) pop() *conn {
	c := s.ring.pop()
	c.queued = false
	s.begun++
	return c
}

// room returns how many of a loop's slots may start now; since is the time from the turn's begin.
func (s *starts) room(since int64, slots int) int {
	if since >= s.spread {
		return startsPerIteration
	}
	// One after the other, so that responses come steadily.
	return min(startsPerIteration, 1+int(int64(slots)*since/s.spread)-s.begun)
}

// untilNext returns the time until a queued slot may start; since is the time from the turn's begin.
func (s *starts) untilNext(since int64, slots int) int64 {
	switch {
	case s.ring.len == 0:
		return never
	case since >= s.spread:
		return 0
	}
	return max(0, int64(s.begun)*s.spread/int64(slots)-since)
}

// restart begins a turn, over whose first part the starts are spread.
func (s *starts) restart(spread int64) { s.begun, s.spread = 0, spread }

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
