package loadgen

import (
	"math"
	"math/rand/v2"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/engine"
)

// mostDrawn limits the samples that are drawn from a second.
const mostDrawn = 100

// k6Metrics makes samples of k6's own metrics from the seconds of a load, so that no request costs anything. Counts are exact. The times
// of a second are drawn from its histogram, and a Rate gets ones and zeros with the second's share of failed requests as their mean.
type k6Metrics struct {
	builtin              *metrics.BuiltinMetrics
	tags                 *metrics.TagSet
	expected, unexpected *metrics.TagSet // tags of responses with and without an expected status
	durations            timeDraw
	failures             failureDraw
}

// newK6Metrics sets the tags that k6's own requests have, as far as they hold for all requests and the script has not set them.
func newK6Metrics(state *lib.State, load loadOptions, tags *metrics.TagSet) *k6Metrics {
	enabled := state.Options.SystemTags
	with := func(tags *metrics.TagSet, tag metrics.SystemTag, value string) *metrics.TagSet {
		if _, isSet := tags.Get(tag.String()); isSet || !enabled.Has(tag) {
			return tags
		}
		return tags.With(tag.String(), value)
	}
	if len(load.Mix) == 0 {
		tags = with(with(tags, metrics.TagMethod, load.Method), metrics.TagName, load.URL)
	}
	return &k6Metrics{
		builtin: state.BuiltinMetrics, tags: tags, failures: failureDraw{owed: rand.Float64()}, //nolint:gosec // no secret
		expected: with(tags, metrics.TagExpectedResponse, "true"), unexpected: with(tags, metrics.TagExpectedResponse, "false"),
	}
}

func sampleOf(metric *metrics.Metric, tags *metrics.TagSet, at time.Time, value float64) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: at, Value: value}
}

func (m *k6Metrics) second(batch metrics.Samples, s engine.Second) metrics.Samples {
	failed := s.ErrorTotal() + s.Unexpected
	counts := []struct {
		metric *metrics.Metric
		tags   *metrics.TagSet
		count  int64
	}{
		{m.builtin.HTTPReqs, m.expected, s.Requests - failed}, {m.builtin.HTTPReqs, m.unexpected, failed},
		{m.builtin.DataReceived, m.tags, s.ReceivedBytes}, {m.builtin.DataSent, m.tags, s.SentBytes},
	}
	for _, c := range counts {
		if c.count > 0 {
			batch = append(batch, sampleOf(c.metric, c.tags, s.End, float64(c.count)))
		}
	}
	batch = m.spread(batch, m.builtin.HTTPReqFailed, m.tags, s, m.failures.draw(s.Requests, failed))
	tags := m.tags
	if s.Unexpected == 0 {
		tags = m.expected // With others among them, the histogram does not tell them apart
	}
	return m.spread(batch, m.builtin.HTTPReqDuration, tags, s, m.durations.draw(s.LatencyMs))
}

// connects appends the times of the connections that the window opened. With TLS a connect has two parts.
func (m *k6Metrics) connects(batch metrics.Samples, r engine.Result) metrics.Samples {
	window := engine.Second{End: r.Window.EndedAt, Seconds: r.Seconds}
	var tcp, tls timeDraw
	batch = m.spread(batch, m.builtin.HTTPReqConnecting, m.tags, window, tcp.draw(r.TCPMs))
	return m.spread(batch, m.builtin.HTTPReqTLSHandshaking, m.tags, window, tls.draw(r.HandshakeMs))
}

// spread gives each value a time of its own, since outputs keep one value of a series and time, in an order of no meaning.
func (m *k6Metrics) spread(batch metrics.Samples, metric *metrics.Metric, tags *metrics.TagSet, s engine.Second, values []float64) metrics.Samples {
	step := time.Duration(s.Seconds / float64(max(1, len(values))) * float64(time.Second))
	for place, i := range rand.Perm(len(values)) { //nolint:gosec // no secret
		batch = append(batch, sampleOf(metric, tags, s.End.Add(-time.Duration(place)*step), values[i]))
	}
	return batch
}

// share divides samples among seconds by their counts, because k6 gives each sample the same weight. The busiest second so far has most.
type share struct {
	busiest int64
	left    float64 // left is the part of a sample that earlier seconds had too little for
}

// next returns how many samples a second gets: exactly, and in whole numbers.
func (s *share) next(count int64) (exact float64, whole int) {
	if count == 0 {
		return 0, 0
	}
	s.busiest = max(s.busiest, count)
	exact = float64(min(mostDrawn, s.busiest)) * float64(count) / float64(s.busiest)
	s.left += exact
	floor := math.Floor(s.left + 1e-9)
	s.left -= floor
	return exact, int(floor)
}

// failureDraw draws samples of a Rate: as many ones among zeros as requests failed among all.
type failureDraw struct {
	share share
	// owed are ones that earlier seconds had too little for; at first any part of one, so that many short loads together have the right rate.
	owed float64
}

// draw returns the samples of a second. What it rounds off is owed to the next ones.
func (f *failureDraw) draw(count, failed int64) []float64 {
	exact, n := f.share.next(count)
	if count > 0 {
		f.owed += exact * float64(failed) / float64(count)
	}
	values := make([]float64, n)
	ones := min(int(f.owed), n)
	f.owed -= float64(ones)
	for i := range ones {
		values[i] = 1
	}
	return values
}

// timeDraw draws the times of a load from the histograms of its seconds.
type timeDraw struct {
	share share
	tails float64 // tails is how many samples of the greatest times are due
	owed  float64 // owed is how much less than the times' means the samples so far have in sum
}

// draw returns evenly spread percentiles of a second, below its greatest times; with 100 of them p0 to p99. Each hundredth is followed by
// a sample that stands for the greatest times and makes the mean right: of 101 values k6's p99 is the last but one. The maximum itself
// would weigh as much as a hundredth of the second's requests. All values of a second go out if they are few.
func (t *timeDraw) draw(d engine.LatencyDistribution) []float64 {
	count := int64(0)
	for _, bar := range d.Histogram {
		count += bar.Count
	}
	exact, n := t.share.next(count)
	t.owed += exact * d.Mean
	values := make([]float64, 0, n+1)
	value, bar, seen := d.Min, -1, int64(0)
	for i := range int64(n) {
		for rank := 1 + i*count/int64(n); seen < rank; seen += d.Histogram[bar].Count {
			bar++
		}
		value = max(d.Min, min(d.Histogram[bar].Value, d.Max))
		t.owed -= value
		values = append(values, value)
	}
	if int64(n) < count {
		t.tails += float64(n) / mostDrawn
	}
	if t.tails >= 0.5 {
		tail := max(value, min(t.owed+d.Mean, d.Max))
		t.tails--
		t.owed += d.Mean - tail
		values = append(values, tail)
	}
	return values
}
