package engine

// schedule says when attempts of the open model are due on one loop: all loops share the rate, and take turns. Times are
// counted from the phase's start, so that no error adds up. In the closed model it is empty.
type schedule struct {
	// rate is requests/s of all loops; this one has the attempts offset, offset+step, offset+2·step …
	rate         float64
	offset, step int64
	start        int64
	taken        int64
}

// begin starts a phase.
func (s *schedule) begin(now int64) { s.start, s.taken = now, 0 }

// dueAt is when the attempt with this number is due, counted from 0 on this loop.
func (s *schedule) dueAt(attempt int64) int64 {
	after := float64(s.offset+attempt*s.step) * 1e9 / s.rate
	if after >= float64(never) {
		return never
	}
	return s.start + int64(after)
}

// nextDue is when the next attempt is due.
func (s *schedule) nextDue() int64 { return s.dueAt(s.taken) }

// dueBefore is how many attempts were due before this time; never less than were taken.
func (s *schedule) dueBefore(now int64) int64 {
	if s.rate == 0 {
		return s.taken
	}
	// The first guess is off by one at most, by rounding.
	n := max(s.taken, int64(float64(now-s.start)*s.rate/1e9-float64(s.offset))/s.step)
	for n > s.taken && s.dueAt(n-1) >= now {
		n--
	}
	for s.dueAt(n) < now {
		n++
	}
	return n
}

// connRing is a queue of slots in which each stands at most once.
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
