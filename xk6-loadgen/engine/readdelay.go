package engine

import (
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// The read delay of a response is the time from the kernel's receipt of its last byte to the loop's read, which ends its latency. The kernel's
// time costs 2 % of a short request, of all connections, as long as one asks for it, and 3 % more of those that do. So some do, for a part of
// the time: a sixteenth of the samples of requests/s, from the second one on.
const (
	stampedOneIn    = 8
	stampedSampleIn = 16
)

// receipts measure how late a loop reads bytes after the kernel has received them.
type receipts struct {
	areOn  bool          // some connections are stamped
	delay  int64         // how late the loop read the bytes that it handles, in nanoseconds; 0: not known, as most of the time
	reader linux.Stamped // reads from connections that are stamped
}

// stamp has the kernel note when it receives the bytes of one connection in stampedOneIn, and at least of one, or ends that.
func (l *loop) stamp(on bool) {
	if l.receipts.areOn == on || l.inbox != nil {
		return
	}
	l.receipts.areOn = on
	for i := 0; i < len(l.conns); i += stampedOneIn {
		c := &l.conns[i]
		if c.isStamped = on; c.fd >= 0 {
			linux.StampReceived(c.fd, on)
		}
	}
}

// note is called after each read, with the kernel's time of its last byte in nanoseconds since 1970; 0: not known.
func (r *receipts) note(received int64) {
	r.delay = 0
	if received > 0 {
		r.delay = max(1, time.Now().UnixNano()-received) // Less than 0 if the clock was set back meanwhile
	}
}
