package engine

import (
	"testing"
	"time"
)

// looked is a session that only notes when it was looked at.
type looked struct {
	session
	last, clock *int64
}

func (s looked) expire(int64) { *s.last = *s.clock }

// sweptLoop has so many connections, all of them established, and the times of the last looks at them.
func sweptLoop(t *testing.T, connections int, timeout time.Duration) (l *loop, last []int64) {
	o := options("http://127.0.0.1:9/")
	o.Connections, o.Duration, o.Timeout = 1, time.Minute, timeout
	l = idleLoop(t, o)
	l.conns = make([]conn, connections)
	last = make([]int64, connections)
	for i := range l.conns {
		l.conns[i] = conn{loop: l, slot: int32(i), fd: 1 << 20, state: established, session: looked{nil, &last[i], &l.clock}}
	}
	// Nothing else is due.
	l.window.phase, l.window.phaseEnd, l.window.nextTick, l.samples.next = measuring, never, never, never
	return l, last
}

func TestHowOftenSlotsAreLookedAt(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{
		time.Millisecond: 5 * time.Millisecond, 500 * time.Millisecond: 5 * time.Millisecond, 5 * time.Second: 50 * time.Millisecond,
		time.Minute: 600 * time.Millisecond, 100 * time.Second: time.Second, time.Hour: time.Second,
	} {
		l, last := sweptLoop(t, 2500, timeout)
		longest := int64(0)
		seen := make([]int64, len(last))
		// A turn each 0.1 ms.
		for l.clock = 0; l.clock < int64(3*want); l.clock += int64(100 * time.Microsecond) {
			if l.clock >= l.nextTimer {
				l.timers()
			}
			for i := range last {
				if last[i] != seen[i] {
					longest, seen[i] = max(longest, last[i]-seen[i]), last[i]
				}
			}
		}
		if longest < int64(want) || longest > int64(want+time.Millisecond) {
			t.Errorf("with a time-out of %s a slot is looked at each %s, want %s", timeout, time.Duration(longest), want)
		}
	}
}

func TestALingeringConnectionIsLeftInTime(t *testing.T) {
	// Its own limit is shorter than the time between passes.
	l, _ := sweptLoop(t, 10, time.Hour)
	l.clock = second
	l.timers()
	l.clock += int64(10 * time.Millisecond)
	for i := range 3 {
		l.conns[i].linger()
		l.clock += int64(40 * time.Millisecond)
	}
	first := l.conns[0].lingerFrom
	for i := range 3 {
		for l.conns[i].state == lingering && l.clock < first+second/2 {
			l.clock = l.nextTimer
			l.timers()
		}
		if late := l.clock - l.conns[i].lingerFrom - lingerLimit; late < 0 || late > int64(5*time.Millisecond) {
			t.Errorf("connection %d was left %s after its time", i, time.Duration(late))
		}
	}
	if passes := l.timeouts.next - l.clock; passes < second/2 {
		t.Errorf("the next pass begins in %s", time.Duration(passes))
	}
}
