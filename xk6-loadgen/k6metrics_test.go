package loadgen

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/engine"
)

// distributionOf is the distribution that the engine makes of values in ms, as fine as they are.
func distributionOf(values []float64) (d engine.LatencyDistribution) {
	slices.Sort(values)
	d.Min, d.Max = values[0], values[len(values)-1]
	for _, v := range values {
		d.Mean += v / float64(len(values))
		if last := len(d.Histogram) - 1; last >= 0 && d.Histogram[last].Value == v {
			d.Histogram[last].Count++
		} else {
			d.Histogram = append(d.Histogram, engine.Bar{Value: v, Count: 1})
		}
	}
	return d
}

func TestK6ComputesThePercentilesOfAllRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	logNormal := func() float64 { return math.Exp(random.NormFloat64() / 2) }
	for name, seconds := range map[string][]int{
		"one second": {50_000}, "like seconds": {50_000, 50_000, 50_000, 50_000, 50_000}, "a rise": {10_000, 20_000, 30_000, 40_000, 50_000},
		"a stalled second": {50_000, 50_000, 300, 50_000}, "few requests": {7, 7, 7}, "one request": {1}, "sixty seconds": slices.Repeat([]int{3000}, 60),
	} {
		var draw timeDraw
		sink := metrics.NewSink(metrics.Trend).(*metrics.TrendSink)
		var all []float64
		for _, count := range seconds {
			values := make([]float64, count)
			for i := range values {
				values[i] = logNormal()
			}
			all = append(all, values...)
			drawn := draw.draw(distributionOf(values))
			if len(drawn) > mostDrawn+1 {
				t.Errorf("%s: %d samples of a second", name, len(drawn))
			}
			for _, v := range drawn {
				sink.Add(metrics.Sample{Value: v})
			}
		}
		slices.Sort(all)
		total := 0.0
		for _, v := range all {
			total += v
		}
		within := func(what string, got, want, share float64) {
			if math.Abs(got/want-1) > share {
				t.Errorf("%s: %s is %.4f, of all requests %.4f", name, what, got, want)
			}
		}
		exact := metrics.NewSink(metrics.Trend).(*metrics.TrendSink)
		for _, v := range all {
			exact.Add(metrics.Sample{Value: v})
		}
		for _, p := range []float64{0.5, 0.75, 0.9, 0.95, 0.99} {
			// The rise has too many samples of its first seconds: they were the busiest by then.
			within(fmt.Sprintf("p%g", 100*p), sink.P(p), exact.P(p), 0.03)
		}
		within("the mean", sink.Avg(), exact.Avg(), 0.02)
		within("the least", sink.Min(), exact.Min(), 0.02)
	}
}

func TestTheMeanHoldsWhereTheLastSecondHasATailAndFewerRequests(t *testing.T) {
	even := distributionOf(slices.Repeat([]float64{1}, 3000))
	values := make([]float64, 2990)
	total := 3000.0
	for i := range values {
		values[i] = max(1, float64(i-2890)) // A stall of 100 ms: the last 100 wait for what is left of it.
		total += values[i]
	}
	var draw timeDraw
	sum, samples := 0.0, 0
	for _, second := range []engine.LatencyDistribution{even, distributionOf(values)} {
		for _, v := range draw.draw(second) {
			sum += v
			samples++
		}
	}
	if got, want := sum/float64(samples), total/5990; math.Abs(got/want-1) > 0.08 { // Three samples stand for the stall.
		t.Errorf("the mean is %.3f, of all requests %.3f", got, want)
	}
}

func TestTheRateOfFailedRequestsIsTheMeanOfItsSamples(t *testing.T) {
	for _, share := range []float64{0, 0.0004, 0.003, 0.25, 0.999, 1} {
		var draw failureDraw
		ones, samples := 0.0, 0
		for second := range 300 {
			count := int64(40_000 + second%7*3000)
			for _, v := range draw.draw(count, int64(math.Round(share*float64(count)))) {
				ones += v
				samples++
			}
		}
		if got := ones / float64(samples); math.Abs(got-share) > 1/float64(samples) {
			t.Errorf("%g failed, and %g of %d samples", share, got, samples)
		}
	}
}

func TestManyShortLoadsHaveTheRateOfFailedRequestsTogether(t *testing.T) {
	url := page(t)
	code := `for (let i = 0; i < 100; i++) loadgen.run({ url: '` + url + `/', connections: 1, requests: 400, mix: '{"target":"/","weight":399}\n{"target":"/missing"}' })`
	_, samples, err := script(t, t.Context(), code)
	must(t, err)
	got := k6Sums(samples)
	// 25 ones are expected among 10,000 samples, with a standard deviation of less than 5. A load that a busy machine holds up for a second has
	// more samples.
	if ones, all := got["http_req_failed"], got["http_req_failed samples"]; all < 10_000 || all > 11_000 || ones < 5 || ones > 45 {
		t.Errorf("%v of %v", ones, all)
	}
}

func k6Sums(samples []metrics.Sample) map[string]float64 {
	sums := map[string]float64{}
	for _, s := range samples {
		name := s.Metric.Name
		if expected, isSet := s.Tags.Get("expected_response"); isSet {
			name += " " + expected
		}
		sums[name] += s.Value
		sums[s.Metric.Name+" samples"]++
	}
	return sums
}

var withTags = lib.Options{SystemTags: &metrics.DefaultSystemTagSet}

func TestK6sOwnCountsAreThoseOfTheResult(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1)%4 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, "x")
	}))
	defer server.Close()
	value, samples, err := scriptWith(t, t.Context(), withTags, `loadgen.run({
		url: '`+server.URL+`/', connections: 4, requests: 4000, method: 'POST', tags: { name: 'mine' } })`)
	must(t, err)
	got, bytes := k6Sums(samples), value.Export().(map[string]any)["bytes"].(map[string]any)
	if got["http_reqs true"] != 3000 || got["http_reqs false"] != 1000 {
		t.Errorf("http_reqs %v with and %v without an expected status", got["http_reqs true"], got["http_reqs false"])
	}
	if rate := got["http_req_failed"] / got["http_req_failed samples"]; math.Abs(rate-0.25) > 0.01 {
		t.Errorf("http_req_failed %v", rate)
	}
	if got["data_received"] != float64(bytes["received"].(int64)) || got["data_sent"] != float64(bytes["sent"].(int64)) {
		t.Errorf("data_received %v, data_sent %v, in the result %v", got["data_received"], got["data_sent"], bytes)
	}
	for _, s := range samples {
		method, _ := s.Tags.Get("method")
		name, _ := s.Tags.Get("name")
		if s.Metric.Name == "http_reqs" && (method != "POST" || name != "mine") {
			t.Errorf("tags %v", s.Tags.Map())
		}
	}
}

func TestK6sOwnMetricsCanBeLeftOut(t *testing.T) {
	for _, code := range []string{`loadgen.run({ url: '%s/', requests: 9, k6Metrics: false })`, `loadgen.alternate({ k6Metrics: false, sides: [{ url: '%s/', requests: 9 }] })`} {
		_, samples, err := script(t, t.Context(), fmt.Sprintf(code, page(t)))
		must(t, err)
		if sum(samples, "loadgen_requests", nil) != 9 || sum(samples, "http_reqs", nil) != 0 {
			t.Errorf("%s: %v", code, slices.Sorted(maps.Keys(k6Sums(samples))))
		}
	}
}

func TestTheTwoPartsOfAConnect(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer secure.Close()
	value, samples, err := script(t, t.Context(), `loadgen.run({
		url: '`+secure.URL+`/', requests: 30, keepAlive: false, tls: { insecureSkipVerify: true } })`)
	must(t, err)
	got, mean := k6Sums(samples), value.Export().(map[string]any)["connectMs"].(map[string]any)["mean"].(float64)
	if got["http_req_connecting samples"] != 30 || got["http_req_tls_handshaking samples"] != 30 {
		t.Errorf("%v", got)
	}
	tcp, tls := got["http_req_connecting"]/30, got["http_req_tls_handshaking"]/30
	if math.Abs((tcp+tls)/mean-1) > 0.01 || tls < tcp {
		t.Errorf("TCP %v ms and TLS %v ms, together %v ms", tcp, tls, mean)
	}
	_, samples, _ = script(t, t.Context(), `loadgen.run({ url: '`+page(t)+`/', requests: 3, keepAlive: false })`)
	if got := k6Sums(samples); got["http_req_connecting samples"] != 3 || got["http_req_tls_handshaking samples"] != 0 {
		t.Errorf("without TLS: %v", got)
	}
}

func serveWithoutAllocations(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	response := []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				request := make([]byte, 4096)
				for {
					if _, err := c.Read(request); err != nil {
						return
					}
					if _, err := c.Write(response); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String() + "/"
}

// Samples cost per second: ten times the requests in the same time make as many samples, and no request an allocation.
func TestARequestAllocatesNothing(t *testing.T) {
	url := serveWithoutAllocations(t)
	allocations := func(requests int) float64 {
		before, after := runtime.MemStats{}, runtime.MemStats{}
		runtime.ReadMemStats(&before)
		begin := time.Now()
		bars, samples, err := script(t, t.Context(), fmt.Sprintf(`loadgen.run({ url: '%s', connections: 10, requests: %d }).latencyMs.histogram.length`, url, requests))
		runtime.ReadMemStats(&after)
		must(t, err)
		seconds := time.Since(begin).Seconds()
		if sampled := k6Sums(samples)["http_req_duration samples"] + k6Sums(samples)["http_req_failed samples"]; sampled > (seconds+1)*(2*mostDrawn+1) {
			t.Errorf("%v samples in %v s", sampled, seconds)
		}
		// The script gets each bar of the histogram as an object of two numbers; a busy machine has more of them.
		return float64(after.Mallocs-before.Mallocs) - 4*bars.ToFloat()
	}
	allocations(1000)
	few, many := allocations(10_000), allocations(210_000)
	if perRequest := (many - few) / 200_000; perRequest > 0.02 {
		t.Errorf("%v allocations of a request", perRequest)
	}
}
