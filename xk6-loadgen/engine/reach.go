package engine

import (
	"cmp"
	"time"
)

const (
	// The window no longer waits for connections without a response once none has got further for reachPatience, or after longestReach.
	reachPatience = 2 * time.Second
	longestReach  = 120 * second
)

// reach tells whether all of a loop's slots have ended an attempt, for which the window waits (awaitsAll).
type reach struct {
	unreached    int   // unreached slots have ended none.
	lastProgress int64 // when one of these last got further, such as by a handshake
	arrived      bool  // Other loops need not wait for this one.
	patience     int64
}

// newReach waits for so many slots, and for reachPatience unless the options say otherwise.
func newReach(slots int, patience time.Duration) reach {
	return reach{unreached: slots, patience: int64(cmp.Or(patience, reachPatience))}
}

// progress notes that a slot without a response got further. That restarts the patience.
func (r *reach) progress(clock int64) { r.lastProgress = clock }

// reached notes the first response or error of a slot. It tells whether that was the last slot.
func (r *reach) reached(clock int64) (isLast bool) {
	r.lastProgress = clock
	r.unreached--
	return r.unreached == 0
}

// arrives is true once: when all slots are reached, or are waited for no longer. began is the turn's begin.
func (r *reach) arrives(clock, began int64) bool {
	if r.arrived || r.unreached > 0 && clock <= min(r.lastProgress+r.patience, began+longestReach) {
		return false
	}
	r.arrived = true
	return true
}
