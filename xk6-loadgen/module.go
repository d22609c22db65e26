// Package loadgen is the k6 module k6/x/loadgen. A script calls run, or alternate for several servers, once for a whole load:
//
//	script ──options──► params.go ──engine.Options──► engine ──Second──► metrics.go, k6metrics.go ──samples──► k6
//	script ◄─────────── summary (module.go) ◄────────── engine.Result
//
// A call blocks its VU until the load is over. The engine makes the requests on threads of its own, so k6 gets one set of samples a second, and
// none for a request. Nothing in the engine knows k6. README.md lists options, results and metrics; index.d.ts has their types.
package loadgen

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/engine"
)

func init() { modules.Register("k6/x/loadgen", new(rootModule)) }

type rootModule struct{}

// instance is the module in one VU. calls numbers its loads, for the tag instance.
type instance struct {
	vu      modules.VU
	metrics loadMetrics
	calls   int
}

// NewModuleInstance is called once for each VU that imports the module.
func (*rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	registered, err := registerMetrics(vu.InitEnv().Registry)
	if err != nil {
		panic(fmt.Errorf("k6/x/loadgen: %w", err))
	}
	return &instance{vu: vu, metrics: registered}
}

// Exports are the functions that a script imports.
func (m *instance) Exports() modules.Exports {
	return modules.Exports{Default: map[string]any{"run": function(m, "run", m.run), "alternate": function(m, "alternate", m.alternate)}}
}

// function makes a script's function of a call: it works in VUs only, and its errors begin with its name.
func function[T any](m *instance, name string, call func(*lib.State, sobek.Value) (T, error)) func(sobek.Value) (T, error) {
	return func(options sobek.Value) (result T, err error) {
		if state := m.vu.State(); state == nil {
			err = errors.New("call it in the default function, not while k6 initialises")
		} else {
			result, err = call(state, options)
		}
		if err != nil {
			err = fmt.Errorf("loadgen.%s: %w", name, err)
		}
		return result, err
	}
}

// run is loadgen.run(options). When the VU is stopped the engine stops too, and the samples so far still go out.
func (m *instance) run(state *lib.State, value sobek.Value) (map[string]any, error) {
	load, call, err := parseRun(value)
	if err == nil && call.Segmented {
		err = divide(state.Options, &load.Options, 1)
	}
	if err != nil {
		return nil, err
	}
	push := m.pusherOf(state, load, call)
	result, err := engine.Run(m.vu.Context(), load.Options, push.second)
	if err == nil || errors.Is(err, engine.ErrNoAnswer) {
		push.result(result) // A threshold must not pass because a dead server has no figures
	}
	if err != nil {
		return nil, err
	}
	return summary(result), nil
}

// alternate is loadgen.alternate({ sides, slice, first, seed, warmTogether }).
func (m *instance) alternate(state *lib.State, value sobek.Value) ([]any, error) {
	given, turns, call, err := parseAlternate(value)
	if err != nil {
		return nil, err
	}
	var pushers []*pusher
	var sides []engine.Side
	for _, side := range given {
		if call.Segmented {
			if err := divide(state.Options, &side.Options, len(given)); err != nil {
				return nil, err
			}
		}
		push := m.pusherOf(state, side.loadOptions, call)
		pushers = append(pushers, push)
		sides = append(sides, engine.Side{Options: side.Options, CPUOf: side.CPUOf, OnSecond: push.second})
	}
	results, err := engine.Alternate(m.vu.Context(), sides, turns)
	summaries := []any{}
	for i, result := range results {
		if err == nil || errors.Is(err, engine.ErrNoAnswer) {
			pushers[i].result(result)
		}
		summaries = append(summaries, summary(result))
	}
	if err != nil {
		return nil, err
	}
	return summaries, nil
}

// pusherOf tags a load with an instance, which keeps the points of loads at the same time apart.
func (m *instance) pusherOf(state *lib.State, load loadOptions, call callOptions) *pusher {
	m.calls++
	all := state.Tags.GetCurrentValues().Tags
	for _, tag := range load.Tags {
		all = all.With(tag.Name, tag.Value)
	}
	all = all.With("instance", fmt.Sprintf("%d-%d", state.VUIDGlobal, m.calls))
	push := &pusher{metrics: m.metrics, tags: all, out: state.Samples, silent: !call.Samples}
	if call.K6Metrics {
		push.k6 = newK6Metrics(state, load, all)
	}
	return push
}

// summary is the result as a script gets it. Times are milliseconds, instants ISO 8601 in UTC.
func summary(r engine.Result) map[string]any {
	statuses := map[string]any{}
	for i, count := range r.Statuses {
		if count > 0 {
			statuses[strconv.Itoa(300+i)] = count
		}
	}
	errorCounts := named(engine.ErrorKindNames[:], r.Errors[:])
	errorCounts["total"] = r.ErrorTotal()
	buckets := []any{}
	for _, bucket := range r.Buckets {
		entry := map[string]any{"fromMs": milliseconds(bucket.From), "toMs": nil, "count": bucket.Count}
		if bucket.To > 0 {
			entry["toMs"] = milliseconds(bucket.To)
		}
		buckets = append(buckets, entry)
	}
	var negotiated, maxConcurrentStreams, turns, serverCPU, serverMemory, continuous, queueGrowth, gain any
	if r.TLS != nil {
		negotiated = map[string]any{"version": r.TLS.Version, "cipher": r.TLS.Cipher, "keyExchange": r.TLS.KeyExchange}
	}
	if r.MaxConcurrentStreams > 0 {
		maxConcurrentStreams = r.MaxConcurrentStreams
	}
	if t := r.Turns; t != nil {
		turns = map[string]any{
			"count": t.Count, "responses": t.Responses, "sliceMs": t.SliceMs, "rampMs": t.RampMs, "waits": t.Waits, "stoodStill": t.StoodStill,
		}
	}
	if c := r.Continuous; c != nil {
		continuous = map[string]any{
			"seconds": c.Seconds, "rps": c.RPS, "cpuMicros": c.CPUMicros, "p50Ms": c.P50Ms, "p99Ms": c.P99Ms,
			"queueGrowthPerSecond": c.QueueGrowthPerSecond, "warmupSeconds": c.WarmupSeconds, "gain": c.Gain,
		}
	}
	if r.Gain > 0 {
		gain = r.Gain
	}
	if g := r.QueueGrowth; g != nil {
		queueGrowth = map[string]any{"perSecond": g.PerSecond, "standardError": g.StandardError}
	}
	if cpu := r.ServerCPU; cpu != nil {
		var waits any
		if w := cpu.Cores.Waits; w != nil {
			waits = map[string]any{"server": w.Server, "generator": w.Generator}
		}
		serverCPU = map[string]any{
			"seconds": cpu.Seconds, "idleShare": cpu.IdleShare, "gain": cpu.Gain,
			"cores": map[string]any{
				"seconds": cpu.Cores.Seconds, "processes": cpu.Cores.Processes, "interrupts": cpu.Cores.Interrupts, "servers": cpu.Cores.Servers,
				"stolen": cpu.Cores.Stolen, "waits": waits,
			},
		}
	}
	if r.ServerMemoryBytes > 0 {
		serverMemory = r.ServerMemoryBytes
	}
	return map[string]any{
		"unexpected": r.Unexpected, "otherBodies": r.OtherBodies, "pages": pages(r.Pages),
		"requests": r.Requests, "warmupRequests": r.WarmupRequests, "inFlight": r.InFlight, "hung": r.Hung, "unsent": r.Unsent,
		"longestGapMs": r.LongestGapMs, "seconds": r.Seconds, "rps": r.RPS, "gain": gain,
		"responses": named(engine.StatusClassNames[:], r.Responses[:]), "bodyBytes": named(engine.StatusClassNames[:], r.BodyBytes[:]), "statuses": statuses, "errors": errorCounts,
		"errorCauses": named(engine.ErrorCauseNames[:], r.Causes[:]), "errorExample": r.ErrorExample,
		"bytes": map[string]any{
			"received": r.ReceivedBytes, "headers": r.HeaderBytes, "headersDecoded": r.HeadersDecodedBytes, "body": r.BodyTotal(), "sent": r.SentBytes,
		},
		"latencyMs": latency(r.LatencyMs), "connectMs": latency(r.ConnectMs), "firstByteMs": latency(r.FirstByteMs),
		"sendDelayMs": latency(r.SendDelayMs), "readDelayMs": latency(r.ReadDelayMs), "buckets": buckets, "tls": negotiated, "maxConcurrentStreams": maxConcurrentStreams,
		"perConnectionRps": distribution(r.PerConnectionRPS), "perThreadRps": distribution(r.PerThreadRPS),
		"wire": map[string]any{
			"connections": r.Wire.Connections, "handshakes": r.Wire.Handshakes, "resumed": r.Wire.Resumed, "segmentsOut": r.Wire.SegmentsOut, "segmentsIn": r.Wire.SegmentsIn,
			"dataSegmentsIn": r.Wire.DataSegmentsIn, "resentSegments": r.Wire.Resent, "wireBytesOut": r.Wire.BytesOut, "wireBytesIn": r.Wire.BytesIn,
		},
		"startedAt": instant(r.Window.StartedAt), "endedAt": instant(r.Window.EndedAt), "monotonicMs": []float64{r.Window.MonotonicMs[0], r.Window.MonotonicMs[1]},
		"cpuSeconds": r.CPUSeconds, "turns": turns, "serverCpu": serverCPU, "serverMemoryBytes": serverMemory,
		"continuous": continuous, "queueGrowth": queueGrowth,
	}
}

func pages(figures []engine.PageFigures) []any {
	all := []any{}
	for _, p := range figures {
		all = append(all, map[string]any{
			"page": p.Page, "responses": p.Responses, "unexpected": p.Unexpected, "errors": p.Errors, "bodyBytes": p.BodyBytes,
			"unexpectedBodyBytes": p.UnexpectedBodyBytes,
			"p50Ms":               p.LatencyMs.P50, "p99Ms": p.LatencyMs.P99, "midMeanMs": p.MidMeanMs,
		})
	}
	return all
}

func named(names []string, counts []int64) map[string]any {
	m := map[string]any{}
	for i, name := range names {
		m[name] = counts[i]
	}
	return m
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func instant(t time.Time) string           { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func distribution(d engine.Distribution) map[string]any {
	return map[string]any{"min": d.Min, "mean": d.Mean, "sd": d.SD, "withinSd": d.WithinSD, "max": d.Max}
}

func percentiles(d engine.LatencyDistribution) map[string]any {
	m := distribution(d.Distribution)
	m["p50"], m["p75"], m["p90"], m["p95"], m["p99"], m["p999"] = d.P50, d.P75, d.P90, d.P95, d.P99, d.P999
	return m
}

// latency is a distribution in milliseconds as a script gets it, with its histogram as pairs of value and count.
func latency(d engine.LatencyDistribution) map[string]any {
	m, histogram := percentiles(d), []any{}
	for _, bar := range d.Histogram {
		histogram = append(histogram, []any{bar.Value, bar.Count})
	}
	m["histogram"] = histogram
	return m
}
