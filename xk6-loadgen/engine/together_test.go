package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// The last file of each page takes 20 ms, and with it the page.
func TestTheLatencyOfStreamsThatStartTogetherIsThatOfPages(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		if x.streams == 1 {
			return
		}
		const pages, slowest = 10, 20 * ms
		files := int64(x.streams)
		served := func(inTurns bool) Options {
			var begun, done atomic.Int64
			s := x.serve(t, func(asked) answer {
				number := begun.Add(1)
				// A turn that ends during the handshake leaves a page of one file.
				if whole := (number - 1) / files * files; !inTurns && done.Load() < whole {
					t.Errorf("request %d began after %d answers", number, done.Load())
				}
				if number%files == 0 {
					time.Sleep(slowest) // what is measured
				}
				done.Add(1)
				return answer{status: 200, body: "hello"}
			})
			o := x.options(s.url)
			o.Together, o.Connections, o.Threads = true, 1, 1
			return o
		}
		o := served(false)
		o.Requests = pages * files
		r := load(t, o)
		if r.Responses[0] != pages*files || sumOf(r.LatencyMs.Histogram) != pages || r.LatencyMs.Min < 20 {
			t.Error(sumOf(r.LatencyMs.Histogram), r)
		}
		sides := []Side{{Options: served(true)}, {Options: served(true)}}
		for i := range sides {
			sides[i].Duration = 300 * ms
		}
		results, err := Alternate(context.Background(), sides, Turns{Seed: 1})
		must(t, err)
		for _, r := range results {
			latencies := sumOf(r.LatencyMs.Histogram)
			if latencies == 0 || latencies > r.Responses[0]/files || r.LatencyMs.Min < 20 {
				t.Error(latencies, r)
			}
		}
	})
}
