package loadgen

import (
	"errors"
	"fmt"
	"sort"

	"go.k6.io/k6/v2/lib"

	"bakeoff.invalid/xk6-loadgen/engine"
)

// mostDivided bounds the search for a number that can be divided.
const mostDivided = 1 << 40

// divide leaves the part of a load that this k6 makes by its execution segment: connections and requests as k6 divides VUs, and the
// requests of a rate as k6 divides iterations. Each k6 refuses a load that leaves one of them nothing. sides: the loads of the call.
func divide(options lib.Options, o *engine.Options, sides int) error {
	segment, sequence := options.ExecutionSegment, options.ExecutionSegmentSequence
	if segment.FloatLength() < 1 && (sequence == nil || len(*sequence) == 0) {
		return errors.New("segmented: --execution-segment alone does not say what the others make: give --execution-segment-sequence, too")
	}
	tuple, err := lib.NewExecutionTuple(segment, sequence)
	if err != nil {
		return fmt.Errorf("segmented: %w", err)
	}
	generators := len(tuple.Sequence.ExecutionSegmentSequence)
	if generators == 1 {
		return nil
	}
	if sides > 1 {
		return errors.New("segmented: several generators do not take their turns together: give one side")
	}
	threads := ""
	if o.Threads > 1 {
		threads = fmt.Sprintf(" with %d threads each", o.Threads)
	}
	if least := leastOf(tuple, int64(o.Threads)); int64(o.Connections) < least {
		return fmt.Errorf("connections: %d cannot be divided among %d generators%s: give at least %d", o.Connections, generators, threads, least)
	}
	if least := leastOf(tuple, 1); o.Requests > 0 && o.Requests < least {
		return fmt.Errorf("requests: %d cannot be divided among %d generators: give at least %d", o.Requests, generators, least)
	}
	o.Connections, o.Requests = int(tuple.ScaleInt64(int64(o.Connections))), tuple.ScaleInt64(o.Requests)
	o.Stripe = engine.NewStripe(tuple.GetStripedOffsets())
	return nil
}

// leastOf is the least number of which every segment has at least so many.
func leastOf(tuple *lib.ExecutionTuple, share int64) int64 {
	return int64(sort.Search(mostDivided, func(n int) bool {
		for i := range tuple.Sequence.ExecutionSegmentSequence {
			if tuple.Sequence.ScaleInt64(i, int64(n)) < share {
				return false
			}
		}
		return true
	}))
}
