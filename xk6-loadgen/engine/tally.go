package engine

// tally is what a loop records of the whole window, or of a cycle.
type tally struct {
	connectTimes, firstByteTimes *recorder
	// tcpTimes and handshakeTimes are the two parts of connectTimes with TLS over TCP, otherwise nil.
	tcpTimes, handshakeTimes *recorder
	// sendDelays and waits (of requests without a response, since they were due) are nil in the closed model.
	sendDelays, waits *recorder
	bucketCounts      []int64       // bucketCounts has one more than the plan has buckets
	pages             *pageRecorder // pages is nil for a single one
}

// newTally makes only the recorders that the plan needs: each takes about 260 KB. The others are nil.
func newTally(p *plan) tally {
	t := tally{connectTimes: newRecorder(), firstByteTimes: newRecorder(), bucketCounts: make([]int64, len(p.Buckets)+1), pages: newPages(p)}
	if p.Rate > 0 {
		t.sendDelays, t.waits = newRecorder(), newRecorder()
	}
	if p.isTLSOverTCP() {
		t.tcpTimes, t.handshakeTimes = newRecorder(), newRecorder()
	}
	return t
}

// recorders are all of them, some nil, in an order that add relies on.
func (t *tally) recorders() [6]*recorder {
	return [6]*recorder{t.connectTimes, t.firstByteTimes, t.tcpTimes, t.handshakeTimes, t.sendDelays, t.waits}
}

// add adds another loop's tally, or that of a cycle.
func (t *tally) add(other *tally) {
	others := other.recorders()
	for i, r := range t.recorders() {
		r.merge(others[i])
	}
	addEach(t.bucketCounts, other.bucketCounts)
	t.pages.add(other.pages)
}

// reset leaves out what was recorded so far.
func (t *tally) reset() {
	for _, r := range t.recorders() {
		r.reset()
	}
	clear(t.bucketCounts)
	t.pages.reset()
}
