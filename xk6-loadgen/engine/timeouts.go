package engine

import (
	"slices"
	"time"
)

const (
	// A pass over all slots looks for time-outs, after a hundredth of the time-out within these bounds.
	longestTimeoutCheckInterval, shortestTimeoutCheckInterval = second, int64(5 * time.Millisecond)
	// An iteration checks this many slots: all at once would keep a loop from reading for milliseconds.
	slotsPerTimeoutCheck = 1000
)

// timeouts say when a loop looks for what is too old. Requests set no timers: passes over the slots find them.
type timeouts struct {
	interval int64 // from pass to pass, and so the most by which a time-out is noticed late
	next     int64 // next begins the next pass.
	from     int   // where the present pass goes on; 0: there is none
}

func timeoutsAfter(timeout time.Duration) timeouts {
	return timeouts{interval: min(longestTimeoutCheckInterval, max(shortestTimeoutCheckInterval, int64(timeout)/100))}
}

func (t *timeouts) due(clock int64) int64 {
	if t.from > 0 {
		return clock
	}
	return t.next
}

// step goes on with a pass over so many slots, or begins one. It returns the bounds of those to check now.
func (t *timeouts) step(clock int64, slots int) (from, to int) {
	if t.from == 0 {
		t.next = clock + t.interval
	}
	from, to = t.from, min(t.from+slotsPerTimeoutCheck, slots)
	if t.from = to; to == slots {
		t.from = 0
	}
	return from, to
}

// bringForward has the next pass begin by this time, for a limit that is shorter than the time-out. It tells whether that changed anything.
func (t *timeouts) bringForward(at, clock int64) bool {
	at = max(at, clock+shortestTimeoutCheckInterval)
	isSooner := at < t.next
	t.next = min(t.next, at)
	return isSooner
}

// backoffs are the slots that wait before they connect again. They are checked every firstBackoff, at next.
type backoffs struct {
	slots []*conn
	next  int64
}

func (b *backoffs) add(c *conn, clock int64) {
	c.backingOff = true
	b.slots = append(b.slots, c)
	b.next = min(b.next, clock+firstBackoff)
}

// end passes on each slot whose back-off is over.
func (b *backoffs) end(clock int64, over func(c *conn)) {
	b.slots = slices.DeleteFunc(b.slots, func(c *conn) bool {
		if c.backingOff = c.retryAt() > clock; !c.backingOff {
			over(c)
		}
		return !c.backingOff
	})
	b.next = never
	if len(b.slots) > 0 {
		b.next = clock + firstBackoff
	}
}
