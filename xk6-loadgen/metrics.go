package loadgen

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"go.k6.io/k6/v2/metrics"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/engine"
)

// catalogue is the one list of the metrics, which dashboards are built from too.
//
//go:embed metrics.json
var catalogue []byte

// loadMetrics are the catalogue's metrics by name.
type loadMetrics map[string]*metrics.Metric

// registerMetrics registers the catalogue. VUs share the metrics: k6 returns the same one for the same name.
func registerMetrics(registry *metrics.Registry) (loadMetrics, error) {
	var entries []struct {
		Name string             `json:"name"`
		Type metrics.MetricType `json:"type"`
		Unit string             `json:"unit"`
	}
	if err := json.Unmarshal(catalogue, &entries); err != nil {
		return nil, fmt.Errorf("metrics.json: %w", err)
	}
	m := loadMetrics{}
	for _, entry := range entries {
		contains := metrics.Default
		if entry.Unit == "bytes" {
			contains = metrics.Data
		}
		metric, err := registry.NewMetric(entry.Name, entry.Type, contains)
		if err != nil {
			return nil, err
		}
		m[entry.Name] = metric
	}
	return m, nil
}

// pusher makes k6 samples, also after the VU was stopped: k6 takes them until its VUs have returned.
type pusher struct {
	metrics loadMetrics
	tags    *metrics.TagSet
	out     chan<- metrics.SampleContainer
	batch   metrics.Samples
	silent  bool
	k6      *k6Metrics // nil without samples of k6's own metrics
}

// add adds a sample to the batch. A name that the catalogue lacks is a mistake in this package, so it panics.
func (p *pusher) add(at time.Time, name string, tags *metrics.TagSet, value float64) {
	metric, ok := p.metrics[name]
	if !ok {
		panic("k6/x/loadgen: " + name + " is not in metrics.json")
	}
	p.batch = append(p.batch, sampleOf(metric, tags, at, value))
}

func (p *pusher) send() {
	if !p.silent {
		p.out <- p.batch
	}
	p.batch = nil
}

// second makes the samples of a second. The engine calls it on a goroutine of the side's own.
func (p *pusher) second(s engine.Second) {
	at := s.End
	p.add(at, "loadgen_seconds", p.tags, s.Seconds)
	p.add(at, "loadgen_requests", p.tags, float64(s.Requests))
	for i, class := range engine.StatusClassNames {
		p.addCount(at, "loadgen_responses", p.tags.With("class", class), s.Responses[i])
	}
	for i, kind := range engine.ErrorKindNames {
		p.addCount(at, "loadgen_errors", p.tags.With("kind", kind), s.Errors[i])
	}
	received, sent := p.tags.With("direction", "received"), p.tags.With("direction", "sent")
	p.addCount(at, "loadgen_bytes", received.With("part", "headers"), s.HeaderBytes)
	p.addCount(at, "loadgen_bytes", received.With("part", "body"), s.BodyTotal())
	p.addCount(at, "loadgen_bytes", sent.With("part", "all"), s.SentBytes)
	for _, bucket := range s.Buckets {
		p.add(at, "loadgen_latency_bucket", p.tags.With("le", bucketLabel(bucket.End)), float64(bucket.Count))
	}
	if s.ResponseTotal() > 0 {
		p.addLatency(at, p.tags, s.LatencyMs)
	}
	p.add(at, "loadgen_connections", p.tags, float64(s.Connections))
	p.add(at, "loadgen_generator_cpu", p.tags, s.GeneratorCPU)
	if p.k6 != nil {
		p.batch = p.k6.second(p.batch, s)
	}
	p.send()
}

// addCount leaves zeros out: a kind of error that does not happen needs no series.
func (p *pusher) addCount(at time.Time, name string, tags *metrics.TagSet, n int64) {
	if n != 0 {
		p.add(at, name, tags, float64(n))
	}
}

// addLatency adds a sample for each statistic, in milliseconds, by the tag stat.
func (p *pusher) addLatency(at time.Time, tags *metrics.TagSet, d engine.LatencyDistribution) {
	values := percentiles(d)
	for _, stat := range []string{"min", "mean", "sd", "p50", "p75", "p90", "p95", "p99", "p999", "max"} {
		p.add(at, "loadgen_latency_ms", tags.With("stat", stat), values[stat].(float64))
	}
}

// result makes the samples of the whole load, once, at its end.
func (p *pusher) result(r engine.Result) {
	if r.ResponseTotal() > 0 {
		p.addLatency(r.Window.EndedAt, p.tags.With("scope", "run"), r.LatencyMs)
	}
	p.add(r.Window.EndedAt, "loadgen_rps", p.tags, r.RPS)
	p.add(r.Window.EndedAt, "loadgen_success_ratio", p.tags, r.SuccessRatio())
	if p.k6 != nil {
		p.batch = p.k6.connects(p.batch, r)
	}
	p.send()
}

// bucketLabel is the bucket's upper end in seconds, to the nanosecond, and zero-padded, since tags sort as text.
func bucketLabel(end time.Duration) string { return fmt.Sprintf("%014.9f", end.Seconds()) }
