package engine

import (
	"math"
	"sync/atomic"
)

const (
	// stretchParts are the parts of a stretch over which its trend is fitted.
	stretchParts = 8
	// A trend of at least leastGain over a stretch, and of so many standard errors, makes the warm-up longer: by chance one in 40 does
	// (Student's t, 6 degrees of freedom).
	leastGain      = 0.03
	standardErrors = 2.45
	// With fewer responses in a part its rate is mostly chance.
	fewestInPart = 10
)

// stretch is a loop's part in a stretch of the warm-up: continuous load, half of the warm-up so far. A warm-up whose server still gets
// faster is doubled, up to Options.WarmupLimit. Marks are taken at the stretch's begin and at the end of each part.
type stretch struct {
	number     int32 // from 1; 0: connections open, nothing is judged
	from, part int64 // part is the length of a part
	marks      [stretchParts + 1]stretchMark
	marked     int
	nextMark   int64
	isJudged   bool // the loop has its marks, and awaits the others
}

type stretchMark struct{ at, responses, cpu, queued int64 }

// warmth is what the loops of a side agree on after each stretch.
type warmth struct {
	come   atomic.Int32
	judged atomic.Int32 // the number of the last stretch that has been judged
	// Written by the last loop to come, read by the others once judged says so.
	isWarm      bool
	next, until int64   // next and until are the next stretch's bounds.
	cold        float64 // responses/s of the first stretch
	continuous  *Continuous
}

// Continuous is the end of the warm-up: the side's load without turns.
type Continuous struct {
	Seconds, RPS         float64
	CPUMicros            float64 // CPU time of the server per response; 0: not known
	P50Ms, P99Ms         float64
	QueueGrowthPerSecond float64 // at a rate
	WarmupSeconds        float64 // the length of the whole warm-up
	Gain                 float64 // RPS as a multiple of that of the first stretch
}

// beginStretch begins a stretch at `from`, whose latencies are recorded anew.
func (l *loop) beginStretch(number int32, from, until int64) {
	l.stretch = stretch{number: number, from: from, part: max(1, (until-from)/stretchParts), nextMark: from}
	l.phaseEnd = until
}

// mark takes the marks that are due, the first of which begins the stretch.
func (l *loop) mark() {
	w := &l.stretch
	for w.marked < len(w.marks) && l.clock >= w.nextMark {
		if w.marked == 0 {
			l.interval.latency.reset()
		}
		m := stretchMark{at: l.clock, responses: l.responses, queued: l.queued(l.clock)}
		if l.number == 0 {
			m.cpu = l.shared.server.processes.CPU()
		}
		w.marks[w.marked] = m
		w.marked++
		w.nextMark = max(w.from+int64(w.marked)*w.part, l.clock+1)
	}
}

// endStretch tells whether the warm-up is over. After each stretch the loops agree whether another one follows.
func (l *loop) endStretch() (isOver bool) {
	s, w := l.shared, &l.stretch
	if w.number == 0 {
		// The second half of the warm-up is the first stretch that counts. Connections that were slow to open leave it a quarter.
		warmup := int64(l.plan.Warmup)
		l.beginStretch(1, l.clock, max(l.warmupBegan+warmup, l.clock+warmup/4))
		return false
	}
	if !w.isJudged {
		l.mark()
		w.isJudged = true
		if int(s.warmth.come.Add(1)) == l.plan.Threads {
			s.judge(l.plan, l.clock)
		}
	}
	if l.plan.WarmupLimit == 0 || !l.plan.Segment.isWhole() {
		return true // No loop waits for another one, and no k6 for others
	}
	if s.warmth.judged.Load() < w.number {
		l.phaseEnd = l.clock + recheckEvery
		return false
	}
	if s.warmth.isWarm {
		return true
	}
	l.beginStretch(w.number+1, s.warmth.next, s.warmth.until)
	return false
}

// judge ends a stretch for all loops, of which the calling one is the last.
func (s *shared) judge(p *plan, now int64) {
	w := &s.warmth
	first := &s.loops[0].stretch
	sums, length := first.marks, now-s.loops[0].warmupBegan
	for i, l := range s.loops {
		for mark := range sums {
			if i > 0 {
				sums[mark].responses += l.stretch.marks[mark].responses
				sums[mark].queued += l.stretch.marks[mark].queued
			}
		}
	}
	from, to := sums[0], sums[stretchParts]
	seconds := float64(max(1, to.at-from.at)) / 1e9
	c := &Continuous{Seconds: seconds, RPS: float64(to.responses-from.responses) / seconds, WarmupSeconds: float64(length) / 1e9}
	if answered := to.responses - from.responses; answered > 0 {
		c.CPUMicros = float64(to.cpu-from.cpu) / 1e3 / float64(answered)
	}
	if p.Rate > 0 {
		c.QueueGrowthPerSecond = float64(to.queued-from.queued) / seconds
	}
	if first.number == 1 {
		w.cold = c.RPS
	}
	if w.cold > 0 {
		c.Gain = c.RPS / w.cold
	}
	w.continuous = c
	limit := int64(p.WarmupLimit)
	w.isWarm = length >= limit || !improves(&sums, p.Rate == 0)
	w.next = now
	if p.Threads > 1 {
		w.next += meetsAfter
	}
	w.until = w.next + min(length, max(limit-length, int64(stretchParts)))
	w.come.Store(0)
	w.judged.Add(1)
}

// improves tells whether the server became faster over the stretch: in responses/s, except at a rate, or in CPU time per response.
func improves(marks *[stretchParts + 1]stretchMark, byRate bool) bool {
	var rates, costs []float64
	for i := 1; i < len(marks); i++ {
		from, to := marks[i-1], marks[i]
		answered := float64(to.responses - from.responses)
		if answered < fewestInPart || to.at <= from.at {
			return false
		}
		rates = append(rates, math.Log(answered/float64(to.at-from.at)))
		if cpu := float64(to.cpu - from.cpu); cpu > 0 {
			costs = append(costs, -math.Log(cpu/answered))
		}
	}
	return byRate && rises(rates) || len(costs) == stretchParts && rises(costs)
}

// rises tells whether a line of least squares through evenly spaced logarithms rises by leastGain or more, beyond chance.
func rises(y []float64) bool {
	n, mean := float64(len(y)), 0.0
	for _, v := range y {
		mean += v / n
	}
	across, along := 0.0, 0.0
	for i, v := range y {
		x := float64(i) - (n-1)/2
		across += x * (v - mean)
		along += x * x
	}
	slope, rest := across/along, 0.0
	for i, v := range y {
		d := v - mean - slope*(float64(i)-(n-1)/2)
		rest += d * d
	}
	return slope*n >= leastGain && slope >= standardErrors*math.Sqrt(rest/(n-2)/along)
}
