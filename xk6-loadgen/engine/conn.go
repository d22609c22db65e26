//gosec:disable G103 G104 -- the kernel takes addresses, an error changes nothing there
package engine

import (
	"syscall"
	"time"
	"unsafe"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

// session is a protocol on a connection. It asks model.take for each attempt, and reports it as one loop.response or loop.failure.
type session interface {
	next()              // next starts as many attempts as may be under way, and opens a closed connection. It does nothing on a busy slot.
	connected()         // the transport is up, or may be: if conn.send finds that it is not, it is called again
	received(p []byte)  // p is valid during the call only
	discardable() int64 // how many of the next bytes only need to be counted, by discarded
	discarded(n int64)
	flush()        // flush sends what is queued: after everything readable was received, and when the kernel takes bytes again
	closedByPeer() // the peer has closed, and everything it sent has been received
	// abort ends every attempt under way as an error; the connection is closed already.
	abort(kind ErrorKind, cause ErrorCause, example string)
	expire(before int64)            // expire ends attempts that began before this time as timed out; a connect has the same time-out
	appendGoAway(dst []byte) []byte // appends the frame that ends the connection in order, if the protocol has one
	underWay() int64                // the number of attempts without a response
	eachDue(call func(due int64))   // calls back with the time at which each of them should have started
}

// connState is a slot's state. connect, isUp, linger and drop make the transitions; HTTP/3 has no handshaking of its own, and none lingers.
type connState uint8

const (
	closed connState = iota
	connecting
	handshaking // TCP is up, TLS not yet
	established
	lingering // the peer has announced that it will close. It closes first, as with ab, so that it keeps the TIME_WAIT state.
)

const (
	lateInARow     = 16                            // after this many connections in a row that were not up at once, one in 16 is tried at once
	lingerLimit    = int64(200 * time.Millisecond) // for a server to close: its FIN normally comes with the response
	firstBackoff   = int64(10 * time.Millisecond)  // doubles with each failure in a row, see retryAt
	longestBackoff = int64(500 * time.Millisecond) // a server that comes back has its load again this soon
)

// conn is a slot for one connection at a time. The fields that a response uses come first, to share cache lines.
type conn struct {
	loop                   *loop
	session                session
	secure                 *tlsconn.Conn // nil without TLS
	fd                     int
	slot                   int32
	generation             uint32 // generation counts the slot's ended connections: a change during a call means another connection
	state                  connState
	registered, watchesOut bool // registered: epoll knows the socket. watchesOut: it reports when the socket takes bytes again.
	answered               bool // a first byte has come in on this connection
	peerClosed             bool // no request follows, but the peer's last bytes may still have to be read
	queued, idle           bool // queued: the slot is in loop.starts; idle: it is in openModel.idle.
	openedAhead, reached   bool // openedAhead: a first request was made before the window of a rate. reached: an attempt has ended.
	backingOff             bool // the slot waits before it connects again
	writeBroken            bool // the peer takes no more bytes (writeErrno says why); it may have sent a response before
	reading                bool // bytes in the loop's buffer are being handled
	isStamped              bool // reads tell when the kernel received the bytes, see stamp
	// unsent is what the session has left to send; backlog is what was made of it (encrypted, say), and goes first.
	unsent, backlog []byte
	failures        int   // failures in a row, without a response between them.
	responses       int64 // responses in the window, since the first attempt at firstAt until lastAt
	firstAt, lastAt int64
	left            int64 // the rest of the slot's share, if requests are divided
	openedAt        int64
	handshakeFrom   int64 // when TLS began, after TCP
	lingerFrom      int64
	writeErrno      syscall.Errno
	departures      departures
	hangUp          func() // hangUp ends a connection over QUIC, which has no socket here; nil with TCP
}

// connect opens the connection and lets the session send at once: over loopback the handshake is over by then.
func (c *conn) connect() {
	l := c.loop
	c.openedAt = l.clock
	if s, ok := c.session.(*h3Session); ok {
		s.dial()
		return
	}
	fd, errno := linux.Socket(l.plan.target.family)
	if errno != 0 {
		c.failCall(ErrConnect, "socket", errno)
		return
	}
	c.fd, c.state = fd, connecting
	c.answered, c.peerClosed, c.writeBroken, c.registered, c.watchesOut = false, false, false, false, false
	l.open++
	if c.secure != nil {
		l.tls.handshakes++
	}
	if c.isStamped {
		linux.StampReceived(fd, true)
	}
	if l.plan.noDelay {
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1) //nolint:errcheck // slower without, not wrong
	}
	if errno := l.plan.sources.bind(fd, l.connection(int(c.slot))); errno != 0 {
		c.failCall(ErrConnect, "bind", errno)
		return
	}
	if errno := linux.Connect(fd, unsafe.Pointer(&l.plan.target.raw), l.plan.target.size); errno != 0 && errno != syscall.EINPROGRESS {
		c.failCall(ErrConnect, "connect", errno)
		return
	}
	// A TLS handshake can wait for the event: all connections are opened first, as in h2load.
	// After many in a row that were not up at once, as over a link with a delay, most tries would be in vain.
	if l.late++; c.secure != nil || l.late > lateInARow && l.late%lateInARow != 0 {
		c.watch(true)
		return
	}
	generation := c.generation
	c.tryTransport()
	if c.generation != generation || c.state != connecting {
		l.late = 0
	}
	if c.generation == generation {
		c.watch(c.state == connecting || c.sending())
	}
}

// tryTransport begins what follows the TCP handshake, and is called again if that is not over yet.
func (c *conn) tryTransport() {
	c.loop.clock = c.loop.shared.now()
	switch {
	case c.secure != nil && !c.secure.IsHandshaking():
		c.handshakeFrom = c.loop.clock
		c.handleTLS(c.secure.Begin(c.loop.tls.shared), nil)
	case c.secure != nil:
		c.pump()
	case c.loop.plan.Protocol.isHTTP2():
		// An empty send tells whether the connection is up, so that the session need not send twice.
		if _, ok := c.transmit(nil); ok && c.state == established {
			c.session.connected()
		}
	default:
		c.session.connected()
	}
}

// watch registers the socket with epoll, edge-triggered; with out also for writes. Doing so again makes an event if there are bytes to read.
func (c *conn) watch(out bool) {
	operation := syscall.EPOLL_CTL_ADD
	if c.registered {
		operation = syscall.EPOLL_CTL_MOD
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | linux.EpollEdge, Fd: c.slot}
	if out {
		event.Events |= syscall.EPOLLOUT
	}
	c.registered, c.watchesOut = true, out
	if errno := linux.EpollCtl(c.loop.epoll.fd, operation, c.fd, &event); errno != 0 {
		c.failCall(ErrConnect, "epoll_ctl", errno)
	}
}

// isUp notes that the connection is open, its TLS handshake included. Reopening between turns is no part of the load, so it has no times.
func (c *conn) isUp() {
	c.state = established
	c.noteProgress()
	if c.loop.turn.state != joining {
		c.loop.tally.connectTimes.record(c.loop.clock - c.openedAt)
		if c.secure != nil {
			c.loop.tally.tcpTimes.record(c.handshakeFrom - c.openedAt)
			c.loop.tally.handshakeTimes.record(c.loop.clock - c.handshakeFrom)
		}
	}
}

// ready handles an event of epoll. The socket may have been closed by an earlier event of the same iteration.
func (c *conn) ready(events uint32) {
	if c.fd < 0 {
		return
	}
	if c.state == connecting {
		if events&linux.EpollError != 0 {
			c.failCall(ErrConnect, "connect", linux.SocketError(c.fd))
			return
		}
		c.tryTransport()
	} else if events&syscall.EPOLLOUT != 0 && c.sending() {
		if c.pump(); !c.sending() && c.state == established {
			c.session.flush()
		}
	}
	if events&^syscall.EPOLLOUT != 0 && c.fd >= 0 && c.state != connecting {
		c.read(events)
	}
}

// hasNoneLeft tells that the connection has made its share. It is then closed: a server may be waiting to accept another one.
func (c *conn) hasNoneLeft() bool {
	return c.loop.plan.divided && c.loop.window.phase == measuring && c.left == 0
}

// noteReached notes that the slot has had its first response or error, for which the window waits (awaitsAll).
func (c *conn) noteReached() {
	if c.reached {
		return
	}
	c.reached = true
	if l := c.loop; l.reach.reached(l.clock) {
		l.nextTimer = l.clock
	}
}

// noteProgress notes that a slot without a response got further, such as by a handshake: it restarts reachPatience.
func (c *conn) noteProgress() {
	if !c.reached {
		c.loop.reach.progress(c.loop.clock)
	}
}

// countResponse follows each loop.response with the connection's own counts, and ends its row of failures.
func (c *conn) countResponse() {
	l := c.loop
	c.noteReached()
	if l.counts.current != l.counts.outside {
		c.responses++
	}
	c.failures = 0
	if l.plan.divided {
		c.lastAt = l.clock - l.shared.turn.away
	}
}

// rps is the connection's own requests/s. If requests are divided, its time ends with its last response, as in h2load.
func (c *conn) rps(windowStart, windowEnd int64) float64 {
	if c.loop.plan.divided {
		windowStart, windowEnd = c.firstAt, c.lastAt
	}
	if c.responses == 0 || windowEnd <= windowStart {
		return 0
	}
	return float64(c.responses) * 1e9 / float64(windowEnd-windowStart)
}

// start has the session take attempts, and sends what it gathered.
func (c *conn) start() {
	c.session.next()
	if c.state == established {
		c.session.flush()
	}
}

// endOfStream handles the peer's FIN, after everything that came before it.
func (c *conn) endOfStream() {
	switch c.state {
	case lingering:
		c.close()
		c.start()
	case handshaking:
		c.fail(ErrTLS, CauseShort, "the connection was closed during the TLS handshake")
	default:
		c.session.closedByPeer()
	}
}

// linger waits for the peer to close, as its response announced. checkTimeouts closes after lingerLimit.
func (c *conn) linger() {
	c.state, c.lingerFrom = lingering, c.loop.clock
	c.loop.checkTimeoutsBy(c.lingerFrom + lingerLimit)
}

// fail closes the connection, ends its attempts as errors and reconnects.
func (c *conn) fail(kind ErrorKind, cause ErrorCause, example string) {
	if c.writeBroken && kind == ErrRead {
		kind, cause = ErrWrite, causes[c.writeErrno]
	}
	if c.state == handshaking && kind != ErrTimeout {
		kind = ErrTLS
	}
	c.drop()
	c.noteFailure()
	c.session.abort(kind, cause, example)
	c.loop.giveUpIfHopeless(example)
	c.reconnect()
}

func (c *conn) noteFailure() {
	if c.failures++; c.failures == failuresOfHopeless {
		c.loop.hope.failing++
	}
}

// failCall fails the connection for the errno of a system call. Only the first error of a load makes a text.
func (c *conn) failCall(kind ErrorKind, call string, errno syscall.Errno) {
	example := ""
	if c.loop.counts.example == "" {
		example = call + ": " + errno.Error()
	}
	c.fail(kind, causes[errno], example)
}

// close ends the connection in order: first what tells the peer, then the socket.
func (c *conn) close() {
	c.closeInOrder()
	c.drop()
}

// drop closes the socket at once and empties the slot. Attempts under way are the caller's to end.
func (c *conn) drop() {
	if c.state == closed {
		return
	}
	c.countWire()
	if c.hangUp != nil {
		c.hangUp()
		c.hangUp = nil
	} else {
		linux.Close(c.fd)
	}
	c.generation++
	c.loop.h2.Out = c.loop.h2.Out[:0] // Bytes that its session has gathered must not leave on another connection
	if c.secure != nil {
		c.secure.Close()
		if c.state == connecting || c.state == handshaking {
			c.loop.tls.handshakes--
		}
	}
	c.fd, c.state, c.unsent, c.backlog = -1, closed, nil, nil
	c.departures = departures{waiting: c.departures.waiting[:0]}
	c.loop.open--
}

func (c *conn) checkTimeouts() {
	l := c.loop
	before := l.clock - int64(l.plan.Timeout)
	switch {
	case c.state == lingering && l.clock-c.lingerFrom < lingerLimit:
		l.checkTimeoutsBy(c.lingerFrom + lingerLimit)
	case c.state == lingering:
		c.close()
		l.starts.push(c)
	case c.backingOff || c.state == established || c.state != closed && c.openedAt >= before:
		c.session.expire(before)
	case c.state == connecting:
		c.fail(ErrConnect, CauseTimedOut, "connect: no answer within the timeout")
	case c.state == handshaking:
		c.fail(ErrTLS, CauseTimedOut, "no TLS handshake within the timeout")
	}
}

// retryAt is when the slot may connect again, on the run's clock. A single failure has no back-off, since a few of many connections always fail
// and an idle slot is missing load. After that the back-off doubles: otherwise failing connects would take a whole core.
func (c *conn) retryAt() int64 {
	if c.failures <= 1 {
		return c.openedAt
	}
	return c.openedAt + min(longestBackoff, firstBackoff<<min(c.failures-2, 10))
}

// reconnect queues the slot after a failure, at once or after its back-off.
func (c *conn) reconnect() {
	l := c.loop
	if c.retryAt() <= l.clock {
		l.starts.push(c)
		return
	}
	l.backoffs.add(c, l.clock)
	l.setTimer()
}
