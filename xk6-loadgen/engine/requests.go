package engine

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

func encodeRequest(o Options, u *url.URL) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\r\n", o.Method, u.RequestURI(), strings.ToUpper(string(o.Protocol)))
	if !slices.ContainsFunc(o.Headers, func(h Header) bool { return strings.EqualFold(h.Name, "Host") }) {
		fmt.Fprintf(&b, "Host: %s\r\n", withoutZone(u.Host))
	}
	// Only if it is not the version's default, as wrk and ab do.
	switch {
	case o.Protocol == HTTP10 && o.KeepAlive:
		b.WriteString("Connection: keep-alive\r\n")
	case o.Protocol == HTTP11 && !o.KeepAlive:
		b.WriteString("Connection: close\r\n")
	}
	for _, h := range o.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.Name, h.Value)
	}
	if o.saysLength() {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(o.Body))
	}
	b.WriteString("\r\n")
	b.Write(o.Body)
	return b.Bytes()
}

// saysLength: RFC 9110, section 8.6.
func (o Options) saysLength() bool {
	return len(o.Body) > 0 || o.Method == http.MethodPost || o.Method == http.MethodPut || o.Method == http.MethodPatch
}

const (
	MaxURLs   = 1 << 18
	MaxWeight = 1_000_000_000
)

// orderOf returns a cycle of indexes in a mixed order: after any number of steps each has come up in proportion to its weight, within
// one. The k-th turn of a share p comes between (k-1)/p and k/p steps; the earliest deadline first keeps these limits (Tijdeman, The
// chairman assignment problem, 1980).
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

	type end struct{ whole, rest int64 } // ends are deadlines in steps: a whole number, and a rest in parts of the weight
	ends := make([]end, len(weights))
	from := make([][]int32, steps) // from[step] are the requests that may come from that step on
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
		heap.Push(&ready, int(min(due, steps+1)*MaxURLs+ranks[request])) // After the last step the order does not matter
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

type earliest struct{ sort.IntSlice }

func (e *earliest) Push(x any) { e.IntSlice = append(e.IntSlice, x.(int)) }

func (e *earliest) Pop() any {
	last := len(e.IntSlice) - 1
	least := e.IntSlice[last]
	e.IntSlice = e.IntSlice[:last]
	return least
}

func (l *loop) nextRequest() []byte {
	request := l.plan.requests[l.plan.order[l.step]]
	if l.step++; l.step == len(l.plan.order) {
		l.step = 0
	}
	return request
}

// h2Headers are the blocks that all requests share. The first request puts them into the server's dynamic table.
type h2Headers struct {
	// opening is for a connection's first request, steady for later ones, plain for a server that wants no table of our size.
	opening, steady, plain []byte
	longest                int // the most bytes of a request's frame
}

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
	// The encoder announces the size in the next block, which is thrown away.
	encode(plain, hpack.HeaderField{Name: ":method", Value: o.Method})
	size := uint32(0)
	for _, f := range shared {
		size += f.Size()
	}
	headers = h2Headers{opening: encode(indexing, shared...), steady: encode(indexing, shared...), plain: encode(plain, shared...)}
	if size > hpackTableBytes {
		headers.opening, headers.steady = headers.plain, headers.plain
	}
	start := []hpack.HeaderField{{Name: ":method", Value: o.Method}, {Name: ":scheme", Value: urls[0].Scheme}}
	for _, u := range urls {
		own := start
		if len(urls) > 1 {
			own = append(start[:2:2], path(u))
		}
		request := encode(plain, own...)
		// All of it goes into one frame, after a table size update.
		longest := 1 + len(request) + max(len(headers.opening), len(headers.plain))
		if longest > maxFrameBytes {
			return nil, h2Headers{}, fmt.Errorf("headers: take %d bytes, with HTTP/2 they may take %d", longest, maxFrameBytes)
		}
		headers.longest = max(headers.longest, frameHeaderBytes+longest)
		requests = append(requests, request)
	}
	return requests, headers, nil
}
