package engine

import (
	"slices"
	"time"
)

// share divides whole things evenly: the first of the parts get one more where it does not come out even.
func share(of int64, parts, part int) int64 {
	n := of / int64(parts)
	if int64(part) < of%int64(parts) {
		n++
	}
	return n
}

// startAll lets every slot that has nothing to do start an attempt.
func (l *loop) startAll() {
	for i := range l.conns {
		l.startSoon(&l.conns[i])
	}
}

// startSoon puts a slot at the end of those that start an attempt after the events of this turn.
func (l *loop) startSoon(c *conn) {
	if !c.queued {
		c.queued = true
		l.starting.push(c)
	}
}

// startSome lets the first of them start; the others follow in the next turns. With TLS all of them are connected, since that is
// little work.
func (l *loop) startSome() {
	left := startsPerTurn
	if l.clock < l.began+l.spread {
		// One after the other, so that answers come steadily.
		left = min(left, 1+int(int64(len(l.conns))*(l.clock-l.began)/l.spread)-l.started)
	}
	for range l.starting.len {
		if left <= 0 {
			return
		}
		c := l.starting.pop()
		c.queued = false
		l.started++
		if l.tls == nil || c.fd >= 0 {
			left--
		}
		l.clock = l.shared.now()
		c.start()
	}
	l.recordFrom = min(l.recordFrom, l.clock)
}

// startDue lets idle slots start what is due.
func (l *loop) startDue() {
	for l.idle.len > 0 && l.schedule.nextDue <= l.clock && l.mayStart() {
		l.noteLate()
		c := l.idle.pop()
		c.idle = false
		l.clock = l.shared.now()
		c.start()
	}
}

// mayStart tells whether the phase lets attempts of the open model start, and the turn.
func (l *loop) mayStart() bool {
	if l.turnIsOver {
		return false
	}
	if l.plan.Requests == 0 || l.phase == warming {
		return l.schedule.nextDue < l.phaseEnd
	}
	return l.phase == measuring && l.allowance > 0
}

// take allows the slot to start one attempt, and counts it as under way. due is when it was to start: now, or in the
// open model when the schedule says so. A slot that asks too early is remembered.
func (l *loop) take(c *conn) (due int64, taken bool) {
	due = l.clock
	if l.turnIsOver || l.phase == solo && l.outstanding > 0 {
		return 0, false
	}
	if l.opensAhead(c) {
		c.openedAhead = true
		l.outstanding++
		return due, true
	}
	if l.plan.Rate > 0 {
		if due = l.schedule.nextDue; due > l.clock || !l.mayStart() {
			if !c.idle {
				if c.idle = true; l.idle.len == 0 {
					l.idleSince = l.clock
				}
				l.idle.push(c)
			}
			return 0, false
		}
	}
	if l.plan.Requests > 0 && l.phase > warming {
		if l.phase != measuring {
			return 0, false
		}
		if l.plan.divided {
			if c.left == 0 {
				return 0, false
			}
			c.left--
			if c.firstAt == 0 {
				c.firstAt = l.clock - l.shared.away
			}
		} else if l.allowance == 0 {
			if l.allowance = l.shared.takeQuota(l.chunk); l.allowance == 0 {
				return 0, false
			}
		}
		l.allowance--
	}
	l.schedule.take()
	l.outstanding++
	if l.plan.Rate > 0 && l.allowance == 0 && l.plan.Requests > 0 && l.phase == measuring && !l.shared.alone {
		l.sliceEnd = min(l.sliceEnd, l.schedule.nextDue)
	}
	return due, true
}

// opensAhead tells whether the slot is to make a request of its own beside the schedule: the first one of a kept connection before
// the window of the open model, so that no request of the window waits for a connect.
func (l *loop) opensAhead(c *conn) bool {
	return l.plan.Rate > 0 && l.plan.KeepAlive && l.phase <= warming && !c.openedAhead
}

// startOfLatency is where the latency of an attempt begins that is handed to the kernel now.
func (l *loop) startOfLatency(begun, due int64) int64 {
	switch {
	case l.plan.Rate > 0:
		return due
	case !l.plan.KeepAlive:
		// The connection belongs to the request: its latency includes the connect, as ab's does.
		return begun
	}
	return l.clock
}

// noteSent notes that an attempt of the open model has left, and how late.
func (l *loop) noteSent(due int64) {
	if l.sendDelays != nil {
		l.sendDelays.record(l.clock - due)
	}
}

// response ends an attempt with a response. Latency runs from start; both points are read off the clock of the loop:
// start when the request's bytes are handed to the kernel (with a new connection per request: when its connect
// begins), end when the last byte of the response has been read.
func (l *loop) response(start int64, status int, headerBytes, decodedBytes, bodyBytes int64) {
	l.outstanding--
	l.responses++
	l.lastEnd = l.clock
	i := l.current
	i.Requests++
	// The parser lets no status but 200 to 599 through.
	i.Responses[status/100-2]++
	if status >= 300 {
		i.Statuses[status-300]++
	}
	i.HeaderBytes += headerBytes
	i.HeadersDecodedBytes += decodedBytes
	i.BodyBytes += bodyBytes
	if start < l.began {
		l.older--
	} else if start < l.recordFrom {
		return
	}
	i.latency.record(l.clock - start)
	if len(l.plan.Buckets) > 0 && i != l.outside {
		l.bucketCounts[bucketOf(l.plan.Buckets, l.clock-start)]++
	}
}

// bucketOf is the place of the bucket that a duration falls in, as vegeta counts: from ≤ latency < to.
func bucketOf(ends []time.Duration, nanoseconds int64) int {
	place, _ := slices.BinarySearch(ends, time.Duration(nanoseconds)+1)
	return place
}

// failure ends an attempt of the slot with an error; due is when it was to start.
func (l *loop) failure(c *conn, kind ErrorKind, cause ErrorCause, example string, due int64) {
	if cause == CauseTimedOut {
		l.noteWait(l.clock-due, 1)
	}
	if due < l.began {
		l.older--
	}
	c.reach()
	l.outstanding--
	l.failures++
	l.lastEnd = l.clock
	l.current.Requests++
	l.current.Errors[kind]++
	l.current.Causes[cause]++
	if l.example == "" {
		l.example = example
	}
}

// noteWait notes how long attempts of the open model waited that got no answer: without those that wait longest the latency
// would look shorter the less a server answers.
func (l *loop) noteWait(nanoseconds, count int64) {
	if l.waits != nil {
		l.waits.recordMany(nanoseconds, count)
	}
}
