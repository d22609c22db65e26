package loadgen

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"
)

func script(t *testing.T, ctx context.Context, code string) (sobek.Value, []metrics.Sample, error) {
	t.Helper()
	return scriptWith(t, ctx, lib.Options{}, code)
}

func scriptWith(t *testing.T, ctx context.Context, options lib.Options, code string) (sobek.Value, []metrics.Sample, error) {
	t.Helper()
	runtime := modulestest.NewRuntime(t)
	runtime.VU.CtxField = ctx
	instance := new(rootModule).NewModuleInstance(runtime.VU)
	must(t, runtime.VU.Runtime().Set("loadgen", instance.Exports().Default))
	out := make(chan metrics.SampleContainer, 1000)
	tags := runtime.VU.InitEnv().Registry.RootTagSet().With("scenario", "a test")
	runtime.MoveToVUContext(&lib.State{
		Samples: out, Tags: lib.NewVUStateTags(tags), VUIDGlobal: 3, Options: options, BuiltinMetrics: runtime.BuiltinMetrics,
	})
	value, err := runtime.VU.Runtime().RunString(code)
	close(out)
	var samples []metrics.Sample
	for container := range out {
		samples = append(samples, container.GetSamples()...)
	}
	return value, samples, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sum(samples []metrics.Sample, name string, tags map[string]string) (total float64) {
	for _, s := range samples {
		matches := s.Metric.Name == name
		for key, want := range tags {
			got, _ := s.Tags.Get(key)
			matches = matches && got == want
		}
		if matches {
			total += s.Value
		}
	}
	return total
}

func page(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, "%s %s", r.Method, r.Header.Get("X-A"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestRunReturnsWhatItSampled(t *testing.T) {
	url := page(t)
	value, samples, err := script(t, t.Context(), `loadgen.run({
		url: '`+url+`?a#b', mix: '{"target":"/"}\n{"target":"/missing","weight":3,"status":404}\n', protocol: 'http/1.1', connections: 5, streams: 1, requests: 1e3, threads: 2,
		keepAlive: true, timeout: '5s', method: 'POST', headers: { 'X-A': 7 }, body: 'hi', tags: { round: 2 },
	})`)
	must(t, err)
	result := value.Export().(map[string]any)
	if result["requests"] != int64(1000) || result["inFlight"] != int64(0) || result["hung"] != int64(0) || result["longestGapMs"].(float64) <= 0 {
		t.Errorf("%v", result)
	}
	responses := result["responses"].(map[string]any)
	if responses["2xx"].(int64)+responses["4xx"].(int64) != 1000 || math.Abs(float64(responses["4xx"].(int64))-750) > 4 {
		t.Errorf("responses %v", responses)
	}
	if statuses := result["statuses"].(map[string]any); len(statuses) != 1 || statuses["404"] != responses["4xx"] {
		t.Errorf("statuses %v of the responses %v", statuses, responses)
	}
	if got := result["bytes"].(map[string]any)["body"]; got != int64(6000) {
		t.Errorf("body bytes %v, want 1000 × len(\"POST 7\")", got)
	}
	for _, key := range []string{"startedAt", "endedAt"} {
		if _, err := time.Parse(time.RFC3339Nano, result[key].(string)); err != nil {
			t.Error(err)
		}
	}
	all := map[string]string{"scenario": "a test", "round": "2", "instance": "3-1"}
	for _, s := range []struct {
		metric string
		tags   map[string]string
		want   any
	}{
		{"loadgen_requests", all, 1000.0},
		{"loadgen_responses", map[string]string{"class": "4xx"}, float64(responses["4xx"].(int64))},
		{"loadgen_latency_bucket", nil, 1000.0},
		{"loadgen_bytes", map[string]string{"part": "body"}, 6000.0},
		{"loadgen_latency_ms", map[string]string{"stat": "p99", "scope": "run"}, result["latencyMs"].(map[string]any)["p99"]},
		{"loadgen_success_ratio", nil, 1.0},
		{"loadgen_rps", nil, result["rps"]},
	} {
		if got := sum(samples, s.metric, s.tags); got != s.want {
			t.Errorf("%s: %v in samples, want %v", s.metric, got, s.want)
		}
	}
	if got := sum(samples, "loadgen_seconds", all); math.Abs(got-result["seconds"].(float64)) > 1e-9 || result["unexpected"] != int64(0) {
		t.Errorf("%v seconds in samples, %v in the result, %v unexpected", got, result["seconds"], result["unexpected"])
	}
	if pages := result["pages"].([]any); len(pages) != 2 || pages[0].(map[string]any)["page"] != "POST /missing" || pages[0].(map[string]any)["responses"] != responses["4xx"] {
		t.Errorf("pages %v", pages)
	}
	window := result["monotonicMs"].([]float64)
	if len(window) != 2 || math.Abs(window[1]-window[0]-1e3*result["seconds"].(float64)) > 1e-3 {
		t.Errorf("the window of %v s is %v ms", result["seconds"], window)
	}
}

func TestErrorsAreCountedByTheirCauses(t *testing.T) {
	value, _, err := script(t, t.Context(), `loadgen.run({ url: 'http://127.0.0.1:9/', requests: 3 })`)
	must(t, err)
	result := value.Export().(map[string]any)
	want := map[string]any{
		"addressNotAvailable": int64(0), "refused": int64(3), "reset": int64(0), "timedOut": int64(0), "short": int64(0), "other": int64(0),
	}
	if causes := result["errorCauses"].(map[string]any); !maps.Equal(causes, want) || result["errors"].(map[string]any)["total"] != int64(3) {
		t.Errorf("causes %v of the errors %v", causes, result["errors"])
	}
}

func TestSeriesNeverShareAPoint(t *testing.T) {
	_, samples, err := script(t, t.Context(), `
		const o = { url: '`+page(t)+`/', connections: 3, duration: '1600ms' };
		loadgen.run(o); loadgen.run(o);`)
	must(t, err)
	seen := map[string]bool{}
	for _, s := range samples {
		key := fmt.Sprint(s.Metric.Name, s.Tags.Map(), s.Time.UnixNano())
		if seen[key] {
			t.Errorf("twice: %s", key)
		}
		seen[key] = true
	}
	if len(seen) < 50 {
		t.Errorf("only %d samples", len(seen))
	}
}

func TestAStoppedVUStillSendsItsSamples(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 100 {
			cancel()
		}
		io.WriteString(w, "x")
	}))
	defer server.Close()
	value, samples, err := script(t, ctx, `loadgen.run({ url: '`+server.URL+`/', connections: 2, duration: '1m' })`)
	must(t, err)
	if got, want := sum(samples, "loadgen_requests", nil), value.Export().(map[string]any)["requests"].(int64); got != float64(want) || want < 90 {
		t.Errorf("%v requests in samples, %d in the result", got, want)
	}
}

func TestWrongOptionsAreNamed(t *testing.T) {
	for _, test := range [][2]string{
		{``, "give an object with options"},
		{`'http://127.0.0.1/'`, "the options must be an object"},
		{`{ mix: 1, requests: 1 }`, "mix: must be a list of requests, or a text with one in JSON on each line, got 1"},
		{`{ mix: ['/'], requests: 1 }`, "mix: 0 must be an object, got '/'"},
		{`{ mix: [{ target: '/' }, { targt: '/' }] }`, `mix: request 2: json: unknown field "targt"`},
		{`{ mix: '{"target":"/","headers":{"a":1}}' }`, `mix: request 1: headers: a: json: cannot unmarshal number`},
		{`{ mix: '\n' }`, "mix: is empty"},
		{`{ connections: '100' }`, "connections: must be a whole number of at least 1, got '100'"},
		{`{ connections: 5n }`, "connections: must be a whole number of at least 1, got 5n"},
		{`{ tls: [] }`, "tls: must be an object, got a list"},
		{`{ url: 7 }`, "url: must be a string, got 7"},
		{`{ conections: 7 }`, `there is no option "conections"; there are: url, mix, protocol`},
		{`{ conections: null }`, `there is no option "conections"`},
		{`{ connections: 1.5 }`, "connections: must be a whole number of at least 1, got 1.5"},
		{`{ requests: -1 }`, "requests: must be a whole number"},
		{`{ duration: 10 }`, "duration: must be a time with a unit, as in '10s' or '500ms', got 10"},
		{`{ duration: '10' }`, "duration: must be a time with a unit"},
		{`{ timeout: '-1s' }`, "timeout: must be a time"},
		{`{ keepAlive: 'yes' }`, "keepAlive: must be true or false, got 'yes'"},
		{`{ headers: ['a'] }`, "headers: must be an object"},
		{`{ headers: { a: {} } }`, "headers: a must be a string"},
		{`{ tags: { scope: 'run' } }`, "tags: scope is set by the module or k6"},
		{`{ rate: '10' }`, "rate: must be a number of requests/s"},
		{`{ rate: 0 }`, "rate: must be a number of requests/s greater than 0, got 0"},
		{`{ buckets: ['1'] }`, "buckets: must be a time with a unit"},
		{`{ netns: '' }`, "netns: is empty"},
		{`{ window: 65535 }`, "window: must be an object, got 65535"},
		{`{ window: { stream: 0 } }`, "window: stream: must be a whole number of at least 1, got 0"},
		{`{ url: 'http://x/', requests: 1, window: { stream: 9 } }`, "window: HTTP/1 has no receive windows; leave window out"},
		{`{ url: 'http://x/', requests: 1, protocol: 'h2c', window: { stream: 2147483648 } }`, "window: must be 1 to 2147483647 bytes, got 2147483648"},
		{`{ url: 'https://x/', requests: 1, protocol: 'h3', window: { connection: 2147483648 } }`, "window: must be 1 to 2147483647 bytes, got 2147483648"},
		{`{ url: 'http://x/', requests: 1, protocol: 'h2c', window: { connection: 65534 } }`, "window: connection must be at least 65535, with which every connection"},
		{`{ tls: { verify: false } }`, `tls: there is no option "verify"; there are: insecureSkipVerify`},
		{`{ tls: { ciphers: 'a' } }`, "tls: ciphers: must be a list"},
	} {
		_, samples, err := script(t, t.Context(), "loadgen.run("+test[0]+")")
		if err == nil || !strings.Contains(err.Error(), test[1]) || len(samples) > 0 {
			t.Errorf("%s: got %v and %d samples, want %q", test[0], err, len(samples), test[1])
		}
	}
}

func TestLeftOutOptionsHaveDefaults(t *testing.T) {
	runtime := modulestest.NewRuntime(t)
	value, _ := runtime.VU.Runtime().RunString(`({ url: 'http://127.0.0.1/', duration: '1m30s', netns: null, warmup: undefined })`)
	o, _, err := parseRun(value)
	must(t, err)
	if o.Connections != 1 || o.Threads != 1 || !o.KeepAlive || o.Timeout != time.Minute || o.Method != "GET" || o.Duration != 90*time.Second || o.Warmup != 0 {
		t.Errorf("%+v", o)
	}
}

func TestEveryMetricOfTheCatalogueIsSampled(t *testing.T) {
	_, samples, err := script(t, t.Context(), `
		loadgen.run({ url: '`+page(t)+`/', requests: 10 });
		loadgen.run({ url: 'http://127.0.0.1:9/', requests: 1 })`)
	must(t, err)
	registered, err := registerMetrics(metrics.NewRegistry())
	must(t, err)
	for name := range registered {
		if !strings.HasPrefix(name, "loadgen_") {
			t.Errorf("%s: is not named loadgen_", name)
		}
		isSampled := false
		for _, s := range samples {
			isSampled = isSampled || s.Metric.Name == name
		}
		if !isSampled {
			t.Errorf("%s: never sampled", name)
		}
	}
}

func TestBucketLabelsSortAsText(t *testing.T) {
	last := ""
	for _, d := range []time.Duration{1000, 1259, 1585, 1995, 2512, 3162, time.Millisecond, time.Second, 1258925412, time.Hour} {
		label := bucketLabel(d)
		if label <= last || len(label) != 14 {
			t.Errorf("%q after %q", label, last)
		}
		last = label
	}
}

func TestHeadersLeaveInTheScriptsOrder(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	names := make(chan []string, 1)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		var seen []string
		for lines := bufio.NewScanner(c); lines.Scan() && lines.Text() != ""; {
			name, _, _ := strings.Cut(lines.Text(), ":")
			seen = append(seen, name)
		}
		names <- seen
		io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	}()
	if _, _, err := script(t, t.Context(), `loadgen.run({
		url: 'http://`+listener.Addr().String()+`/', requests: 1, timeout: '5s', headers: { 'X-Z': 1, Accept: '*/*', 'x-m': 'm', 'X-B': 2, 'X-A': true },
	})`); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET / HTTP/1.1", "Host", "X-Z", "Accept", "x-m", "X-B", "X-A"}
	if got := <-names; !slices.Equal(got, want) {
		t.Errorf("the request has %q, want %q", got, want)
	}
}

func TestAlternateReturnsTheSidesInTheirOrder(t *testing.T) {
	a, b := page(t), page(t)
	value, samples, err := script(t, t.Context(), `loadgen.alternate({ slice: '2ms', seed: 7, sides: [
		{ url: '`+a+`/', connections: 2, requests: 300, tags: { variant: 'a' } },
		{ url: '`+b+`/missing', connections: 3, requests: 200, tags: { variant: 'b' } },
	] })`)
	must(t, err)
	results := value.Export().([]any)
	for i, want := range []struct {
		variant, class string
		requests       int64
	}{{"a", "2xx", 300}, {"b", "4xx", 200}} {
		result := results[i].(map[string]any)
		if result["requests"] != want.requests || result["responses"].(map[string]any)[want.class] != want.requests {
			t.Errorf("side %d: %v", i, result)
		}
		if n := sum(samples, "loadgen_requests", map[string]string{"variant": want.variant}); n != float64(want.requests) {
			t.Errorf("side %d: the samples have %g requests, not %d", i, n, want.requests)
		}
	}
}

func TestOptionsOfAlternateThatAreWrong(t *testing.T) {
	for code, want := range map[string]string{
		`{ sides: 7 }`: "sides: must be a list, got 7",
		`{ side: [] }`: `there is no option "side"; there are: sides, slice, first, seed, warmTogether`,
		`{ sides: [{ url: 'http://127.0.0.1/', requests: 1 }, { urll: 'x' }] }`: `sides[1]: there is no option "urll"`,
		`{ sides: [{ url: 'http://127.0.0.1/', requests: 1, cpuOf: 7 }] }`:      "cpuOf: must be a list, got 7",
	} {
		if _, _, err := script(t, t.Context(), "loadgen.alternate("+code+")"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", code, err, want)
		}
	}
	if _, _, err := script(t, t.Context(), `loadgen.run({ url: 'http://127.0.0.1/', requests: 1, cpuOf: [7] })`); err == nil || !strings.Contains(err.Error(), `there is no option "cpuOf"`) {
		t.Error(err)
	}
}
