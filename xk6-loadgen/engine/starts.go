package engine

// starts are the slots that start an attempt after the events of this iteration: within an event they could nest without end.
type starts struct {
	ring   connRing
	begun  int   // begun connections have started in this turn, which they do one after the other over spread
	spread int64 // 0: at once
}

// push queues a slot, once at most.
func (s *starts) push(c *conn) {
	if !c.queued {
		c.queued = true
		s.ring.push(c)
	}
}

// pop takes the slot that has waited longest.
func (s *starts) pop() *conn {
	c := s.ring.pop()
	c.queued = false
	s.begun++
	return c
}

// room is how many of a loop's slots may start now, so long after the turn's begin.
func (s *starts) room(since int64, slots int) int {
	if since >= s.spread {
		return startsPerIteration
	}
	// One after the other, so that responses come steadily.
	return min(startsPerIteration, 1+int(int64(slots)*since/s.spread)-s.begun)
}

// untilNext is how long none of the queued slots may start, so long after the turn's begin.
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

// newConnRing has a place for so many slots.
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
