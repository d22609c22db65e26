package engine

import (
	"syscall"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
	// How much longer than the engine h2load is at work on the same responses, in percent of the engine's time: over TLS it
	// reads each record by two calls. These are the shares, tried by hand, with which both see the same requests/s of one
	// server, of small pages and of large ones: npm run bench -- agreement.
	restPercentTLS, restPercentH2C = 40, 15
	// A shorter rest is not worth its timer, which costs microseconds. It is made up for later.
	shortestRest = int64(10 * time.Microsecond)
	// No rest is longer: a handshake takes a millisecond, and what comes in meanwhile would look slow.
	longestRest = int64(100 * time.Microsecond)
	// In the open model a loop is awake this long before the next start is due.
	awakeBefore = int64(60 * time.Microsecond)
	// A look for events that took this long did not run for all of it: another thread had its core.
	offCore = int64(50 * time.Microsecond)
)

// wait waits for events, until the next timer at most. In the open model it is exact: there, time is what is measured.
func (l *loop) wait(events []syscall.EpollEvent) int {
	now := l.shared.now()
	wait := min(l.nextTimer-now, longestWait, l.turnEnd()-now)
	mayStart := l.plan.Rate > 0 && l.idle.len > 0 && l.mayStart()
	if l.plan.Spin {
		if mayStart {
			wait = min(wait, l.schedule.nextDue-now)
		}
		return l.spin(events, now, wait)
	}
	if l.plan.Rate > 0 {
		if mayStart {
			due := l.schedule.nextDue - now
			if due <= awakeBefore && due > 0 {
				// A sleeping core takes a while to wake up: the last moment before a start is spent awake.
				return l.spin(events, now, min(wait, due))
			}
			wait = min(wait, due-awakeBefore)
		}
		if wait <= 0 {
			return 0
		}
		return linux.EpollWaitExact(l.epoll, events, wait)
	}
	if due := l.rest.due(now); due > 0 {
		linux.Rest(due)
		l.rest.rested(now, l.shared.now())
		if n := linux.EpollWait(l.epoll, events, 0); n > 0 {
			return n
		}
	}
	defer func() { l.rest.begin(l.shared.now()) }()
	if l.shared.sliceEnd < never {
		return linux.EpollWaitExact(l.epoll, events, max(0, wait))
	}
	// Rounded up: a wait of 0 would spin through the last millisecond. Before the window opens it may, once: all are to open it
	// at the same time.
	if l.phase != drained {
		wait += int64(time.Millisecond) - 1
	}
	return linux.EpollWait(l.epoll, events, int(max(0, wait/int64(time.Millisecond))))
}

// spin looks for events until there are some, for `wait` nanoseconds from now at most.
func (l *loop) spin(events []syscall.EpollEvent, now, wait int64) int {
	idle, end := int64(0), now+wait
	defer func() { l.shared.spun.Add(idle) }()
	for {
		n := linux.EpollWait(l.epoll, events, 0)
		if n > 0 || now >= end {
			return n
		}
		looked := l.shared.now()
		if took := looked - now; took < offCore {
			idle += took
		}
		now = looked
	}
}

// rest keeps h2load's rhythm where h2load is the peer: over TLS and HTTP/2, in the closed model.
//
// A loop that finds nothing to read waits, and its waking is work for the server that sends: on the virtual machine where this
// was measured 6 to 9 µs, beside the 12 in which nginx answers a request. The less a generator works on a response the more
// often it has to be woken up, so that a server makes fewer requests/s for the cheaper of two generators. Therefore a loop
// rests, in which no event wakes it up, for as long as h2load would still be at work.
//
// HTTP/1 without TLS has no rest, although with one of 15 % a server on another core makes 3 % more requests/s, as many as for
// wrk: on a core that the loop shares, with the server or with another k6, a rest costs more than that.
type rest struct {
	percent int64
	// workingSince is when the loop began to work. owed is what it has not rested yet of what it should have; below 0 it has
	// rested longer than that.
	workingSince, owed int64
}

func newRest(p *plan) rest {
	switch {
	case p.Rate > 0 || p.Spin:
		// Time is what is measured there, or nobody wakes the loop up.
		return rest{}
	case p.tls != nil:
		return rest{percent: restPercentTLS}
	case p.Protocol.isHTTP2():
		return rest{percent: restPercentH2C}
	}
	return rest{}
}

// begin: the loop works from now on.
func (r *rest) begin(now int64) { r.workingSince = now }

// due is how long to rest now that there is nothing to do, in nanoseconds; 0 while that is not worth it.
func (r *rest) due(now int64) int64 {
	r.owed = min(r.owed+(now-r.workingSince)*r.percent/100, longestRest)
	r.begin(now)
	if r.owed < shortestRest {
		return 0
	}
	return r.owed
}

// rested: the loop has rested since `from` and works again. What the kernel added is taken off the next rest.
func (r *rest) rested(from, now int64) {
	r.owed = max(r.owed-(now-from), -shortestRest)
	r.begin(now)
}
