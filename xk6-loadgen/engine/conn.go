package engine

import (
	"syscall"
	"time"
)

type connState uint8

const (
	closed connState = iota
	connecting
	established
	// lingering: the exchange is over and the peer has said that it will close; its FIN is awaited, so that the
	// TIME_WAIT is the server's, as with ab.
	lingering
)

const (
	firstBackoff   = int64(10 * time.Millisecond)
	longestBackoff = int64(500 * time.Millisecond)
	// lingerLimit is how long a server may take to close after it has said so. Its FIN normally comes with the response.
	lingerLimit = int64(200 * time.Millisecond)
)

// conn is a slot for one connection at a time: it opens, reads, writes and closes, and opens again. What the bytes mean
// is its session's business.
type conn struct {
	loop    *loop
	session session
	fd      int
	slot    int32
	state   connState
	// registered: epoll knows the socket. watchesOut: it reports when the socket takes bytes again.
	registered, watchesOut bool
	// answered: a first byte has come in on this connection.
	answered bool
	// peerClosed: the peer has closed its side; what it sent before may still have to be read, and no request follows.
	peerClosed bool
	// queued: the slot is in the loop's list of those about to start.
	queued bool
	// writeBroken: the peer takes no more bytes; what it had sent before may still be a response.
	writeBroken bool
	// generation tells connections of one slot apart; descriptors are reused at once.
	generation uint32
	openedAt   int64
	lingerFrom int64
	// retryAt is when a slot that pauses may connect again; 0: it does not pause.
	retryAt int64
	// failures in a row, without a response between them.
	failures int
	// unsent is what the kernel has not taken yet.
	unsent []byte
	// responses in the measured window.
	responses int64
}

// connect opens the connection and lets the session send: over loopback the handshake is complete when the call
// returns, and trying is cheaper than being told by an event.
func (c *conn) connect() {
	l := c.loop
	fd, errno := sysSocket(l.plan.target.family)
	if errno != 0 {
		c.fail(ErrConnect, "socket: "+errno.Error())
		return
	}
	c.fd, c.state, c.openedAt = fd, connecting, l.clock
	c.answered, c.peerClosed, c.writeBroken, c.registered, c.watchesOut = false, false, false, false, false
	c.generation++
	l.open++
	if l.plan.noDelay {
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1) //nolint:errcheck // slower without, not wrong
	}
	if errno := sysConnect(fd, &l.plan.target); errno != 0 && errno != syscall.EINPROGRESS {
		c.fail(ErrConnect, "connect: "+errno.Error())
		return
	}
	// The one look at the clock that a connection costs: its connect and its first request are timed by it.
	l.clock = l.shared.now()
	generation := c.generation
	c.session.connected()
	if c.generation == generation && c.fd >= 0 {
		c.watch(c.state == connecting || len(c.unsent) > 0)
	}
}

// watch registers the socket with epoll, edge-triggered: one call in a connection's life unless a write blocks.
func (c *conn) watch(out bool) {
	operation := syscall.EPOLL_CTL_ADD
	if c.registered {
		operation = syscall.EPOLL_CTL_MOD
	}
	event := syscall.EpollEvent{Events: epollIn | epollRdHup | epollEdge, Fd: c.slot}
	if out {
		event.Events |= epollOut
	}
	c.registered, c.watchesOut = true, out
	if errno := sysEpollCtl(c.loop.epoll, operation, c.fd, &event); errno != 0 {
		c.fail(ErrConnect, "epoll_ctl: "+errno.Error())
	}
}

// send hands p to the kernel; what it does not take follows when it can, so p must stay as it is until the response.
// While the connection is not up nothing is taken, and the session's connected is called again.
func (c *conn) send(p []byte) {
	n, errno := sysSend(c.fd, p)
	if errno == syscall.EAGAIN {
		if c.state == connecting {
			return
		}
		n, errno = 0, 0
	}
	if errno != 0 {
		c.sendFailed(errno)
		return
	}
	if c.state == connecting {
		c.state = established
		c.loop.connectTimes.record(c.loop.clock - c.openedAt)
	}
	c.loop.current.SentBytes += int64(n)
	if c.unsent = p[n:]; len(c.unsent) > 0 && c.registered && !c.watchesOut {
		c.watch(true)
	}
}

func (c *conn) sendFailed(errno syscall.Errno) {
	if c.state == connecting {
		c.fail(ErrConnect, "connect: "+errno.Error())
		return
	}
	// A server may answer (413, say) and close before it has taken the whole request: read what there is first.
	c.writeBroken, c.unsent = true, nil
	generation := c.generation
	c.read(0)
	if c.generation == generation && c.fd >= 0 && c.session.underWay() > 0 {
		c.fail(ErrWrite, "write: "+errno.Error())
	}
}

// ready handles what epoll reports.
func (c *conn) ready(events uint32) {
	if c.fd < 0 {
		return
	}
	if c.state == connecting {
		if events&epollError != 0 {
			c.fail(ErrConnect, "connect: "+socketError(c.fd).Error())
			return
		}
		c.session.connected()
	} else if events&epollOut != 0 && len(c.unsent) > 0 {
		c.send(c.unsent)
	}
	if events&^epollOut != 0 && c.fd >= 0 && c.state != connecting {
		c.read(events)
	}
}

// read takes all that is readable. When the peer's FIN was there before the first read (events has RDHUP), a read that
// does not fill the buffer has taken the last byte. A reset sets RDHUP too, but what came before it may be half a
// response: then only the next read tells.
func (c *conn) read(events uint32) {
	l := c.loop
	generation := c.generation
	c.peerClosed = events&(epollRdHup|epollError) != 0
	wasReset := events&epollError != 0
	for {
		n, errno := sysRecv(c.fd, l.buffer[:])
		switch {
		case errno == syscall.EAGAIN:
			return
		case errno != 0 && c.state != lingering:
			c.fail(ErrRead, "read: "+errno.Error())
			return
		case errno != 0 || n == 0:
			c.endOfStream()
			return
		}
		l.clock = l.shared.now()
		if !c.answered {
			c.answered = true
			l.firstByteTimes.record(l.clock - c.openedAt)
		}
		l.current.ReceivedBytes += int64(n)
		if c.state != lingering {
			c.session.received(l.buffer[:n])
		}
		if c.generation != generation || c.fd < 0 {
			return
		}
		if n < len(l.buffer) && !wasReset {
			// Edge-triggered: what comes later is a new event.
			if c.peerClosed {
				c.endOfStream()
			}
			return
		}
	}
}

func (c *conn) endOfStream() {
	if c.state == lingering {
		c.close()
		c.session.next()
		return
	}
	c.session.closedByPeer()
}

// linger waits for the peer's FIN after the last exchange on this connection.
func (c *conn) linger() {
	c.state, c.lingerFrom = lingering, c.loop.clock
}

// fail closes the connection and ends what was under way on it. The next attempt follows at once after a first
// failure, and after a growing pause when connecting itself fails or failures follow each other.
func (c *conn) fail(kind ErrorKind, example string) {
	if c.writeBroken && kind == ErrRead {
		kind = ErrWrite
	}
	c.close()
	c.failures++
	c.session.abort(kind, example)
	l := c.loop
	if c.failures == 1 && kind != ErrConnect {
		l.startSoon(c)
		return
	}
	c.retryAt = l.clock + min(longestBackoff, firstBackoff<<min(c.failures-1, 10))
	l.backingOff++
	l.sweepSoon()
}

func (c *conn) close() {
	if c.fd < 0 {
		return
	}
	sysClose(c.fd)
	c.fd, c.state, c.unsent = -1, closed, nil
	c.loop.open--
}

// sweep ends what took too long and lets a slot that paused try again.
func (c *conn) sweep() {
	l := c.loop
	switch {
	case c.retryAt != 0:
		if l.clock >= c.retryAt {
			c.retryAt = 0
			l.backingOff--
			l.startSoon(c)
		}
	case c.state == lingering:
		if l.clock-c.lingerFrom > lingerLimit {
			c.close()
			l.startSoon(c)
		}
	case c.fd >= 0:
		due, waiting := c.session.oldest()
		if !waiting || l.clock-due <= int64(l.plan.Timeout) {
			return
		}
		if c.state == connecting {
			c.fail(ErrConnect, "connect: no answer within the timeout")
		} else {
			c.fail(ErrTimeout, "no complete response within the timeout")
		}
	}
}
