package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
)

// wantShares fails where after any number of steps a request has come up more or less often than its weight says, by one or more.
func wantShares(t *testing.T, weights []int, order []uint32) {
	t.Helper()
	sum := 0
	for _, weight := range weights {
		sum += weight
	}
	counts := make([]int, len(weights))
	for step, request := range order {
		counts[request]++
		for i := range counts {
			// Between two of its own steps a request is furthest off before the next one.
			if off := float64(counts[i]) - float64(weights[i])*float64(step+1)/float64(sum); math.Abs(off) >= 1 {
				t.Fatalf("weights %v: after %d steps %d is off by %f", weights, step+1, i, off)
			}
		}
	}
}

func TestOrderKeepsEveryShareWithinOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tables := [][]int{{1}, {7}, {1, 1}, {1, 2, 3}, {100, 1, 1, 1}, {1, 1000}, {6, 10, 15}, {MaxWeight, MaxWeight}}
	for range 200 {
		weights := make([]int, 1+random.IntN(20))
		for i := range weights {
			weights[i] = 1 + random.IntN(1+random.IntN(300))
		}
		tables = append(tables, weights)
	}
	for seed, weights := range tables {
		order := orderOf(weights, uint64(seed))
		wantShares(t, weights, order)
		sum, divisor := 0, 0
		for _, weight := range weights {
			sum, divisor = sum+weight, gcd(weight, divisor)
		}
		if len(order) != sum/divisor {
			t.Errorf("weights %v: the cycle has %d steps", weights, len(order))
		}
	}
}

func TestOrderOfWeightsWithoutACommonMeasureEndsEarly(t *testing.T) {
	weights := []int{MaxWeight, MaxWeight - 1, 3, 999_999_937}
	order := orderOf(weights, 1)
	if len(order) != MaxMix {
		t.Fatalf("%d steps", len(order))
	}
	wantShares(t, weights, order)
}

func TestOrderIsMixedAndTheSameForASeed(t *testing.T) {
	weights := slices.Repeat([]int{1}, 1000)
	order := orderOf(weights, 1)
	if slices.IsSorted(order[:20]) || !slices.Equal(order, orderOf(weights, 1)) || slices.Equal(order, orderOf(weights, 2)) {
		t.Errorf("begins with %v", order[:20])
	}
	// What has a great share does not come in a row.
	if order := orderOf([]int{3, 1, 1, 1}, 1); slices.Equal(order[:3], []uint32{0, 0, 0}) {
		t.Errorf("got %v", order)
	}
}

func TestRequestsLieInMemoryAsTheyComeUp(t *testing.T) {
	requests := []request{{bytes: []byte("never")}, {bytes: []byte("c")}, {bytes: []byte("bb")}, {bytes: []byte("aaa")}}
	order := []uint32{3, 2, 3, 1, 3, 2}
	laid := inOrder(requests, order)
	made := ""
	for _, i := range order {
		made += string(laid[i].bytes) + " "
	}
	if made != "aaa bb aaa c aaa bb " || len(laid) != 3 || string(laid[0].bytes) != "aaa" || string(laid[1].bytes) != "bb" {
		t.Errorf("%q, of a table of %d", made, len(laid))
	}
}

func TestTheMixIsMadeByItsWeights(t *testing.T) {
	t.Parallel()
	uneven := []int{70, 20, 7, 2, 1}
	for name, test := range map[string]struct {
		weights []int
		change  func(*Options)
		off     float64
	}{
		"equal":                 {nil, func(*Options) {}, 1},
		"weights":               {uneven, func(*Options) {}, 1},
		"with a rate":           {uneven, func(o *Options) { o.Rate = 10_000 }, 1},
		"a connection for each": {uneven, func(o *Options) { o.KeepAlive = false }, 1},
		"some in vain":          {uneven, func(*Options) {}, 1},
		// Each begins elsewhere in the cycle.
		"several threads": {uneven, func(o *Options) { o.Threads = 3 }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			counts := make([]atomic.Int64, 5)
			s := transport{protocol: HTTP11}.serve(t, func(r asked) (a answer) {
				counts[r.path[1]-'a'].Add(1)
				if name == "some in vain" && r.path == "/b" {
					a.ending = closing
				}
				a.status = 200
				return a
			})
			o := options(s.url)
			o.Connections, o.Requests = 7, 1234
			for i := range counts {
				o.Mix = append(o.Mix, Request{Target: fmt.Sprintf("/%c", 'a'+i)})
				if test.weights != nil {
					o.Mix[i].Weight = test.weights[i]
				}
			}
			test.change(&o)
			r := load(t, o)
			if name != "some in vain" {
				wantResponses(t, r, o.Requests)
			} else if r.Errors[ErrRead] != counts[1].Load() {
				t.Error(r)
			}
			for i := range counts {
				share := 0.2
				if test.weights != nil {
					share = float64(test.weights[i]) / 100
				}
				if n := counts[i].Load(); math.Abs(float64(n)-share*float64(o.Requests)) >= test.off {
					t.Errorf("%d of %s, whose share is %g", n, o.Mix[i].Target, share)
				}
			}
		})
	}
}
