package engine

import (
	"fmt"
	"net"
	"testing"
	"time"
)

func TestTheReadDelayIsKnownOfSomeAnswers(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		tried(t, func() string {
			o := x.options(x.serve(t, fine).url)
			o.Duration = 350 * ms
			r := load(t, o)
			answers, known := sumOf(r.LatencyMs.Histogram), sumOf(r.ReadDelayMs.Histogram)
			if isTCP := o.Protocol != H3; isTCP != (known > 0) || known >= answers || r.ReadDelayMs.Max > r.LatencyMs.Max {
				return fmt.Sprintf("known of %d of %d answers, latency up to %f ms, read delay up to %f ms", known, answers, r.LatencyMs.Max, r.ReadDelayMs.Max)
			}
			return ""
		})
	})
}

func TestAnAnswerThatTheLoopReadsLate(t *testing.T) {
	answered, isRead := make(chan bool), make(chan bool)
	s := serve(t, func(s *testServer, c net.Conn) {
		once(ok)(s, c)
		answered <- true
		<-isRead
	})
	o := options(s.url)
	o.Duration = patient
	// The kernel begins to note times a moment after it was asked to.
	tried(t, func() string {
		l := idleLoop(t, o)
		l.stamp(true)
		l.conns[0].start()
		<-answered
		const late = 30 * ms
		time.Sleep(late) // what is measured
		l.iterate()
		isRead <- true
		d := l.tally.readDelays.distribution()
		if sumOf(d.Histogram) != 1 || d.Min < float64(late.Milliseconds()) || d.Max > inMs(l.clock) {
			return fmt.Sprintf("read delay %+v of an answer that was there %s before", d, late)
		}
		return ""
	})
}

func TestConnectionsAreStampedNowAndThen(t *testing.T) {
	o := options(nobody)
	o.Connections, o.Duration = 9, patient
	l := idleLoop(t, o)
	for _, on := range []bool{true, false} {
		l.stamp(on)
		for i := range l.conns {
			if got := l.conns[i].isStamped; got != (on && (i == 0 || i == 8)) {
				t.Errorf("connection %d of %d: %t", i, o.Connections, got)
			}
		}
	}
}
