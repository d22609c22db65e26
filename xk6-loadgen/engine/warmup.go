package engine

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// stretchParts are the parts of a stretch over which its trend is fitted.
	stretchParts = 8
	// The warm-up goes on after a stretch that gained at least leastGain (or Options.WarmupGain), within itself or since the one before, and
	// more than its error: one in 40 does by chance. If the gain is not known, or may be unclearGain, there is one more stretch.
	leastGain, unclearGain = 0.03, 0.5
	leastRateGain          = 0.15 // at a rate, since the stretch before: latency varies with what else runs on the core
	// The first half of a warm-up is not judged. It is shorter, down to shortestUnjudged, where the rest would be shorter than longStretch:
	// turns are held against that, and in less of it noise hides more (docs/verdicts.md).
	shortestUnjudged, longStretch = int64(100 * time.Millisecond), int64(300 * time.Millisecond)
	// More of a long warm-up, which earlier ones have shown to be needed, is not judged: its server still got faster then.
	longestFirst = int64(2 * time.Second)
	// A server that uses fewer cores, and at which no requests queue, has time left: what a response costs decides neither requests/s nor
	// latency there, and compilers go on making it cheaper for minutes. A busy one uses fewer too if others take its cores.
	coresAtLimit = 0.5
	// With fewer responses in a part its rate is mostly chance, and with fewer parts a trend is.
	fewestInPart, fewestParts = 10, 4
)

// unjudgedWarmup is the length of the warm-up before its first stretch, in nanoseconds.
func (p *plan) unjudgedWarmup() int64 {
	warmup := int64(p.Warmup)
	return max(min(warmup/2, max(shortestUnjudged, warmup-longStretch)), warmup-longestFirst)
}

// stretch is a loop's part in a stretch of the warm-up: continuous load, half of the warm-up so far or more. A warm-up whose server still gets
// faster is doubled, up to Options.WarmupLimit. Marks are taken at the stretch's begin and at the end of each part.
type stretch struct {
	number     int32 // from 1; 0: connections open, nothing is judged
	from, part int64 // part is the length of a part
	marks      stretchMarks
	before     stretchMarks // before are the marks of the stretch before
	marked     int
	nextMark   int64
	isJudged   bool // the loop has its marks, and awaits the others
}

// loopWarmup is a loop's part in the warm-up, which began on the run's clock.
type loopWarmup struct {
	began   int64
	stretch stretch
	slowest int64 // the longest latency before the present stretch
}

// stretchMark is what had happened by a time: responses, the sum of their latencies since the stretch began and the server's CPU time, both in
// nanoseconds, and the queue.
type stretchMark struct{ at, responses, latencies, cpu, queued int64 }

// stretchMarks are the marks at a stretch's begin and at the end of each part.
type stretchMarks [stretchParts + 1]stretchMark

// add adds another loop's marks of the same stretch. Only the marks of loop 0 have the server's CPU time.
func (m *stretchMarks) add(other *stretchMarks) {
	for i := range m {
		m[i].responses += other[i].responses
		m[i].latencies += other[i].latencies
		m[i].queued += other[i].queued
	}
}

// warmth is the state on which the loops of a side agree after each stretch.
type warmth struct {
	arrived atomic.Int32
	judged  atomic.Int32 // the number of the last stretch that has been judged
	// Written by the last loop to arrive, read by the others once judged says so.
	isWarm      bool
	wasSteady   bool    // in the stretch before
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
	Gain                 float64 // RPS as a multiple of that of the first stretch; 1 if that had no response
}

// beginStretch begins a stretch at `from`, whose latencies are recorded anew.
func (l *loop) beginStretch(number int32, from, until int64) {
	l.warmup.stretch = stretch{number: number, before: l.warmup.stretch.marks, from: from, part: max(1, (until-from)/stretchParts), nextMark: from}
	l.window.phaseEnd = until
}

// isMarking tells whether the stretch still has marks to take. While connections open it has none: handshakes cost the server CPU time.
func (w *stretch) isMarking() bool { return w.number > 0 && w.marked < len(w.marks) }

// mark takes the marks that are due, the first of which begins the stretch.
func (l *loop) mark() {
	w := &l.warmup.stretch
	for w.isMarking() && l.clock >= w.nextMark {
		if w.marked == 0 {
			l.warmup.slowest = max(l.warmup.slowest, l.counts.interval.latency.max)
			l.counts.interval.latency.reset()
		}
		m := stretchMark{at: l.clock, responses: l.counts.responses, latencies: l.counts.interval.latency.total(), queued: l.model.queued(l.clock)}
		if l.number == 0 {
			m.cpu = l.shared.server.processes.CPU()
		}
		w.marks[w.marked] = m
		w.marked++
		w.nextMark = w.from + int64(w.marked)*w.part
	}
}

// endStretch tells whether the warm-up is over. After each stretch the loops agree whether another one follows.
func (l *loop) endStretch() (isOver bool) {
	s, w := l.shared, &l.warmup.stretch
	if w.number == 0 {
		// The rest of the warm-up is the first stretch that counts. Connections that were slow to open leave it a quarter.
		warmup := int64(l.plan.Warmup)
		l.beginStretch(1, l.clock, max(l.warmup.began+warmup, l.clock+warmup/4))
		return false
	}
	if !w.isJudged {
		l.mark()
		w.isJudged = true
		if int(s.warmth.arrived.Add(1)) == l.plan.Threads {
			s.judge(l.plan, l.clock)
		}
	}
	if l.plan.WarmupLimit == 0 || !l.plan.Segment.IsWhole() {
		return true // No loop waits for another one, and no k6 for others
	}
	if s.warmth.judged.Load() < w.number {
		l.window.phaseEnd = l.clock + recheckEvery
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
	first := &s.loops[0].warmup.stretch
	sums, before, length := first.marks, first.before, now-s.loops[0].warmup.began
	for _, l := range s.loops[1:] {
		sums.add(&l.warmup.stretch.marks)
		before.add(&l.warmup.stretch.before)
	}
	from, to := sums[0], sums[stretchParts]
	seconds := float64(max(1, to.at-from.at)) / 1e9
	c := &Continuous{Seconds: seconds, RPS: float64(to.responses-from.responses) / seconds, WarmupSeconds: float64(length) / 1e9, Gain: 1}
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
	parts, partsBefore := sums.parts(p.Rate > 0), before.parts(p.Rate > 0)
	speed, cost := parts.trends()
	isAtLimit := float64(to.cpu-from.cpu) >= coresAtLimit*float64(to.at-from.at) || s.queued(from, to)
	least := max(leastGain, math.Log1p(p.WarmupGain))
	isFaster := speed.rises(least) || isHigher(partsBefore.speeds, parts.speeds, least)
	isCheaper := isAtLimit && (cost.rises(least) || isHigher(partsBefore.costs, parts.costs, least))
	switch {
	case length >= limit:
		w.isWarm = true
	case p.Rate > 0:
		isFaster = isFaster && !isLittle(partsBefore.speeds, parts.speeds)
		isCheaper = isCheaper && !isLittle(partsBefore.costs, parts.costs)
		w.isWarm = !isFaster && !isCheaper
	case isFaster || isCheaper:
		w.isWarm, w.wasSteady = false, false
	default:
		isClear := speed.points > 0 && (!isAtLimit || cost.gain+cost.margin < unclearGain)
		isSteady := isClear || length >= 2*int64(p.Warmup)
		w.isWarm = isSteady && (w.wasSteady || !p.WarmupConfirmed || !isAtLimit)
		w.wasSteady = isSteady
	}
	w.next = now
	if p.Threads > 1 {
		w.next += barrierDelay
	}
	w.until = w.next + min(length, max(limit-length, int64(stretchParts)))
	w.arrived.Store(0)
	w.judged.Add(1)
}

// queued tells whether requests queued at the server between two marks, as far as the latency without a queue is known.
func (s *shared) queued(from, to stretchMark) bool {
	lone, answered := s.probe.latency, to.responses-from.responses
	return lone > 0 && to.latencies-from.latencies >= queuesFrom*lone*answered && answered > 0
}

// trend is a line of least squares through a figure's logarithms; not known without points. gain is its rise over the stretch, give or take
// margin (95 %).
type trend struct {
	points       int
	gain, margin float64
}

// rises tells whether the gain is at least this, and not by chance.
func (t trend) rises(least float64) bool { return t.gain >= max(least, t.margin) }

// stretchFigures are of the parts of a stretch: times, and the logarithms of the speed (responses/s; at a rate, which sets these, responses
// per time that they took) and of responses per CPU time (nil: not known).
type stretchFigures struct {
	at, speeds, costs []float64
	length            float64
}

// parts are the figures of each part. Parts with few responses are joined.
func (m *stretchMarks) parts(atRate bool) (f stretchFigures) {
	f.length = float64(m[stretchParts].at - m[0].at)
	from := m[0]
	for _, to := range m[1:] {
		answered := float64(to.responses - from.responses)
		if answered < fewestInPart || to.at <= from.at {
			continue
		}
		f.at = append(f.at, float64(from.at+to.at)/2)
		took := to.at - from.at
		if atRate {
			took = to.latencies - from.latencies
		}
		if took > 0 {
			f.speeds = append(f.speeds, math.Log(answered/float64(took)))
		}
		if cpu := float64(to.cpu - from.cpu); cpu > 0 {
			f.costs = append(f.costs, math.Log(answered/cpu))
		}
		from = to
	}
	if len(f.speeds) < len(f.at) {
		f.speeds = nil
	}
	if len(f.costs) < len(f.at) {
		f.costs = nil
	}
	return f
}

// trends are those of the speed and of responses per CPU time. A trend without points is not known.
func (f *stretchFigures) trends() (speed, cost trend) {
	return trendOf(f.at, f.speeds, f.length), trendOf(f.at, f.costs, f.length)
}

// isHigher tells whether the mean rose by at least this, and by more than its error (Welch's t): compilers make a server faster in leaps.
func isHigher(before, now []float64, least float64) bool {
	if min(len(before), len(now)) < fewestParts {
		return false
	}
	margin := studentsT[len(studentsT)-1] * math.Sqrt(meanVariance(before)+meanVariance(now))
	return mean(now)-mean(before) >= max(least, margin)
}

// isLittle tells whether the mean rose by too little to matter at a rate. The first stretch has none to compare with.
func isLittle(before, now []float64) bool {
	return len(before) > 0 && mean(now)-mean(before) < leastRateGain
}

// meanVariance is the square of the mean's standard error.
func meanVariance(of []float64) float64 {
	n, m, squares := float64(len(of)), mean(of), 0.0
	for _, v := range of {
		squares += (v - m) * (v - m)
	}
	return squares / (n - 1) / n
}

// studentsT is the 97.5 % quantile of Student's t by degrees of freedom, from 2.
var studentsT = []float64{4.303, 3.182, 2.776, 2.571, 2.447}

// trendOf fits y over x, over a stretch of this length. The margin is Student's t (n−2 degrees of freedom) times the standard error.
func trendOf(x, y []float64, length float64) trend {
	n := float64(len(y))
	if len(y) < fewestParts {
		return trend{}
	}
	meanX, meanY := mean(x), mean(y)
	across, along := 0.0, 0.0
	for i := range y {
		across += (x[i] - meanX) * (y[i] - meanY)
		along += (x[i] - meanX) * (x[i] - meanX)
	}
	slope, rest := across/along, 0.0
	for i := range y {
		off := y[i] - meanY - slope*(x[i]-meanX)
		rest += off * off
	}
	standardError := math.Sqrt(rest / (n - 2) / along)
	return trend{len(y), slope * length, studentsT[len(y)-fewestParts] * standardError * length}
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	return sum / float64(len(of))
}
