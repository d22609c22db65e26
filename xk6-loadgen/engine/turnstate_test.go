package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A turn is walked on a fake clock. Times are milliseconds from its begin: the ramp is until 10, the window is 20 long.
func TestATurnGoesFromStateToState(t *testing.T) {
	type step struct {
		at, responses int64  // when the loop's poll returns, and how many responses it brings
		then          string // the state after the iteration, and whether events count
	}
	for name, c := range map[string]struct {
		rate        float64
		withoutRamp bool
		inOneTurn   bool
		outstanding int64
		warmup      bool // the turn is the warm-up
		windowEnd   int64
		steps       []step
		after       string // the state between this turn and the next one
		left        int64  // when the time under load ended
	}{
		"with a response at each edge": {outstanding: 2, steps: []step{
			{0, 0, "opening"}, {5, 1, "opening"}, {9, 0, "opening"},
			// The response that is an edge belongs to the time before it.
			{12, 1, "opening"}, {13, 1, "steady, counts"}, {29, 3, "steady, counts"}, {30, 0, "concluding, counts"}, {31, 0, "concluding, counts"},
			{33, 1, "concluding, counts"}, {34, 1, "done"},
		}, after: "resting", left: 31},
		"whose responses come late": {outstanding: 9, steps: []step{
			{0, 0, "opening"}, {30, 0, "concluding"}, {32, 1, "concluding"}, {33, 1, "awaiting"}, {1040, 1, "awaiting"}, {2500, 0, "done"}, // Both edges are the same response.
		}, after: "listening", left: 10},
		"without any response": {outstanding: 1, steps: []step{
			{0, 0, "opening"}, {31, 0, "concluding"}, {9000, 0, "concluding"}, {10_100, 0, "done"},
		}, after: "listening", left: 10_100},
		"in one turn, whose first response comes late": {inOneTurn: true, outstanding: 1, steps: []step{
			{0, 0, "opening"}, {31, 0, "concluding"}, {32, 0, "concluding, counts"}, {40, 1, "done"},
		}, after: "resting", left: 40},
		"without a ramp": {withoutRamp: true, outstanding: 1, steps: []step{
			{0, 0, "steady, counts"}, {19, 2, "steady, counts"}, {20, 0, "awaiting, counts"}, {24, 1, "done"},
		}, after: "resting", left: 24},
		"at a rate": {rate: 100, outstanding: 1, steps: []step{
			{0, 0, "steady, counts"}, {29, 2, "steady, counts"}, {30, 0, "awaiting, counts"}, {35, 1, "done"},
		}, after: "resting", left: 30},
		"that is the window's last": {windowEnd: 32, outstanding: 1, steps: []step{
			// A rest of less than a quarter of a turn belongs to it.
			{0, 0, "opening"}, {12, 1, "opening"}, {31, 0, "steady, counts"}, {32, 0, "concluding, counts"}, {33, 1, "done"},
		}, after: "over", left: 31},
		"that is the warm-up": {warmup: true, outstanding: 1, steps: []step{
			{0, 0, "steady, counts"}, {50, 1, "steady, counts"}, {90, 0, "awaiting, counts"}, {91, 1, "done"},
		}, after: "resting", left: 91},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ms = int64(time.Millisecond)
				o := options(nobody)
				o.Rate, o.Warmup, o.KeepAlive, o.Duration = c.rate, time.Second, false, time.Minute
				l := idleLoop(t, o)
				s := l.shared
				s.alone, s.gate.running, s.turn.inOneTurn, s.loops, s.gate.back = false, 1, c.inOneTurn, []*loop{l}, make(chan *loop, 1)
				s.turn.pace.patience, s.turn.pace.quiet = 2*second, second
				s.turn.length, s.turn.ramp = 20*ms, 10*ms
				if c.withoutRamp || c.warmup {
					s.turn.ramp = 0
				}
				s.turn.pace.ramp = s.turn.ramp
				l.turn.state, l.window.phase, l.window.phaseEnd, l.turn.sliceEnd = resting, measuring, never, 0
				if c.windowEnd > 0 {
					l.window.phaseEnd = c.windowEnd * ms
				}
				if c.warmup {
					l.window.phase, s.turn.length = unbegun, never
				}
				l.growth.next = never
				l.joinTurn()
				if c.warmup {
					l.window.phase = warming
				}
				l.counts.outstanding = c.outstanding
				l.endSliceEarly()
				began := s.now()
				for _, step := range c.steps {
					time.Sleep(time.Duration(began + step.at*ms - s.now()))
					if c.warmup && step.at == 90 {
						l.window.phase = warmedUp
						l.turn.endBy(s.now())
					}
					if got := iterateTurn(l, step.responses); got != step.then {
						t.Fatalf("after %d ms: %s, want %s", step.at, got, step.then)
					}
				}
				isLast := l.wasLastTurn()
				if isLast {
					l.advanceTurn(loopDone)
				} else {
					l.advanceTurn(turnDone)
				}
				l.endTurn()
				if got := l.turn.state.String(); got != c.after || l.turn.left != began+c.left*ms {
					t.Errorf("afterwards: %s, under load until %d µs, want %s, %d", got, (l.turn.left-began)/1000, c.after, c.left*1000)
				}
				if isLast {
					return
				}
				s.gate.ready.Store(0)
				if l.joinTurn(); !l.turn.state.starts() {
					t.Errorf("the next turn begins with %s", l.turn.state)
				}
			})
		})
	}
}

// iterateTurn does what an iteration does for the turn, with responses that the poll has brought. It describes the loop afterwards.
func iterateTurn(l *loop, responses int64) string {
	l.clock = l.shared.now()
	l.turn.sawNothing = responses == 0
	atEdge := l.turn.state.isAtEdge()
	if atEdge {
		l.advanceTurn(polled)
	}
	if responses > 0 {
		l.counts.lastEnd = l.clock
		if !l.turn.state.starts() { // Otherwise other requests follow
			l.counts.outstanding = max(0, l.counts.outstanding-responses)
		}
		if atEdge {
			l.setEdge()
		}
	}
	if l.clock >= l.turn.sliceEnd && l.turnIsDone() {
		return "done"
	}
	if l.counts.current == l.counts.outside {
		return l.turn.state.String()
	}
	return fmt.Sprint(l.turn.state, ", counts")
}

func (s turnState) String() string {
	return [...]string{"resting", "listening", "joining", "opening", "steady", "concluding", "awaiting", "over"}[s]
}
