package engine

import (
	"syscall"
	"time"
	"unsafe"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// session is one protocol on one connection. The loop drives it with the calls below; it reports every attempt back as
// exactly one loop.response or loop.failure, and asks loop.take before it starts one.
//
// The connection with its transport (TCP, TLS), its reconnects, the clock, the phases and the counting are the same for
// all protocols.
type session interface {
	// next starts as many attempts as may be under way, opening the connection when it is closed. It does nothing when
	// the slot is busy, pausing or lingering.
	next()
	// connected: the transport is up, or may be: when conn.send finds that it is not, connected is called once more.
	connected()
	// received gets bytes, which are valid during the call only.
	received(p []byte)
	// discardable is how many of the bytes that come next need not be seen, only counted, by discarded. 0: none.
	discardable() int64
	discarded(n int64)
	// flush sends what the calls before it have queued: it is called once after all that was readable was received, and
	// when the kernel takes bytes again.
	flush()
	// closedByPeer: the peer has closed, and all that it sent has been received.
	closedByPeer()
	// abort ends every attempt under way as an error of this kind and cause; the connection is closed already.
	abort(kind ErrorKind, cause ErrorCause, example string)
	// expire ends the attempts that began before this time as timed out. While the connection is being opened, only those
	// that had another one before: the connection has the same time.
	expire(before int64)
	// goodbye appends what ends the connection in order to dst.
	goodbye(dst []byte) []byte
	// underWay is the number of attempts not yet answered.
	underWay() int64
	// eachDue calls with the time at which each of them was to start: at once in the closed model.
	eachDue(call func(due int64))
}

type connState uint8

const (
	closed connState = iota
	connecting
	// handshaking: TCP is up, TLS not yet.
	handshaking
	established
	// lingering: the exchange is over and the peer has said that it will close; its FIN is awaited, so that the
	// TIME_WAIT is the server's, as with ab.
	lingering
)

const (
	// A connection that always has more to read yields to the others after this many reads.
	readsPerTurn = 32
	// After this many connections in a row that were not up at once, one in as many is tried at once.
	manyLate = 16
	// What is sent over TLS is encrypted in pieces of this size, so that a long body is not there twice.
	sealBytes = 64 << 10
	// lingerLimit is how long a server may take to close after it has said so. Its FIN normally comes with the response.
	lingerLimit = int64(200 * time.Millisecond)
)

// conn is a slot for one connection at a time: it opens, reads, writes and closes, and opens again. What the bytes mean
// is its session's business.
type conn struct {
	loop    *loop
	session session
	// secure is nil without TLS.
	secure *secure
	fd     int
	slot   int32
	state  connState
	// registered: epoll knows the socket. watchesOut: it reports when the socket takes bytes again.
	registered, watchesOut bool
	// answered: a first byte has come in on this connection.
	answered bool
	// peerClosed: the peer has closed its side; what it sent before may still have to be read, and no request follows.
	peerClosed bool
	// queued: the slot is in the loop's list of those about to start; idle: in that of those that could.
	queued, idle bool
	// openedAhead: the slot had its request of opensAhead; reached: an attempt of it has ended.
	openedAhead, reached bool
	// paused: the slot waits before it connects again.
	paused bool
	// writeBroken: the peer takes no more bytes, for the reason that writeErrno is; what it had sent before may still be a
	// response.
	writeBroken bool
	writeErrno  syscall.Errno
	// reading: what was read is being acted on, in the loop's buffer.
	reading bool
	// generation is how many connections of the slot have ended: while it stays the same, so does the connection that there is.
	generation uint32
	openedAt   int64
	lingerFrom int64
	// failures in a row, without a response between them.
	failures int
	// unsent is what the session has left to send, backlog what was made of it (encrypted, say) and the kernel has not
	// taken yet; backlog goes first.
	unsent, backlog []byte
	departures      departures
	// left is what is left of the slot's share, when requests are divided.
	left int64
	// responses in the measured window, since the first attempt at firstAt until lastAt.
	responses       int64
	firstAt, lastAt int64
}

// connect opens the connection and lets the session send: over loopback the handshake is complete when the call
// returns, and trying is cheaper than being told by an event.
func (c *conn) connect() {
	l := c.loop
	c.openedAt = l.clock
	fd, errno := linux.Socket(l.plan.target.family)
	if errno != 0 {
		c.failCall(ErrConnect, "socket", errno)
		return
	}
	c.fd, c.state = fd, connecting
	c.answered, c.peerClosed, c.writeBroken, c.registered, c.watchesOut = false, false, false, false, false
	l.open++
	if c.secure != nil {
		l.handshakes++
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
	// TLS's handshake can wait for the event: first all connections are opened that are to be, as h2load does.
	if c.secure != nil || !l.connectsAtOnce() {
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

// connectsAtOnce tells whether a new connection is worth trying at once. Where many in a row were not up yet, as behind a link
// with a delay, only some are tried still: for each of the others that spares a call that would be in vain.
func (l *loop) connectsAtOnce() bool {
	l.late++
	return l.late <= manyLate || l.late%manyLate == 0
}

// tryTransport begins what follows the TCP handshake, which may not be over yet; then it is called again.
func (c *conn) tryTransport() {
	// The one look at the clock that a connection costs: its connect and its first request are timed by it.
	c.loop.clock = c.loop.shared.now()
	switch {
	case c.secure != nil:
		if c.secure.handshake == nil {
			c.secure.begin()
		} else {
			c.pump()
		}
	case c.loop.plan.Protocol.isHTTP2():
		// Nothing to send: it tells whether the connection is there, so that the session need not send twice.
		if _, ok := c.transmit(nil); ok && c.state == established {
			c.session.connected()
		}
	default:
		c.session.connected()
	}
}

// watch registers the socket with epoll, edge-triggered: one call in a connection's life unless a write blocks.
func (c *conn) watch(out bool) {
	operation := syscall.EPOLL_CTL_ADD
	if c.registered {
		operation = syscall.EPOLL_CTL_MOD
	}
	event := syscall.EpollEvent{Events: linux.EpollIn | linux.EpollRdHup | linux.EpollEdge, Fd: c.slot}
	if out {
		event.Events |= linux.EpollOut
	}
	c.registered, c.watchesOut = true, out
	if errno := linux.EpollCtl(c.loop.epoll, operation, c.fd, &event); errno != 0 {
		c.failCall(ErrConnect, "epoll_ctl", errno)
	}
}

// isUp: connect time is that until the session may speak, TLS included.
func (c *conn) isUp() {
	c.state = established
	c.comesForward()
	if !c.loop.isReopening {
		c.loop.connectTimes.record(c.loop.clock - c.openedAt)
	}
}

// handshakeDone lets the session speak. What the handshake has left to send goes out with its first bytes.
func (c *conn) handshakeDone() {
	// The client's own part of the handshake is part of the connect.
	c.loop.clock = c.loop.shared.now()
	c.loop.handshakes--
	c.isUp()
	c.session.connected()
}

// ready handles what epoll reports.
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
	} else if events&linux.EpollOut != 0 && c.sending() {
		if c.pump(); !c.sending() && c.state == established {
			c.session.flush()
		}
	}
	if events&^linux.EpollOut != 0 && c.fd >= 0 && c.state != connecting {
		c.read(events)
	}
}

// hasMadeItsShare: a connection that has nothing left to do is closed, as h2load closes it: a server at its limit of
// files may be waiting to accept another one.
func (c *conn) hasMadeItsShare() bool {
	return c.loop.plan.divided && c.loop.phase == measuring && c.left == 0
}

// reach notes that an attempt of the slot has ended.
func (c *conn) reach() {
	if c.reached {
		return
	}
	c.comesForward()
	c.reached = true
	if c.loop.unreached--; c.loop.unreached == 0 {
		c.loop.nextTimer = c.loop.clock
	}
}

// comesForward notes that a slot that is awaited has got a step further.
func (c *conn) comesForward() {
	if !c.reached {
		c.loop.lastStep = c.loop.clock
	}
}

// countResponse is for the figures of this connection alone.
func (c *conn) countResponse() {
	l := c.loop
	c.reach()
	if l.current != l.outside {
		c.responses++
	}
	c.failures = 0
	if l.plan.divided {
		c.lastAt = l.clock - l.shared.away
	}
}

// rps is the connection's own requests/s. One that has made its share has no part in the rest of the window, as with
// h2load.
func (c *conn) rps(windowStart, windowEnd int64) float64 {
	if c.loop.plan.divided {
		windowStart, windowEnd = c.firstAt, c.lastAt
	}
	if c.responses == 0 || windowEnd <= windowStart {
		return 0
	}
	return float64(c.responses) * 1e9 / float64(windowEnd-windowStart)
}

// start lets the session start attempts, and sends them.
func (c *conn) start() {
	c.session.next()
	if c.state == established {
		c.session.flush()
	}
}

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

// linger waits for the peer's FIN after the last exchange on this connection.
func (c *conn) linger() {
	c.state, c.lingerFrom = lingering, c.loop.clock
	c.loop.sweepBy(c.lingerFrom + lingerLimit)
}

// fail closes the connection and ends what was under way on it. See pauseAfter for when the next one is opened.
func (c *conn) fail(kind ErrorKind, cause ErrorCause, example string) {
	if c.writeBroken && kind == ErrRead {
		kind, cause = ErrWrite, causeOf(c.writeErrno)
	}
	if c.state == handshaking && kind != ErrTimeout {
		kind = ErrTLS
	}
	c.drop()
	c.failures++
	c.session.abort(kind, cause, example)
	c.connectAgain()
}

// failCall fails the connection for the outcome of a system call. Its text is made for the first error only: no other one is
// shown.
func (c *conn) failCall(kind ErrorKind, call string, errno syscall.Errno) {
	example := ""
	if c.loop.example == "" {
		example = call + ": " + errno.Error()
	}
	c.fail(kind, causeOf(errno), example)
}

// close ends the connection in order: nothing was wrong with it.
func (c *conn) close() {
	c.sayGoodbye()
	c.drop()
}

// drop ends the connection without a word.
func (c *conn) drop() {
	if c.fd < 0 {
		return
	}
	linux.Close(c.fd)
	c.generation++
	// What its session has gathered is not to leave on another connection.
	c.loop.out = c.loop.out[:0]
	if c.secure != nil {
		c.secure.close()
		if c.state == connecting || c.state == handshaking {
			c.loop.handshakes--
		}
	}
	c.fd, c.state, c.unsent, c.backlog = -1, closed, nil, nil
	c.departures = departures{waiting: c.departures.waiting[:0]}
	c.loop.open--
}

// sweep ends what took too long.
func (c *conn) sweep() {
	l := c.loop
	before := l.clock - int64(l.plan.Timeout)
	switch {
	case c.state == lingering && l.clock-c.lingerFrom < lingerLimit:
		l.sweepBy(c.lingerFrom + lingerLimit)
	case c.state == lingering:
		c.close()
		l.startSoon(c)
	case c.paused || c.state == established || c.state != closed && c.openedAt >= before:
		c.session.expire(before)
	case c.state == connecting:
		c.fail(ErrConnect, CauseTimedOut, "connect: no answer within the timeout")
	case c.state == handshaking:
		c.fail(ErrTLS, CauseTimedOut, "no TLS handshake within the timeout")
	}
}

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

const (
	// Time-outs are looked for in passes over all slots, which begin at most this long and at least this long apart, and in
	// between after a hundredth of the time-out.
	sweepAtMost, sweepAtLeast = second, int64(5 * time.Millisecond)
	// A turn looks at this many slots: a pass over a hundred thousand at once would keep a loop from reading for milliseconds.
	slotsPerSweep = 1000
)

// sweep looks for what took too long, at some of the slots; the next turn goes on with the others. So an attempt ends as
// timed out sweepInterval after its time at the latest, and the turns of a pass and longestWait later.
func (l *loop) sweep() {
	if l.sweepFrom == 0 {
		l.nextSweep = l.clock + l.sweepInterval()
	}
	end := min(l.sweepFrom+slotsPerSweep, len(l.conns))
	for i := l.sweepFrom; i < end; i++ {
		l.conns[i].sweep()
	}
	if l.sweepFrom = end; end == len(l.conns) {
		l.sweepFrom = 0
	}
}

// sweepInterval is from the beginning of one pass to that of the next. It keeps a time-out's error small beside the time-out.
func (l *loop) sweepInterval() int64 {
	return min(sweepAtMost, max(sweepAtLeast, int64(l.plan.Timeout)/100))
}

// sweepBy has a pass begin by this time, but not all too soon.
func (l *loop) sweepBy(at int64) {
	if at = max(at, l.clock+sweepAtLeast); at < l.nextSweep {
		l.nextSweep = at
		l.setTimer()
	}
}
