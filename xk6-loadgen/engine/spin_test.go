package engine

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

func TestALoopThatSpinsIsAwakeAllTheTimeAndSaysWhatItWorked(t *testing.T) {
	silent := func(_ *testServer, c net.Conn) { io.Copy(io.Discard, c) }
	for rate, handler := range map[float64]handler{0: silent, 50: always(ok)} {
		o := options(serve(t, handler).url)
		o.Connections, o.Rate, o.Duration = 1, rate, 400*ms
		used := func() (r outcome, cpu, all float64) {
			before, began := linux.ProcessCPU(), time.Now()
			r = load(t, o)
			return r, float64(linux.ProcessCPU()-before) / 1e9, time.Since(began).Seconds()
		}
		tried(t, func() string {
			o.Spin = false
			_, asleep, _ := used()
			o.Spin = true
			r, awake, all := used()
			if awake < 2*asleep {
				return fmt.Sprintf("rate %g: %g s of CPU in all, and %g s asleep", rate, awake, asleep)
			}
			// With what it spun away it would have worked all the time.
			if r.CPUSeconds > awake/2 {
				return fmt.Sprintf("rate %g: %g s of CPU for the load, of %g s in all", rate, r.CPUSeconds, awake)
			}
			// A loop that spins and has less CPU time than this was kept from its core by others, and late because of them.
			if rate > 0 && r.SendDelayMs.P50 > 1 && awake > 0.9*all {
				return fmt.Sprint(r)
			}
			return ""
		})
	}
}

func TestTheLastMomentBeforeAStartIsSpunAway(t *testing.T) {
	o := options(nobody)
	o.Rate, o.Duration = 20_000, time.Second
	l := idleLoop(t, o)
	l.window.phase, l.window.phaseEnd, l.nextTimer = measuring, never, never
	m := l.model.(*openModel)
	m.idle.push(&l.conns[0])
	for range 100 {
		// The next one is due in 50 µs, unless this thread was kept from its core meanwhile.
		m.begin(l.shared.now())
		m.due = m.schedule.Next()
		l.wait(l.events[:])
	}
	if spun := time.Duration(l.shared.spun.Load()); spun < ms {
		t.Errorf("%s of 5 ms are known as spun away", spun)
	}
}

func TestWhatIsSpunAwayIsKnownWhileItGoesOn(t *testing.T) {
	o := options(nobody)
	o.Duration, o.Spin = time.Second, true
	l := idleLoop(t, o)
	l.nextTimer = never
	tried(t, func() string {
		l.shared.spun.Store(0)
		over := make(chan bool)
		go func() {
			l.wait(l.events[:])
			close(over)
		}()
		first := int64(0)
		for first == 0 {
			first = l.shared.spun.Load()
		}
		<-over
		if all := l.shared.spun.Load(); first > all/2 {
			return fmt.Sprintf("first told were %d of %d ns", first, all)
		}
		return ""
	})
}

// A load that is interrupted has a last second of a few milliseconds.
func TestNoSecondHasLessThanNoCPU(t *testing.T) {
	for used, expected := range map[int64]float64{-8_600_000: 0, 500_000: 0.5, 9e12: float64(runtime.NumCPU())} {
		var got Second
		c := &collector{shared: &shared{epoch: time.Now()}, onSecond: func(s Second) { got = s }}
		c.emit(&pendingSecond{latency: newRecorder(), to: cpuReading{at: 1e6, used: used}})
		if got.GeneratorCPU != expected {
			t.Errorf("%d ns in a millisecond: %g cores, and not %g", used, got.GeneratorCPU, expected)
		}
	}
}
