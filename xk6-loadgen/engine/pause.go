package engine

import "time"

const (
	firstPause   = int64(10 * time.Millisecond)
	longestPause = int64(500 * time.Millisecond)
)

// pause is a slot that waits until it may connect again.
type pause struct {
	until int64
	conn  *conn
}

// pauseAfter is how long after the start of a connection that failed its slot may open the next one, when so many have
// failed in a row without a response between them.
//
// The first failure has no pause: of ten thousand connections a few always fail, and a slot that idles for it would be load
// that is missing. From the second on it doubles, since connects that fail at once would take all of a core where everything
// is refused, or where the kernel searches in vain for a free port. It counts from the failed connection's start: what has
// taken its time to fail, as over a link with a delay, has cost little.
func pauseAfter(failures int) int64 {
	if failures <= 1 {
		return 0
	}
	return min(longestPause, firstPause<<min(failures-2, 10))
}

// connectAgain lets the slot go on after a failure.
func (c *conn) connectAgain() {
	l := c.loop
	until := c.openedAt + pauseAfter(c.failures)
	if until <= l.clock {
		l.startSoon(c)
		return
	}
	c.paused = true
	l.pauses = append(l.pauses, pause{until, c})
	l.nextRetry = min(l.nextRetry, l.clock+firstPause)
	l.setTimer()
}

// endPauses lets those slots go on whose pause is over.
func (l *loop) endPauses() {
	left := l.pauses[:0]
	for _, p := range l.pauses {
		if p.until > l.clock {
			left = append(left, p)
			continue
		}
		p.conn.paused = false
		l.startSoon(p.conn)
	}
	l.pauses, l.nextRetry = left, never
	if len(left) > 0 {
		l.nextRetry = l.clock + firstPause
	}
}
