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

// hopeless is what the loops of a side agree on. Only failures touch it.
type hopeless struct {
	loops  atomic.Int32 // loops all of whose connections fail, without a response ever
	reason atomic.Pointer[string]
	giveUp func() // giveUp stops all sides
}

// giveUpIfHopeless is called after each failure of a connection. example may be empty if the loop has had another one.
func (l *loop) giveUpIfHopeless(example string) {
	if l.failing < len(l.conns) || l.isHopeless || l.hasAnswered || l.responses > 0 {
		return
	}
	if l.clock < l.loadBegan+int64(cmp.Or(l.plan.patience, hopelessAfter)) {
		return
	}
	l.isHopeless = true
	h := &l.shared.hopeless
	reason := cmp.Or(l.example, example)
	h.reason.CompareAndSwap(nil, &reason)
	if int(h.loops.Add(1)) == l.plan.Threads {
		h.giveUp()
	}
}

// regainHope is called when a loop that had given up has a response after all.
func (l *loop) regainHope() {
	l.isHopeless = false
	l.shared.hopeless.loops.Add(-1)
}

// err is nil unless all loops gave up.
func (h *hopeless) err(p *plan) error {
	if int(h.loops.Load()) < p.Threads {
		return nil
	}
	return fmt.Errorf("%w, and each of its %d connections failed from the start: %s", ErrNoAnswer, p.Connections, *h.reason.Load())
}
