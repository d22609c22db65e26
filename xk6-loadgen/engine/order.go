package engine

import (
	"container/heap"
	"math/rand/v2"
	"sort"
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
