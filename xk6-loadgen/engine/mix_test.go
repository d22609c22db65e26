package engine

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Methods, headers, bodies and statuses of a mix, as the server saw them: exact shares and exact bytes.
func TestContractAMixOfRequests(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		long := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		mix := []Request{
			{Target: "/a%20b?x=1", Weight: 5, Headers: []Header{{"X-Own", "a"}, {"X-All", "own"}}},
			{Target: "/a%20b?x=2", Weight: 3, Status: 404},
			{Target: "/b", Method: "HEAD", Weight: 2},
			{Target: "/b", Method: "POST", Weight: 2, Body: []byte("x")},
			{Target: "/b", Method: "PUT", Body: long, Headers: []Header{{"Content-Type", "text/plain"}}},
		}
		var mutex sync.Mutex
		seen := map[string]int{}
		asWritten := func(method, path, xOwn, xAll string, body []byte) string {
			return fmt.Sprintf("%s %s %s %s %x", method, path, xOwn, xAll, sha256.Sum256(body))
		}
		s := x.serve(t, func(r asked) answer {
			// A Host header in any case replaces the address's: the peers refuse a request with two of them.
			if r.header["host"] != "example.test" || len(r.body) > 0 && r.header["content-length"] != fmt.Sprint(len(r.body)) {
				t.Errorf("host %q, content-length %q", r.header["host"], r.header["content-length"])
			}
			mutex.Lock()
			seen[asWritten(r.method, r.path, r.header["x-own"], r.header["x-all"], r.body)]++
			mutex.Unlock()
			if r.path == "/a%20b?x=2" {
				return answer{status: 404, body: "not here"}
			}
			return answer{status: 200, body: "hello"}
		})
		o := x.options(s.url)
		o.Mix, o.Requests, o.Headers = mix, 130, []Header{{"X-All", "load"}, {"hOsT", "example.test"}}
		r := load(t, o)
		if r.Responses[0] != 100 || r.Responses[2] != 30 || r.Unexpected != 0 || r.SuccessRatio() != 1 {
			t.Fatal(r)
		}
		wantWire(t, s, r)
		mutex.Lock()
		defer mutex.Unlock()
		for _, m := range o.mixed(&url.URL{}) {
			xOwn, xAll := "", "load"
			if m.Target == "/a%20b?x=1" {
				xOwn, xAll = "a", "own"
			}
			if n := seen[asWritten(m.Method, m.Target, xOwn, xAll, m.Body)]; n != m.Weight*10 {
				t.Errorf("%s %s came %d times: %v", m.Method, m.Target, n, seen)
			}
		}
		want := []PageFigures{{Page: "/a%20b", Responses: 80, BodyBytes: 50*5 + 30*8}, {Page: "HEAD /b", Responses: 20},
			{Page: "POST /b", Responses: 20, BodyBytes: 100}, {Page: "PUT /b", Responses: 10, BodyBytes: 50}}
		for i, p := range r.Pages {
			if p.MidMeanMs <= 0 || p.MidMeanMs < p.LatencyMs.Min*0.98 || p.MidMeanMs > p.LatencyMs.Max*1.02 {
				t.Errorf("%s: a mean of %g ms", p.Page, p.MidMeanMs)
			}
			if p.LatencyMs, p.MidMeanMs = (LatencyDistribution{}), 0; fmt.Sprint(p) != fmt.Sprint(want[i]) {
				t.Errorf("got %v, want %v", p, want[i])
			}
		}
	})
}

func TestAPageOfItsOwnLatencyIsKnownByIt(t *testing.T) {
	onSome(t, func(t *testing.T, x transport) {
		s := x.serve(t, func(r asked) answer {
			if strings.HasPrefix(r.path, "/slow") {
				time.Sleep(20 * ms) // what is measured
			}
			return answer{status: 200, body: "hello"}
		})
		o := x.options(s.url)
		o.Mix, o.Requests, o.Streams, o.Connections = []Request{{Target: "/", Weight: 3}, {Target: "/slow"}, {Target: "/slow?again"}}, 50, 1, 1
		tried(t, func() string { // On a busy machine the fast page is not fast
			r := load(t, o)
			if len(r.Pages) != 2 || r.Pages[1].MidMeanMs < 20 || r.Pages[1].LatencyMs.P50 < 20 {
				t.Fatalf("%+v", r.Pages)
			}
			if r.Pages[0].MidMeanMs > 10 {
				return fmt.Sprintf("%+v", r.Pages)
			}
			return ""
		})
	})
}

func TestMorePagesThanHaveFiguresAreTheOthers(t *testing.T) {
	o := options(nobody)
	for i := range 3000 {
		o.Mix = append(o.Mix, Request{Target: fmt.Sprintf("/%d?q", i%1500), Weight: 1 + i%1500})
	}
	names, places := pagesOf(o.mixed(&url.URL{}))
	if len(names) != maxPages || names[0] != "/1499" || names[maxPages-1] != OtherPages || places[0] != maxPages-1 || places[1499] != 0 || places[2999] != 0 {
		t.Errorf("%d pages, %s to %s", len(names), names[0], names[len(names)-1])
	}
}

func TestAClassOfAPageIsNearItsLatencies(t *testing.T) {
	last := -1
	for nanoseconds := int64(1); nanoseconds <= longest; nanoseconds += 1 + nanoseconds/300 {
		class := int(pageClass(nanoseconds))
		if off := math.Abs(float64(pageMiddle(class) - nanoseconds)); class < last || class >= pageClasses || off > max(64, 0.008*float64(nanoseconds)) {
			t.Fatalf("%d ns is in class %d, whose middle is %d", nanoseconds, class, pageMiddle(class))
		}
		last = class
	}
	if pageClass(2*longest) != pageClass(longest) || pageClass(-1) != 0 {
		t.Error("beyond the ends")
	}
}
