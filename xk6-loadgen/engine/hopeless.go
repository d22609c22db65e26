package engine

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// A load ends once all its connections have failed so often in a row, for so long, and it has never had a response.
	failuresOfHopeless = 2
	hopelessAfter      = 1500 * time.Millisecond
)

// ErrNoAnswer ends a load of which no request was ever answered, while all its connections failed. Its error names the reason.
var ErrNoAnswer = errors.New("no request was answered")

// hopeless is shared by the loops of a side: the load ends once all of them have given up. Only failures write it.
type hopeless struct {
	loops  atomic.Int32 // loops all of whose connections fail, without a response ever
	reason atomic.Pointer[string]
	giveUp func() // giveUp stops all sides
}

// hope is a loop's own part of hopeless.
type hope struct {
	began       int64         // began is when the load did, on the run's clock.
	after       time.Duration // the loop gives up after this.
	failing     int           // failing connections have failed failuresOfHopeless times in a row. It matters until the first response.
	isLost      bool          // The loop has given up.
	hasAnswered bool          // There was a response before the counts were reset.
}

// isGone tells whether the loop is to give up: all of its slots fail, and have done so for long enough. responses are those since the reset.
func (h *hope) isGone(clock int64, slots int, responses int64) bool {
	return h.failing >= slots && !h.isLost && !h.hasAnswered && responses == 0 && clock >= h.began+int64(h.after)
}

// giveUpIfHopeless is called after each failure of a connection. example may be empty if the loop has had another one.
func (l *loop) giveUpIfHopeless(example string) {
	if !l.hope.isGone(l.clock, len(l.conns), l.counts.responses) {
		return
	}
	l.hope.isLost = true
	h := &l.shared.hopeless
	reason := cmp.Or(l.counts.example, example)
	h.reason.CompareAndSwap(nil, &reason)
	if int(h.loops.Add(1)) == l.plan.Threads {
		h.giveUp()
	}
}

// regainHope is called when a loop that had given up has a response after all.
func (l *loop) regainHope() {
	l.hope.isLost = false
	l.shared.hopeless.loops.Add(-1)
}

// err is nil unless all loops gave up.
func (h *hopeless) err(p *plan) error {
	if int(h.loops.Load()) < p.Threads {
		return nil
	}
	return fmt.Errorf("%w, and each of its %d connections failed from the start: %s", ErrNoAnswer, p.Connections, *h.reason.Load())
}
