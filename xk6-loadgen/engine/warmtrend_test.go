package engine

import (
	"math"
	"testing"
	"time"
)

// marksOf are of parts of 100 ms, each with so many responses at so many microseconds of CPU time each; stalled parts end with the next one.
func marksOf(responses, micros []float64, stalled ...int) *stretchMarks {
	marks := &stretchMarks{}
	for i := range responses {
		marks[i+1] = stretchMark{
			at:        int64(i+1) * 100e6,
			responses: marks[i].responses + int64(responses[i]),
			cpu:       marks[i].cpu + int64(responses[i]*micros[i]*1e3),
		}
	}
	for _, i := range stalled {
		marks[i+1] = marks[i+2]
	}
	return marks
}

func each(value float64) []float64 {
	values := make([]float64, stretchParts)
	for i := range values {
		values[i] = value
	}
	return values
}

// growing begins with first and grows by share from part to part.
func growing(first, share float64) []float64 {
	values := make([]float64, stretchParts)
	for i := range values {
		values[i] = first * math.Pow(1+share, float64(i))
	}
	return values
}

func TestTrendsOfAWarmUp(t *testing.T) {
	uneven := []float64{900, 1100, 1000, 1200, 800, 1000, 900, 1100}
	for name, test := range map[string]struct {
		marks             *stretchMarks
		points            int
		speed, cost       float64 // gains of logarithms over the stretch
		speedRises, cheap bool
	}{
		"steady":                   {marksOf(each(1000), each(10)), 8, 0, 0, false, false},
		"faster by 2 % a part":     {marksOf(growing(100_000, 0.02), each(10)), 8, 8 * math.Log(1.02), 0, true, false},
		"cheaper by 2 % a part":    {marksOf(each(1000), growing(10, -0.02)), 8, 0, -8 * math.Log(0.98), false, true},
		"slower":                   {marksOf(growing(100_000, -0.05), growing(10, 0.05)), 8, 8 * math.Log(0.95), -8 * math.Log(1.05), false, false},
		"uneven":                   {marksOf(uneven, each(10)), 8, 0, 0, false, false},
		"no CPU time known":        {marksOf(growing(100_000, 0.02), each(0)), 8, 8 * math.Log(1.02), 0, true, false},
		"two parts in one":         {marksOf(each(1000), growing(10, -0.1), 3), 7, 0, -8 * math.Log(0.9), false, true},
		"few responses, joined":    {marksOf(each(5), each(10)), 4, 0, 0, false, false},
		"too few to know":          {marksOf(each(4), each(10)), 0, 0, 0, false, false},
		"no response, ended early": {&stretchMarks{}, 0, 0, 0, false, false},
	} {
		parts := test.marks.parts(false)
		speed, cost := parts.trends()
		if speed.points != test.points || speed.rises(leastGain) != test.speedRises || cost.rises(leastGain) != test.cheap {
			t.Errorf("%s: %+v, %+v", name, speed, cost)
		}
		if math.Abs(speed.gain-test.speed) > 0.08 || math.Abs(cost.gain-test.cost) > 0.08 {
			t.Errorf("%s: gains %g and %g, by arithmetic %g and %g", name, speed.gain, cost.gain, test.speed, test.cost)
		}
	}
}

func TestMarksAreWholeAfterAStandstill(t *testing.T) {
	o := options("http://127.0.0.1:9/")
	o.Duration = time.Second
	l := idleLoop(t, o)
	l.counts.interval = &interval{latency: newRecorder()}
	l.beginStretch(1, 1000, 1000+8*100)
	for _, at := range []int64{1000, 1100, 2500} { // after the second part the process stalled until behind the end
		l.clock = at
		l.counts.responses += 10
		l.mark()
	}
	if w := l.warmup.stretch; w.marked != stretchParts+1 || w.marks[stretchParts].at != 2500 || w.marks[stretchParts].responses != 30 {
		t.Errorf("%+v", w)
	}
}
