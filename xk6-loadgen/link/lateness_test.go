package link

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// The time that a packet was not read is part of its lateness: a link that does not get to it is late.
func TestLatenessBeforeReading(t *testing.T) {
	for name, delay := range map[string]float64{"without delay": 0, "with delay": 5} {
		p := testPipe(t, Direction{DelayMs: delay})
		p.carry(t)
		p.send(t, 1, 100)
		time.Sleep(30 * time.Millisecond)
		p.carry(t)
		p.finish()
		late := p.check(t, 1, len(p.received(t))).LatenessMs
		if late.Max < 30 || late.P50 < 0.99*30 || late.P99 > late.Max || late.P50 > late.P99 {
			t.Errorf("%s: %+v", name, late)
		}
		if again := p.check(t, 0, 0).LatenessMs; again != (Lateness{}) {
			t.Errorf("%s: %+v over nothing", name, again)
		}
	}
}

// Before the device was seen to be empty a packet was not there: that time is not its lateness.
func TestLatenessSinceTheDeviceWasEmpty(t *testing.T) {
	p := testPipe(t, Direction{})
	time.Sleep(30 * time.Millisecond)
	begin := now()
	p.carry(t)
	p.send(t, 1, 100)
	p.carry(t)
	most := float64(now()-begin) / 1e6
	if late := p.check(t, 1, len(p.received(t))).LatenessMs; late.Max > most || late.Max == 0 {
		t.Errorf("%+v, where %v ms have passed", late, most)
	}
}

// When a packet woke the pump, what is known is how long its thread then waited for a core. A kernel that does not tell leaves the
// most that it can have been.
func TestLatenessOfWhatWokeIt(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	file, err := os.Open("/proc/thread-self/schedstat")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer file.Close()
	zeros, err := os.Create(filepath.Join(t.TempDir(), "schedstat"))
	must(t, err)
	defer zeros.Close()
	zeros.WriteString("0 0 0\n")
	for name, c := range map[string]struct {
		schedstat int
		known     bool
	}{"no file": {-1, false}, "zeros": {int(zeros.Fd()), false}, "the kernel's": {int(file.Fd()), true}} {
		p := testPipe(t, Direction{})
		p.schedstat = c.schedstat
		var known bool
		if p.stalled, known = p.stallTime(); known != c.known {
			if !c.known {
				t.Errorf("%s: taken for the truth", name)
				continue
			}
			t.Logf("SKIPPED %s: it does not tell", name)
			continue
		}
		p.carry(t)
		empty := p.since
		time.Sleep(30 * time.Millisecond)
		p.send(t, 1, 100)
		p.mutex.Lock()
		p.wait()
		p.mutex.Unlock()
		if moved := p.since - empty; c.known && moved < 20e6 || !c.known && moved != 0 {
			t.Errorf("%s: it can have come from %d ns after the device was empty on", name, moved)
		}
	}
}

func TestLatenessInTheQueue(t *testing.T) {
	p := testPipe(t, Direction{DelayMs: 5})
	p.send(t, 1, 100)
	p.carry(t)
	time.Sleep(35 * time.Millisecond)
	p.finish()
	if late := p.check(t, 1, len(p.received(t))).LatenessMs; late.Max < 30 {
		t.Errorf("%+v", late)
	}
}

func TestLatenessPercentiles(t *testing.T) {
	c := newCounters()
	for i := range int64(10_000) {
		c.left(i * 7_919)
	}
	c.left(-5)
	late := c.traffic().LatenessMs
	for name, pair := range map[string][2]float64{"p50": {late.P50, 39.6}, "p99": {late.P99, 78.4}} {
		if math.Abs(pair[0]/pair[1]-1) > 0.01 {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	if late.Max != 9_999*7_919/1e6 {
		t.Errorf("max is %v", late.Max)
	}
	c.left(2 * longestLateness)
	if late := c.traffic().LatenessMs; late.Max != float64(2*longestLateness)/1e6 {
		t.Errorf("max is %v", late.Max)
	}
}
