package engine

import "math"

// queueParts are the parts of a turn, or of the window of a load that is alone, over which the growth of the queue is read.
const queueParts = 4

// queueGrowth measures how a loop's queue at a rate grew. The queue is the requests that are due and have no answer.
type queueGrowth struct {
	parts  []queuePart
	kept   int   // kept parts belong to cycles that count.
	lastAt int64 // lastAt is when the last part ended, with this queue and so many responses; 0: no part has begun
	last   int64
	// answered counts all responses so far, those of requests that were due before the window included.
	answered int64
	// next is when the next part ends, part the length of one, until when the last one ends.
	next, part, until int64
}

// queuePart is a part of the window: its length in nanoseconds, the growth of the queue, and the responses that came in it.
type queuePart struct{ length, growth, answered int64 }

// watchTurnsQueue begins the parts of a turn in which requests are due.
func (l *loop) watchTurnsQueue() {
	l.growth.next = never
	if s := l.shared; l.plan.Rate > 0 && l.window.phase == measuring && !s.alone && !s.turn.isEmpty {
		l.watchQueue(l.turn.steadyFrom, l.turn.sliceEnd)
	}
}

// watchQueue begins the parts of a turn, or of the window of a load that is alone, whose requests are due until `until`.
func (l *loop) watchQueue(from, until int64) {
	if l.plan.Requests > 0 {
		// At most until the last request is due, which can be later than it leaves: with all connections taken.
		until = min(until, from+int64(float64(l.share.left)*float64(l.plan.Threads)/l.plan.Rate*1e9))
	}
	l.growth.watch(from, until)
}

// noteQueue reads the queue at the begin and the end of each part.
func (l *loop) noteQueue() {
	if s := l.shared; l.growth.lastAt == 0 && l.number == 0 && s.turn.ramp > 0 {
		s.enterCPU()
	}
	l.growth.note(l.clock, l.model.queued(l.clock), l.counts.responses)
}

// watch begins the parts of the time between these two, on the run's clock.
func (g *queueGrowth) watch(from, until int64) {
	g.lastAt, g.next, g.until = 0, from, until
	g.part = max(1, (until-from)/queueParts)
}

// note ends a part, if one has begun, with this queue and so many responses, and begins the next one.
func (g *queueGrowth) note(at, queue, responses int64) {
	if g.lastAt > 0 && at > g.lastAt {
		g.parts = append(g.parts, queuePart{at - g.lastAt, queue - g.last, responses - g.answered})
	}
	g.lastAt, g.last, g.answered, g.next = at, queue, responses, never
	if at < g.until {
		g.next = min(g.until, at+g.part)
	}
}

// keep keeps the parts of a cycle that counts.
func (g *queueGrowth) keep() { g.kept = len(g.parts) }

// drop forgets the parts of a cycle that does not.
func (g *queueGrowth) drop() { g.parts = g.parts[:g.kept] }

// QueueGrowth is how fast the queue of a rate grew: the mean over parts of the turns, weighted by their length, and its standard error
// (0: a single part).
// If a server cannot hold the rate, its queue grows by the difference between the rate and what it serves.
type QueueGrowth struct{ PerSecond, StandardError float64 }

// queueGrowthOf adds the loops' queues up. served is the responses per second within the parts, whenever their requests were due.
func queueGrowthOf(loops []*loop) (growth *QueueGrowth, served float64) {
	if loops[0].plan.Rate == 0 {
		return nil, 0
	}
	parts := len(loops[0].growth.parts)
	for _, l := range loops {
		parts = min(parts, len(l.growth.parts))
	}
	if parts == 0 {
		return nil, 0
	}
	all, whole := make([]queuePart, parts), queuePart{}
	for _, l := range loops {
		for i, part := range l.growth.parts[:parts] {
			// The loops' parts lie at the same times.
			all[i].length += part.length / int64(len(loops))
			all[i].growth += part.growth
			whole.answered += part.answered
		}
	}
	for _, part := range all {
		whole.length += part.length
		whole.growth += part.growth
	}
	seconds := float64(whole.length) / 1e9
	growth = &QueueGrowth{PerSecond: float64(whole.growth) / seconds}
	squares := 0.0
	for _, part := range all {
		// Deviations are of growth, not of growth per second, so that the short part of a turn that ended early has little weight.
		off := float64(part.growth) - growth.PerSecond*float64(part.length)/1e9
		squares += off * off
	}
	if parts > 1 {
		growth.StandardError = math.Sqrt(squares*float64(parts)/float64(parts-1)) / seconds
	}
	return growth, float64(whole.answered) / seconds
}
