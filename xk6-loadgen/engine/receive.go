package engine

import (
	"syscall"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// read takes all that is readable, and sends what that led to.
func (c *conn) read(events uint32) {
	c.comesForward()
	c.reading = true
	if c.readAll(events); c.state == established {
		c.session.flush()
	}
	c.reading = false
	if c.fd >= 0 && c.writeBroken {
		c.readLast()
	}
}

// readLast is for a connection that takes no more bytes: a server may answer (413, say) and close before it has taken the
// whole request.
func (c *conn) readLast() {
	generation := c.generation
	c.reading = true
	c.readAll(0)
	c.reading = false
	switch {
	case c.generation != generation:
	case c.session.underWay() > 0:
		c.failCall(ErrWrite, "write", c.writeErrno)
	default:
		c.close()
		c.loop.startSoon(c)
	}
}

// readAll reads until nothing is left, or others have to have their turn. When the peer's FIN was there before the first
// read (events has RDHUP), a read that takes less than it could has taken the last byte. A reset sets RDHUP too, but what
// came before it may be half a response: then only the next read tells.
//
// Without TLS, bytes of which only the number counts are not copied from the kernel: of a body of 525 kB that is most of the
// work. What fits into the buffer is read as ever.
func (c *conn) readAll(events uint32) {
	l := c.loop
	generation := c.generation
	c.peerClosed = events&(linux.EpollRdHup|linux.EpollError) != 0
	wasReset := events&linux.EpollError != 0
	for reads := 1; ; reads++ {
		kept, most, discards := 0, len(l.buffer), false
		if c.secure != nil {
			kept = copy(l.buffer[:], c.secure.partial)
			most -= kept
		} else if uncounted := c.session.discardable(); uncounted > int64(most) {
			most, discards = int(uncounted), true
		}
		var n int
		var errno syscall.Errno
		if discards {
			n, errno = linux.Discard(c.fd, most)
		} else {
			n, errno = linux.Recv(c.fd, l.buffer[kept:])
		}
		if errno == syscall.EAGAIN {
			return
		}
		if errno != 0 && c.state != lingering {
			c.failCall(ErrRead, "read", errno)
			return
		}
		if errno != 0 || n == 0 {
			c.peerClosed = true
			c.endOfStream()
			return
		}
		l.clock = l.shared.now()
		switch {
		case discards:
			l.current.ReceivedBytes += int64(n)
			c.session.discarded(int64(n))
		case c.secure != nil:
			c.secure.received(l.buffer[:kept+n])
		default:
			c.deliver(l.buffer[:n])
		}
		if c.generation != generation {
			return
		}
		if n < most && !wasReset {
			// Edge-triggered: what comes later is a new event.
			if c.peerClosed {
				c.endOfStream()
			}
			return
		}
		if reads == readsPerTurn {
			// Registering again is answered with an event when there is more.
			c.watch(c.watchesOut)
			return
		}
	}
}

// deliver gives the session what came in: with TLS, what was in a record.
func (c *conn) deliver(p []byte) {
	c.loop.current.ReceivedBytes += int64(len(p))
	if c.state != lingering {
		c.session.received(p)
	}
}

// firstByte notes when a response's first byte came in on this connection.
func (c *conn) firstByte() {
	if !c.answered {
		c.answered = true
		c.loop.firstByteTimes.record(c.loop.clock - c.openedAt)
	}
}
