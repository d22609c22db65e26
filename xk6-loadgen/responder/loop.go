package responder

import (
	"runtime"
	"sync/atomic"
	"syscall"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
	// One read takes what a client sends in a burst.
	readBufferBytes = 64 << 10
	eventsPerWait   = 512
	// A connection that always has more to read, or takes all that it is sent, yields to the others after this much.
	readsPerTurn, bytesPerTurn = 32, 4 << 20
	acceptsPerTurn             = 64
	maxFree                    = 1024
	// Where no more connections can be taken, this long passes before the next look.
	pauseMilliseconds = 10
)

// conn is one connection without TLS.
type conn struct {
	fd      int
	speaker speaker
	// unread came in and was not taken yet.
	unread []byte
	// registered: a loop's epoll knows it. watchesOut: it is to report when the socket takes bytes again.
	registered, watchesOut bool
}

// loop is an event loop on a thread of its own. All loops accept; a connection goes to the one that has the fewest.
type loop struct {
	responder *Responder
	epoll     int
	events    [eventsPerWait]syscall.EpollEvent
	buffer    [readBufferBytes]byte
	workspace workspace
	// open is how many connections it has.
	open atomic.Int64
	// free are up to maxFree connections for reuse.
	free []*conn
	// paused: there are as many connections as there may be.
	paused bool
}

func newLoop(r *Responder) (*loop, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &loop{responder: r, epoll: epoll}
	if errno := l.watch(r.stop, linux.EpollIn); errno != 0 {
		return nil, errno
	}
	return l, l.listen()
}

func (l *loop) watch(fd int, events uint32) syscall.Errno {
	return linux.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

// events are edge-triggered: they come when something changes. Few connections ever wait for a socket to take bytes.
func (c *conn) events() uint32 {
	if c.watchesOut {
		return linux.EpollIn | linux.EpollRdHup | linux.EpollEdge | linux.EpollOut
	}
	return linux.EpollIn | linux.EpollRdHup | linux.EpollEdge
}

// epollExclusive wakes one of the loops that wait for a connection.
const epollExclusive = 1 << 28

func (l *loop) listen() error {
	if errno := l.watch(l.responder.listener, linux.EpollIn|epollExclusive); errno != 0 {
		return errno
	}
	l.paused = false
	return nil
}

// run answers until the responder is closed.
func (l *loop) run() {
	runtime.LockOSThread()
	defer linux.Close(l.epoll)
	for {
		n := linux.EpollPoll(l.epoll, l.events[:])
		if n == 0 {
			timeout := -1
			if l.paused {
				timeout = pauseMilliseconds
			}
			n = linux.EpollWait(l.epoll, l.events[:], timeout)
		}
		for i := range n {
			switch fd := int(l.events[i].Fd); fd {
			case l.responder.stop:
				return
			case l.responder.listener:
				l.accept()
			default:
				l.serve(l.responder.conns[fd].Load(), l.events[i].Events)
			}
		}
		if l.paused && int(l.responder.open.Load()) < l.responder.maxConnections {
			if l.listen() != nil {
				return
			}
		}
	}
}

// accept takes new connections. A request is mostly there already: it is answered at once, and a connection that is closed
// after it is never registered.
func (l *loop) accept() {
	r := l.responder
	for range acceptsPerTurn {
		full := int(r.open.Add(1)) > r.maxConnections
		fd, errno := -1, syscall.EMFILE
		if !full {
			fd, errno = linux.Accept(r.listener)
		}
		if errno == 0 && fd >= len(r.conns) {
			linux.Close(fd)
			errno = syscall.EMFILE
		}
		if errno == 0 {
			l.begin(fd)
			continue
		}
		r.open.Add(-1)
		switch errno {
		case syscall.EAGAIN:
			return
		case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM:
			linux.EpollCtl(l.epoll, syscall.EPOLL_CTL_DEL, r.listener, nil)
			l.paused = true
			return
		}
		// The connection was gone before it was accepted.
	}
}

func (l *loop) begin(fd int) {
	r := l.responder
	var c *conn
	if n := len(l.free); n > 0 {
		c, l.free = l.free[n-1], l.free[:n-1]
	} else {
		c = &conn{speaker: r.newSpeaker()}
	}
	c.fd = fd
	l.open.Add(1)
	if !l.serve(c, 0) {
		return
	}
	owner := l
	for _, other := range r.loops {
		if other.open.Load() < owner.open.Load()-1 {
			owner = other
		}
	}
	l.open.Add(-1)
	owner.open.Add(1)
	c.registered = true
	events := c.events()
	r.conns[fd].Store(c)
	// From here on it is its owner's.
	if owner.watch(fd, events) != 0 {
		owner.open.Add(-1)
		l.open.Add(1)
		l.close(c)
	}
}

// serve sends what is pending and reads what has come, until nothing of both is left; it tells whether the connection is
// still there. Nothing is read while something waits to be sent, so that no client can make it pile up.
func (l *loop) serve(c *conn, events uint32) bool {
	if c == nil {
		return false
	}
	w := &l.workspace
	drained := false
	for turn, bytes := 0, 0; ; turn++ {
		for p := c.speaker.pending(w); len(p) > 0; p = c.speaker.pending(w) {
			if bytes > bytesPerTurn {
				c.speaker.hold(w)
				c.watchesOut = true
				l.again(c)
				return true
			}
			n, errno := linux.Send(c.fd, p)
			if errno == syscall.EAGAIN {
				c.speaker.hold(w)
				if !c.watchesOut {
					c.watchesOut = true
					l.again(c)
				}
				return true
			}
			if errno != 0 {
				l.close(c)
				return false
			}
			c.speaker.sent(w, n)
			bytes += n
		}
		if c.speaker.ends() {
			l.close(c)
			return false
		}
		if len(c.unread) > 0 {
			c.unread = c.unread[c.speaker.received(w, c.unread):]
			continue
		}
		if drained {
			return true
		}
		if turn >= readsPerTurn {
			l.again(c)
			return true
		}
		n, errno := linux.Recv(c.fd, l.buffer[:])
		if errno == syscall.EAGAIN {
			return true
		}
		if errno != 0 || n == 0 {
			l.close(c)
			return false
		}
		// Edge-triggered: what comes later is a new event, but for an end that was there before the read.
		drained = n < len(l.buffer) && events&(linux.EpollRdHup|linux.EpollError) == 0
		if taken := c.speaker.received(w, l.buffer[:n]); taken < n {
			c.unread = append(c.unread[:0], l.buffer[taken:n]...)
		}
	}
}

// again registers a connection anew, which is answered with an event when there is something to do already.
func (l *loop) again(c *conn) {
	if c.registered {
		event := syscall.EpollEvent{Events: c.events(), Fd: int32(c.fd)}
		linux.EpollCtl(l.epoll, syscall.EPOLL_CTL_MOD, c.fd, &event)
	}
}

func (l *loop) close(c *conn) {
	if c.registered {
		// Another loop may get the descriptor from its accept as soon as it is closed.
		l.responder.conns[c.fd].Store(nil)
		c.registered = false
	}
	linux.Close(c.fd)
	l.workspace.clear()
	c.watchesOut = false
	c.unread = emptied(c.unread)
	c.speaker.reset()
	if len(l.free) < maxFree {
		l.free = append(l.free, c)
	}
	l.open.Add(-1)
	l.responder.open.Add(-1)
}
