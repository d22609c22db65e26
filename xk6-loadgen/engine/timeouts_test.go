package engine

import (
	"testing"
	"time"
)

func TestALingeringConnectionIsLeftInTime(t *testing.T) {
	// Its own limit is shorter than the time between passes.
	o := options(nobody)
	o.Connections, o.Duration, o.Timeout = 10, time.Minute, time.Hour
	l := idleLoop(t, o)
	for i := range l.conns {
		l.conns[i].fd, l.conns[i].state = 1<<20, established
	}
	// Nothing else is due.
	l.window.phase, l.window.phaseEnd, l.window.nextTick, l.samples.next = measuring, never, never, never
	l.clock = second
	l.timers()
	l.clock += int64(10 * ms)
	for i := range 3 {
		l.conns[i].linger()
		l.clock += int64(40 * ms)
	}
	first := l.conns[0].lingerFrom
	for i := range 3 {
		for l.conns[i].state == lingering && l.clock < first+second/2 {
			l.clock = l.nextTimer
			l.timers()
		}
		if late := l.clock - l.conns[i].lingerFrom - lingerLimit; late < 0 || late > int64(5*ms) {
			t.Errorf("connection %d was left %s after its time", i, time.Duration(late))
		}
	}
	if passes := l.timeouts.next - l.clock; passes < second/2 {
		t.Errorf("the next pass begins in %s", time.Duration(passes))
	}
}
