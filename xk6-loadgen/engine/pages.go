//gosec:disable G115 -- the numbers are small
package engine

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/histogram"
)

// maxPages have figures of their own; the rest, with the smallest weights, have figures together. A page takes 7.7 kB in each loop.
const maxPages = 1000

// OtherPages is the name of those that have figures together.
const OtherPages = "others"

// PageFigures are those of the requests for one path, with whatever query. A method other than GET makes another page.
type PageFigures struct {
	Page                                     string
	Responses, Unexpected, Errors, BodyBytes int64
	UnexpectedBodyBytes                      int64 // those of BodyBytes in unexpected responses
	LatencyMs                                LatencyDistribution
	MidMeanMs                                float64 // MidMeanMs is the mean of the middle half of the latencies.
}

// page has the counts of a page.
type page struct{ responses, unexpected, errors, bodyBytes, unexpectedBodyBytes int64 }

// Classes of latencies are pageUnit wide at first, and then a 64th of a power of two: no more than 1.6 %.
const (
	pageUnit    = 128 // nanoseconds
	pageScale   = histogram.Scale(6)
	pageClasses = 1920 // up to an hour
)

// pageClass is the class of a latency, which counts up to an hour.
func pageClass(nanoseconds int64) int16 {
	return int16(pageScale.Class(max(0, min(nanoseconds, longest)) / pageUnit))
}

func pageMiddle(class int) int64 {
	from, to := pageScale.Ends(class)
	return (from + to + 1) * pageUnit / 2
}

// pageName is what requests have in common that share figures: their path, and a method other than GET.
func pageName(r Request) string {
	path, _, _ := strings.Cut(r.Target, "?")
	if r.Method == http.MethodGet {
		return path
	}
	return r.Method + " " + path
}

// pagesOf names the pages, the greatest weight first, and gives each request's index among them.
func pagesOf(mix []Request) (names []string, indexes []int) {
	weights := map[string]int{}
	for _, r := range mix {
		name := pageName(r)
		if _, known := weights[name]; !known {
			names = append(names, name)
		}
		weights[name] += r.Weight
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(weights[b], weights[a]) })
	if len(names) > maxPages {
		names = append(names[:maxPages-1], OtherPages)
	}
	places := map[string]int{}
	for i, name := range names {
		places[name] = i
	}
	for _, r := range mix {
		place, hasOwn := places[pageName(r)]
		if !hasOwn {
			place = maxPages - 1
		}
		indexes = append(indexes, place)
	}
	return names, indexes
}

// pageRecorder counts responses by page, many at a time, since a processor fetches several places in memory at once. nil counts nothing.
type pageRecorder struct {
	pages     []page
	latencies []uint32 // latencies are counts by class, and then by page: the few classes in use are near each other
	recent    []pageResponse
}

// pageResponse is a response that pageRecorder remembers. It is small, so that recentResponses of them stay in the cache.
type pageResponse struct {
	bodyBytes    int64
	page         uint32
	class        int16
	isUnexpected bool
}

// notRecorded is the class of a response without a latency of its own; recentResponses fit into a processor's nearest cache.
const notRecorded, recentResponses = int16(-1), 256

// newPages is nil for a single page, whose figures are the load's.
func newPages(p *plan) *pageRecorder {
	if len(p.pages) < 2 {
		return nil
	}
	n := len(p.pages)
	return &pageRecorder{make([]page, n), make([]uint32, pageClasses*n), make([]pageResponse, 0, recentResponses)}
}

// note remembers a response. One call in recentResponses counts those remembered.
func (r *pageRecorder) note(response pageResponse) {
	if len(r.recent) == recentResponses {
		r.count()
	}
	r.recent = append(r.recent, response)
}

// count counts the remembered responses, whose pages the processor can fetch at the same time.
func (r *pageRecorder) count() {
	for i := range r.recent {
		response := &r.recent[i]
		p := &r.pages[response.page]
		p.responses++
		p.bodyBytes += response.bodyBytes
		if response.isUnexpected {
			p.unexpected++
			p.unexpectedBodyBytes += response.bodyBytes
		}
		if response.class != notRecorded {
			r.latencies[int(response.class)*len(r.pages)+int(response.page)]++
		}
	}
	r.recent = r.recent[:0]
}

func (r *pageRecorder) reset() {
	if r != nil {
		r.recent = r.recent[:0]
		clear(r.pages)
		clear(r.latencies)
	}
}

// add adds another loop's counts, or another cycle's. It also counts what both remember.
func (r *pageRecorder) add(other *pageRecorder) {
	if r == nil {
		return
	}
	r.count()
	other.count()
	for i, from := range other.pages {
		to := &r.pages[i]
		to.responses += from.responses
		to.unexpected += from.unexpected
		to.errors += from.errors
		to.bodyBytes += from.bodyBytes
		to.unexpectedBodyBytes += from.unexpectedBodyBytes
	}
	for i, n := range other.latencies {
		r.latencies[i] += n
	}
}

// figures are those of each page, in the order of names. A latency counts as its class's middle, which is off by 0.8 % at most.
func (r *pageRecorder) figures(names []string) (figures []PageFigures) {
	if r == nil {
		return nil
	}
	r.count()
	var used []int
	for class := range pageClasses {
		row := r.latencies[class*len(r.pages):][:len(r.pages)]
		if slices.ContainsFunc(row, func(n uint32) bool { return n > 0 }) {
			used = append(used, class)
		}
	}
	all := newRecorder()
	for i, p := range r.pages {
		all.reset()
		for _, class := range used {
			if n := r.latencies[class*len(r.pages)+i]; n > 0 {
				all.recordMany(pageMiddle(class), int64(n))
			}
		}
		figures = append(figures, PageFigures{
			Page: names[i], Responses: p.responses, Unexpected: p.unexpected, Errors: p.errors, BodyBytes: p.bodyBytes,
			UnexpectedBodyBytes: p.unexpectedBodyBytes,
			LatencyMs:           all.distribution(), MidMeanMs: all.midMeanMs(),
		})
	}
	return figures
}

// midMeanMs is the interquartile mean in milliseconds, with each class's values in its middle; 0 without values.
func (r *recorder) midMeanMs() float64 {
	from, to := float64(r.count)/4, float64(r.count)*3/4
	sum, seen := 0.0, 0.0
	for class := range r.histogram.All {
		in := min(to, seen+float64(class.Count)) - max(from, seen)
		if seen += float64(class.Count); in > 0 {
			sum += in * float64(class.From+class.To) / 2
		}
	}
	return sum / max(1, to-from) / 1e6
}
