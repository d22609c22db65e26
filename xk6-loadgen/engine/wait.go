//gosec:disable G104 -- an error changes nothing there
package engine

import (
	"syscall"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// look returns the events that there are.
func (l *loop) look(events []syscall.EpollEvent) int {
	if l.plan.isOfGoroutines {
		return l.mail.wait(events, 0)
	}
	return linux.EpollWait(l.epoll, events, 0)
}

// wait waits until the next timer at most; at a rate it is exact to the nanosecond.
func (l *loop) wait(events []syscall.EpollEvent) int {
	now := l.shared.now()
	wait := min(l.nextTimer-now, longestWait, l.turnEnd()-now)
	due := never
	if l.plan.Rate > 0 && l.idle.len > 0 && l.mayStart() {
		due = l.schedule.nextDue - now
	}
	switch {
	case l.plan.Spin && l.mail == nil, due <= awakeBefore && due > 0:
		return l.spin(events, now, min(wait, due)) // A sleeping core takes a while to wake up
	case l.plan.Rate > 0:
		if wait = min(wait, due-awakeBefore); wait <= 0 {
			return 0
		}
		return l.waitExactly(events, wait)
	case !l.shared.alone || l.mail != nil:
		return l.waitExactly(events, max(0, wait))
	}
	// Rounded up, since 0 would poll through the last millisecond, except before all loops open the window together.
	if l.phase != drained {
		wait += int64(time.Millisecond) - 1
	}
	return linux.EpollWait(l.epoll, events, int(max(0, wait/int64(time.Millisecond))))
}

func (l *loop) waitExactly(events []syscall.EpollEvent, wait int64) int {
	switch {
	case l.plan.isOfGoroutines:
		return l.mail.wait(events, wait)
	case l.mail != nil:
		return linux.EpollWaitYielding(l.epoll, events, wait)
	}
	return linux.EpollWaitExact(l.epoll, events, wait)
}

// spin polls for `wait` nanoseconds from now at most.
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

// awaitLate waits by a call that the Go scheduler knows of, so that others get the processor meanwhile.
func (l *loop) awaitLate(events []syscall.EpollEvent) (n int) {
	if l.plan.isOfGoroutines {
		n = l.mail.wait(events, longestWait)
	} else {
		n, _ = syscall.EpollWait(l.epoll, events, int(longestWait/int64(time.Millisecond)))
	}
	l.clock = l.shared.now()
	return n
}

// pause does not keep other goroutines from the processor if the loop is one.
func (l *loop) pause(length time.Duration) {
	if l.plan.isOfGoroutines {
		time.Sleep(length)
	} else {
		linux.Sleep(int64(length))
	}
}

// rouse ends awaitLate.
func (l *loop) rouse() {
	if l.plan.isOfGoroutines {
		l.mail.rouse()
	} else {
		syscall.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) //nolint:errcheck // an eventfd takes it
	}
}
