package engine

import (
	"testing"
	"time"
)

// looked is a session that only counts how often it was looked at.
type looked struct {
	session
	times *int
	last  *int64
	clock *int64
}

func (s looked) expire(int64) { *s.times++; *s.last = *s.clock }

// sweptLoop has so many connections, all of them established, and a count of the looks at them.
func sweptLoop(t *testing.T, connections int, timeout time.Duration) (l *loop, times []int, last []int64) {
	o := options("http://127.0.0.1:9/")
	o.Connections, o.Duration, o.Timeout = 1, time.Minute, timeout
	l = idleLoop(t, o)
	l.conns = make([]conn, connections)
	times, last = make([]int, connections), make([]int64, connections)
	for i := range l.conns {
		l.conns[i] = conn{loop: l, slot: int32(i), fd: 1 << 20, state: established, session: looked{nil, &times[i], &last[i], &l.clock}}
	}
	// Nothing else is due.
	l.window.phase, l.window.phaseEnd, l.window.nextTick, l.samples.next = measuring, never, never, never
	return l, times, last
}

func TestATurnLooksAtAThousandSlotsAtMost(t *testing.T) {
	l, times, _ := sweptLoop(t, 4500, time.Minute)
	l.clock = second
	total := func() (n int) {
		for _, k := range times {
			n += k
		}
		return n
	}
	for _, want := range []int{1000, 2000, 3000, 4000, 4500} {
		l.timers()
		if got := total(); got != want {
			t.Fatalf("%d slots were looked at, want %d", got, want)
		}
		if more := want < 4500; more != (l.nextTimer <= l.clock) {
			t.Errorf("after %d slots the next turn is due in %d ns", want, l.nextTimer-l.clock)
		}
	}
	for i, n := range times {
		if n != 1 {
			t.Fatalf("slot %d was looked at %d times in a pass", i, n)
		}
	}
	// The next pass begins a hundredth of the time-out after the first one did.
	l.clock = second + int64(600*time.Millisecond) - 1
	if l.timers(); total() != 4500 {
		t.Error("the next pass began too soon")
	}
	l.clock++
	if l.timers(); total() != 5500 {
		t.Errorf("%d slots were looked at when the next pass was due", total())
	}
}

func TestHowOftenSlotsAreLookedAt(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{
		time.Millisecond: 5 * time.Millisecond, 500 * time.Millisecond: 5 * time.Millisecond, 5 * time.Second: 50 * time.Millisecond,
		time.Minute: 600 * time.Millisecond, 100 * time.Second: time.Second, time.Hour: time.Second,
	} {
		l, _, last := sweptLoop(t, 2500, timeout)
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
	l, _, _ := sweptLoop(t, 10, time.Hour)
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
