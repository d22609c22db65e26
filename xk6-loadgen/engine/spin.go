package engine

import (
	"syscall"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// A look for events that took this long did not run for all of it: another thread had its core.
const offCore = int64(50 * time.Microsecond)

// spin looks for events until there are some, for `wait` nanoseconds from now at most.
func (l *loop) spin(events []syscall.EpollEvent, now, wait int64) int {
	idle, end := int64(0), now+wait
	defer func() { l.shared.spun.Add(idle) }()
	for {
		n := linux.EpollPoll(l.epoll, events)
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
