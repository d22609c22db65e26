package engine

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

const (
	// MaxURLs bounds the memory of an order, and so the number of URLs.
	MaxURLs   = 1 << 18
	MaxWeight = 1_000_000_000
)

// orderOf is a cycle of the places of several requests: after any number of steps each has come up as often as its weight says,
// within one, and not in the order in which they are given, of which a short load would see the beginning only. Where the weights
// have no common measure that makes the cycle short enough, it ends early: then what has less than its share of one is left out.
//
// The k-th time of a request with the share p has to come after (k-1)/p steps and before k/p. Whoever is due first of those that
// may come keeps all of these limits (Tijdeman, The chairman assignment problem, 1980).
func orderOf(weights []int, seed uint64) []uint32 {
	divisor, sum := 0, int64(0)
	for _, weight := range weights {
		divisor = gcd(weight, divisor)
	}
	for _, weight := range weights {
		sum += int64(weight / divisor)
	}
	order := make([]uint32, min(sum, MaxURLs))
	steps := int64(len(order))

	// ends is where the time under way ends, in steps: a whole number and a rest, of its weight.
	type end struct{ whole, rest int64 }
	ends := make([]end, len(weights))
	// from are the requests that may come from a step on.
	from := make([][]int32, steps)
	byRank := rand.New(rand.NewPCG(seed, 0)).Perm(len(weights))
	ranks := make([]int64, len(weights))
	var ready earliest
	begin := func(request int32) {
		weight := int64(weights[request] / divisor)
		e := &ends[request]
		e.whole += sum / weight
		if e.rest += sum % weight; e.rest >= weight {
			e.whole, e.rest = e.whole+1, e.rest-weight
		}
		due := e.whole
		if e.rest > 0 {
			due++
		}
		// What is due after the last step has no order.
		heap.Push(&ready, int(min(due, steps+1)*MaxURLs+ranks[request]))
	}
	for rank, request := range byRank {
		ranks[request] = int64(rank)
		begin(int32(request))
	}
	for step := range steps {
		for _, request := range from[step] {
			begin(request)
		}
		request := int32(byRank[heap.Pop(&ready).(int)%MaxURLs])
		order[step] = uint32(request)
		if again := max(ends[request].whole, step+1); again < steps {
			from[again] = append(from[again], request)
		}
	}
	return order
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// earliest is a heap: the least is taken first.
type earliest struct{ sort.IntSlice }

func (e *earliest) Push(x any) { e.IntSlice = append(e.IntSlice, x.(int)) }

func (e *earliest) Pop() any {
	last := len(e.IntSlice) - 1
	least := e.IntSlice[last]
	e.IntSlice = e.IntSlice[:last]
	return least
}

// nextRequest is what is sent for the URL that is next.
func (l *loop) nextRequest() []byte {
	request := l.plan.requests[l.plan.order[l.step]]
	if l.step++; l.step == len(l.plan.order) {
		l.step = 0
	}
	return request
}

// h2Headers are the header fields that all requests of a run share, as blocks. They go into the server's dynamic table with the
// first request of a connection, so that the blocks do not depend on the order in which requests are made.
type h2Headers struct {
	// opening is for a connection's first request, steady for those after it. plain does without the dynamic table, for
	// a server that does not want one of our size.
	opening, steady, plain []byte
	// longest is how many bytes a request's frame has at most.
	longest int
}

// encodeH2Requests makes what the header block of every URL's request begins with, and what all of them share. Its errors name
// the option.
func encodeH2Requests(o Options, urls []*url.URL) (requests [][]byte, headers h2Headers, err error) {
	shared := []hpack.HeaderField{{Name: ":authority", Value: withoutZone(urls[0].Host)}}
	for _, h := range o.Headers {
		if name := strings.ToLower(h.Name); name == "host" {
			shared[0].Value = h.Value
		} else {
			shared = append(shared, hpack.HeaderField{Name: name, Value: h.Value})
		}
	}
	if o.saysLength() {
		shared = append(shared, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(o.Body))})
	}
	path := func(u *url.URL) hpack.HeaderField { return hpack.HeaderField{Name: ":path", Value: u.RequestURI()} }
	if len(urls) == 1 {
		shared = slices.Insert(shared, 0, path(urls[0]))
	}

	var buffer bytes.Buffer
	indexing, plain := hpack.NewEncoder(&buffer), hpack.NewEncoder(&buffer)
	encode := func(encoder *hpack.Encoder, fields ...hpack.HeaderField) []byte {
		buffer.Reset()
		for _, f := range fields {
			encoder.WriteField(f) //nolint:errcheck // into memory
		}
		return bytes.Clone(buffer.Bytes())
	}
	plain.SetMaxDynamicTableSize(0)
	// That is said at the start of what is encoded next, which is thrown away: a connection says it when it comes to it.
	encode(plain, hpack.HeaderField{Name: ":method", Value: o.Method})
	size := uint32(0)
	for _, f := range shared {
		size += f.Size()
	}
	headers = h2Headers{opening: encode(indexing, shared...), steady: encode(indexing, shared...), plain: encode(plain, shared...)}
	if size > hpackTableBytes {
		// They would push each other out of the table.
		headers.opening, headers.steady = headers.plain, headers.plain
	}
	start := []hpack.HeaderField{{Name: ":method", Value: o.Method}, {Name: ":scheme", Value: urls[0].Scheme}}
	for _, u := range urls {
		own := start
		if len(urls) > 1 {
			own = append(start[:2:2], path(u))
		}
		request := encode(plain, own...)
		// They are sent in one frame, with a table size update before them.
		longest := 1 + len(request) + max(len(headers.opening), len(headers.plain))
		if longest > maxFrameBytes {
			return nil, h2Headers{}, fmt.Errorf("headers: take %d bytes, with HTTP/2 they may take %d", longest, maxFrameBytes)
		}
		headers.longest = max(headers.longest, frameHeaderBytes+longest)
		requests = append(requests, request)
	}
	return requests, headers, nil
}
