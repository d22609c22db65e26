package engine

import "slices"

// departures are the requests of one HTTP/2 connection that wait for the kernel to take their headers, in the open model: a
// request has left when it has, not when it was put behind others that a server does not read.
type departures struct {
	// handed is how many bytes the connection was given to send, those of the backlog included.
	handed  int64
	waiting []departure
}

// departure is one of them.
type departure struct {
	due int64
	// end is where in the connection's bytes the request ends; 0: it is not among them yet.
	end int64
}

// written: the connection is given so many bytes, and in them all requests that waited for that.
func (d *departures) written(bytes int) {
	d.handed += int64(bytes)
	for i := len(d.waiting) - 1; i >= 0 && d.waiting[i].end == 0; i-- {
		d.waiting[i].end = d.handed
	}
}

// departs: an attempt of the open model is in what the session sends next.
func (c *conn) departs(due int64) {
	if c.loop.sendDelays != nil {
		c.departures.waiting = append(c.departures.waiting, departure{due: due})
	}
}

// noteDepartures notes those that have left by now.
func (c *conn) noteDepartures() {
	d := &c.departures
	taken, left := d.handed-int64(len(c.backlog)), 0
	for left < len(d.waiting) && d.waiting[left].end > 0 && d.waiting[left].end <= taken {
		c.loop.noteSent(d.waiting[left].due)
		left++
	}
	d.waiting = slices.Delete(d.waiting, 0, left)
}

// noteStuck notes what has not left at the window's end with its delay until then: left out, a server that reads nothing would
// look as if all had left in time.
func (c *conn) noteStuck(windowEnd int64) {
	for _, stuck := range c.departures.waiting {
		c.loop.sendDelays.record(windowEnd - stuck.due)
	}
}
