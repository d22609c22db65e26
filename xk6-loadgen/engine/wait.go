package engine

import (
	"syscall"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
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
	if !l.shared.alone {
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
