package engine

import "math"

// queueParts are the parts of a turn, or of the window of a load that is alone, over which the growth of the queue is read.
const queueParts = 4

// queueGrowth is how a loop's queue at a rate grew. The queue is the requests that are due and have no answer.
type queueGrowth struct {
	perSecond []float64 // perSecond is the growth over each part of the window so far.
	kept      int       // kept parts belong to cycles that count.
	lastAt    int64     // lastAt and last are the queue at the end of the last part; 0: no part has begun
	last      int64
	next      int64 // next is when the next part ends
}

// queued is the queue of the loop. Requests that are due while a connection is free wait for the generator, and are not in it.
func (l *loop) queued(at int64) int64 {
	if l.plan.Rate == 0 {
		return 0
	}
	waiting := int64(0)
	if l.idle.len == 0 && l.schedule.nextDue < at {
		waiting = int64(float64(at-l.schedule.nextDue) * l.plan.Rate / float64(l.plan.Threads) / 1e9)
	}
	return l.outstanding + waiting
}

// watchQueue begins the parts of a turn, or of the window of a load that is alone.
func (l *loop) watchQueue(from int64) { l.growth.lastAt, l.growth.next = 0, from }

// noteQueue reads the queue at the begin and the end of each part.
func (l *loop) noteQueue() {
	g := &l.growth
	at := min(l.clock, l.sliceEnd)
	queue := l.queued(at)
	if s := l.shared; g.lastAt == 0 && l.number == 0 && s.ramp > 0 {
		s.enterCPU()
	}
	if g.lastAt > 0 && at > g.lastAt {
		g.perSecond = append(g.perSecond, float64(queue-g.last)*1e9/float64(at-g.lastAt))
	}
	g.lastAt, g.last, g.next = at, queue, never
	if at < l.sliceEnd {
		g.next = min(l.sliceEnd, at+max(1, l.queuePart()))
	}
}

func (l *loop) queuePart() int64 {
	if !l.shared.alone {
		return l.shared.length / queueParts
	}
	return l.plan.window() / queueParts
}

// QueueGrowth is how fast the queue of a rate grew: the mean over parts of the turns, and its standard error (0: a single part).
// The queue of a server that cannot hold the rate grows by what the rate exceeds the server.
type QueueGrowth struct{ PerSecond, StandardError float64 }

// queueGrowthOf adds the loops' queues up.
func queueGrowthOf(loops []*loop) *QueueGrowth {
	if loops[0].plan.Rate == 0 || loops[0].plan.listed != nil {
		return nil
	}
	parts := len(loops[0].growth.perSecond)
	for _, l := range loops {
		parts = min(parts, len(l.growth.perSecond))
	}
	if parts == 0 {
		return nil
	}
	sums := make([]float64, parts)
	for _, l := range loops {
		for i := range sums {
			sums[i] += l.growth.perSecond[i]
		}
	}
	d := describe(sums)
	g := &QueueGrowth{PerSecond: d.Mean}
	if parts > 1 {
		g.StandardError = d.SD / math.Sqrt(float64(parts))
	}
	return g
}
