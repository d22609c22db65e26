package engine

import "slices"

// backoffs are the slots that wait before they connect again. They are checked every firstBackoff, at next.
type backoffs struct {
	slots []*conn
	next  int64
}

// add has a slot wait until its retryAt.
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
