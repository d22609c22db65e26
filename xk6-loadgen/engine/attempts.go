package engine

// share is the size of a part, from 0 on, if whole things are divided evenly: the first parts get one more each.
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

// response ends an attempt by the loop's clock. The load's latency runs from `from` (noLatency: it has none), its page's from a.start.
func (l *loop) response(a *attempt, from int64, status int, headerBytes, decodedBytes, bodyBytes int64) {
	n := &l.counts
	n.outstanding--
	n.responses++
	n.lastEnd = l.clock
	i := n.of(a)
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
	if l.tally.pages != nil && i != n.outside {
		class := notRecorded
		if l.turn.records(a.start) {
			class = pageClass(l.clock - a.start)
		}
		l.tally.pages.note(pageResponse{bodyBytes, a.expected.page, class, isUnexpected})
	}
	if a.start < l.turn.began {
		l.turn.older--
	}
	if from == noLatency || a.isOfRamp || !l.turn.records(from) {
		return
	}
	// A latency counts by its request's start, so that a turn's last requests, which end after the window, are not left out.
	n.window.latency.record(l.clock - from)
	if len(l.plan.Buckets) > 0 {
		l.tally.bucketCounts[bucketOf(l.plan.Buckets, l.clock-from)]++
	}
}

// failure ends an attempt without a response, by the loop's clock. It keeps example as the report's text if it is the loop's first.
func (l *loop) failure(c *conn, kind ErrorKind, cause ErrorCause, example string, a *attempt) {
	n := &l.counts
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

// noteWait records waits without a response at a rate. Without these, a server that answers fewer requests would have shorter latencies.
func (l *loop) noteWait(nanoseconds, count int64) {
	if l.tally.waits != nil {
		l.tally.waits.recordMany(nanoseconds, count)
	}
}

// checkTimeouts goes on with a pass over the slots, or begins one.
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
