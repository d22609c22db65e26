package link

import (
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/histogram"
)

// longestLateness is the greatest that the histogram takes.
const longestLateness = int64(10 * time.Minute)

// counters are of one direction, since they were taken last.
type counters struct {
	// Traffic has no lateness yet.
	Traffic
	// refused are packets that the device did not take, and does not count itself.
	refused  int64
	lateness *histogram.Histogram
	latest   int64
}

func newCounters() *counters {
	// Two digits: within 1 %.
	return &counters{lateness: histogram.New(longestLateness, 2)}
}

// came counts a packet that came to the link.
func (c *counters) came(packet []byte) {
	c.Packets++
	c.Bytes += int64(len(packet))
	*c.Kinds.of(packet)++
}

// left counts a packet that leaves so many nanoseconds late.
func (c *counters) left(late int64) {
	c.Delivered++
	c.latest = max(c.latest, late)
	c.lateness.Record(min(max(late, 0), longestLateness), 1)
}

func (c *counters) traffic() Traffic {
	milliseconds := func(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }
	percentiles := c.lateness.Percentiles(50, 99)
	t := c.Traffic
	t.LatenessMs = Lateness{
		// The histogram gives the upper end of a value's class, which may be above the greatest value.
		P50: milliseconds(min(percentiles[0], c.latest)),
		P99: milliseconds(min(percentiles[1], c.latest)),
		Max: milliseconds(c.latest),
	}
	return t
}

// forgetLateness begins lateness anew.
func (c *counters) forgetLateness() {
	c.lateness.Reset()
	c.latest = 0
}
