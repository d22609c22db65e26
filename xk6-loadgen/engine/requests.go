//gosec:disable G115 G404 -- the numbers are small, random orders, not secrets
package engine

import (
	"bytes"
	"cmp"
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

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h2"
)

// Request is one of those that a load mixes. Without a method it has the load's method and body.
type Request struct {
	Target  string // Target is a path with its query
	Method  string
	Headers []Header // Headers replace the load's of the same name
	Body    []byte
	Weight  int // Weight is how often it is made beside the others, 0 is 1.
	Status  int // Status is expected, 0: any below 400
}

// request is a Request as the loops need it. It fills one cache line: there may be many.
type request struct {
	bytes  []byte // bytes are all of it; with HTTP/2 the header block without the headers that all share
	body   []byte // with HTTP/2
	before uint32 // before are the bytes that come before the shared headers.
	expected
}

// expected is compared with the response. An attempt has its own copy, because the request has left the processor's cache by then.
type expected struct {
	page   uint32 // page is the index of its page's figures
	status uint16
	isHead bool
}

// mixed returns the requests to make, complete.
func (o Options) mixed(u *url.URL) []Request {
	mix := slices.Clone(o.Mix)
	if len(mix) == 0 {
		mix = []Request{{Target: u.RequestURI()}}
	}
	for i := range mix {
		r := &mix[i]
		if r.Method == "" {
			r.Method, r.Body = o.Method, o.Body
		}
		headers := r.Headers
		r.Headers = slices.DeleteFunc(slices.Clone(o.Headers), func(h Header) bool { return isIn(headers, h.Name) })
		if !isIn(headers, "Host") && !isIn(o.Headers, "Host") {
			r.Headers = slices.Insert(r.Headers, 0, Header{"Host", withoutZone(u.Host)})
		}
		r.Headers = append(r.Headers, headers...)
		r.Weight = cmp.Or(r.Weight, 1)
	}
	return mix
}

// isIn compares names without regard to case (RFC 9110, section 5.1).
func isIn(headers []Header, name string) bool {
	return slices.ContainsFunc(headers, func(h Header) bool { return strings.EqualFold(h.Name, name) })
}

// encodeRequest encodes a request for HTTP/1, body included. It runs once for each request of a mix, before the load.
func encodeRequest(o Options, r Request) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\r\n", r.Method, r.Target, strings.ToUpper(string(o.Protocol)))
	for _, h := range r.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.Name, h.Value)
	}
	// Only if it is not the version's default, as wrk and ab do.
	switch {
	case o.Protocol == HTTP10 && o.KeepAlive:
		b.WriteString("Connection: keep-alive\r\n")
	case o.Protocol == HTTP11 && !o.KeepAlive:
		b.WriteString("Connection: close\r\n")
	}
	if r.saysLength() {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	b.WriteString("\r\n")
	b.Write(r.Body)
	return b.Bytes()
}

// saysLength tells whether the request has a Content-Length (RFC 9110, section 8.6).
func (r Request) saysLength() bool {
	return len(r.Body) > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch
}

// Each request of a mix, and each step of its order, takes memory in every side.
const (
	MaxMix    = 1 << 18
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
	order := make([]uint32, min(sum, MaxMix))
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
		heap.Push(&ready, int(min(due, steps+1)*MaxMix+ranks[request])) // After the last step the order does not matter
	}
	for rank, request := range byRank {
		ranks[request] = int64(rank)
		begin(int32(request))
	}
	for step := range steps {
		for _, request := range from[step] {
			begin(request)
		}
		request := int32(byRank[heap.Pop(&ready).(int)%MaxMix])
		order[step] = uint32(request)
		if again := max(ends[request].whole, step+1); again < steps {
			from[again] = append(from[again], request)
		}
	}
	return order
}

// inOrder sorts the requests by their first place in the order, so that they lie in memory as they follow, and rewrites the order's indexes.
func inOrder(requests []request, order []uint32) []request {
	places := make([]uint32, len(requests)) // from 1 on, 0 has none yet
	laid := make([]request, 0, len(requests))
	size := 0
	for _, r := range requests {
		size += len(r.bytes)
	}
	all := make([]byte, 0, size)
	for step, from := range order {
		if places[from] == 0 {
			r := requests[from]
			begin := len(all)
			all = append(all, r.bytes...)
			r.bytes = all[begin:len(all):len(all)]
			laid = append(laid, r)
			places[from] = uint32(len(laid))
		}
		order[step] = places[from] - 1
	}
	return laid
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// earliest is a heap of deadlines, the earliest first.
type earliest struct{ sort.IntSlice }

func (e *earliest) Push(x any) { e.IntSlice = append(e.IntSlice, x.(int)) }

func (e *earliest) Pop() any {
	last := len(e.IntSlice) - 1
	least := e.IntSlice[last]
	e.IntSlice = e.IntSlice[:last]
	return least
}

// readAhead requests or connections are fetched into the cache at a time. With 64, the kernel's work would evict the first ones.
const readAhead = 16

// mixPlace is a loop's place in the order of the requests.
type mixPlace struct {
	requests []request
	order    []uint32
	step     int
	read     byte // a sum of bytes read ahead: without a use of them the compiler would leave the reads out
}

// next is the next request of the order, which is a cycle.
func (m *mixPlace) next() *request {
	next := &m.requests[m.order[m.step]]
	if m.step++; m.step == len(m.order) {
		m.step = 0
	} else if m.step%readAhead == 0 {
		m.readOn()
	}
	return next
}

// readOn reads a few bytes of the next requests. They are far apart in memory, and a processor fetches several at a time.
func (m *mixPlace) readOn() {
	for _, i := range m.order[m.step:min(m.step+readAhead, len(m.order))] {
		b := m.requests[i].bytes
		m.read += b[0] + b[len(b)/2] + b[len(b)-1]
	}
}

// h2Fields begins with the pseudo-headers (RFC 9113, section 8.3).
func h2Fields(scheme string, r Request) []hpack.HeaderField {
	fields := []hpack.HeaderField{{Name: ":method", Value: r.Method}, {Name: ":scheme", Value: scheme}, {Name: ":path", Value: r.Target}}
	for _, h := range r.Headers {
		if name := strings.ToLower(h.Name); name == "host" {
			fields = slices.Insert(fields, 3, hpack.HeaderField{Name: ":authority", Value: h.Value})
		} else {
			fields = append(fields, hpack.HeaderField{Name: name, Value: h.Value})
		}
	}
	if r.saysLength() {
		fields = append(fields, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(r.Body))})
	}
	return fields
}

// encodeH2Requests makes each request's own headers, and the blocks that all share.
func encodeH2Requests(scheme string, mix []Request, windows h2.Windows) (requests []request, blocks h2.Blocks, err error) {
	fields := make([][]hpack.HeaderField, len(mix))
	for i, r := range mix {
		fields[i] = h2Fields(scheme, r)
	}
	encoded, blocks, err := h2.Encode(fields, windows)
	for i, h := range encoded {
		requests = append(requests, request{bytes: h.Bytes, before: h.Before, body: mix[i].Body})
	}
	return requests, blocks, err
}
