package histogram

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const longest = int64(time.Hour)

// spread are values over all magnitudes, the ends included.
func spread(count int) []int64 {
	random := rand.New(rand.NewPCG(1, 2))
	values := []int64{0, 1, 2047, 2048, 2049, 4095, 4096, longest - 1, longest}
	for len(values) < count {
		values = append(values, random.Int64N(1<<random.IntN(42))%(longest+1))
	}
	return values
}

func TestEachValueIsInItsClass(t *testing.T) {
	for digits, exact := range map[int]int64{2: 255, 3: 2047} {
		share := []int64{1, 10, 100, 1000}[digits]
		h := New(longest, digits)
		for _, v := range spread(100_000) {
			from, to := h.scale.Ends(h.scale.Class(v))
			if v < from || v > to || (to-from+1)*share > max(v, share) || v <= exact && from != to {
				t.Fatalf("%d digits: %d is in the class from %d to %d", digits, v, from, to)
			}
		}
		next := int64(0)
		for class := range h.counts {
			from, to := h.scale.Ends(class)
			if from != next || h.scale.Class(from) != class || h.scale.Class(to) != class {
				t.Fatalf("%d digits: class %d is from %d to %d, and the one before it ends below %d", digits, class, from, to, next)
			}
			next = to + 1
		}
		if next <= longest {
			t.Errorf("%d digits: the last class ends at %d", digits, next-1)
		}
	}
}

func TestPercentilesAreThoseOfTheSortedValues(t *testing.T) {
	values := spread(10_001)
	h := New(longest, 3)
	for _, v := range values {
		h.Record(v, 1)
	}
	slices.Sort(values)
	percents := []float64{0, 0.001, 1, 50, 75, 90, 95, 99, 99.9, 100}
	for i, got := range h.Percentiles(percents...) {
		rank := max(1, int(percents[i]/100*float64(len(values))+0.5))
		if _, want := h.scale.Ends(h.scale.Class(values[rank-1])); got != want {
			t.Errorf("p%g is %d, want %d", percents[i], got, want)
		}
	}
	if got := New(longest, 3).Percentiles(50, 99); !slices.Equal(got, []int64{0, 0}) {
		t.Errorf("percentiles of nothing: %v", got)
	}
}

func TestParts(t *testing.T) {
	values := spread(5000)
	whole, parts := New(longest, 3), []*Histogram{New(longest, 3), New(longest, 3), New(longest, 3)}
	for i, v := range values {
		whole.Record(v, 2)
		parts[i%2].Record(v, 2)
	}
	together := New(longest, 3)
	for _, part := range parts {
		together.Merge(part)
	}
	if together.total != int64(2*len(values)) || !slices.Equal(together.counts, whole.counts) || together.lowest != whole.lowest || together.highest != whole.highest {
		t.Error("parts together are not the whole")
	}
	count, before := int64(0), int64(-1)
	for class := range together.All {
		if class.From <= before || class.To < class.From || class.Count <= 0 {
			t.Fatalf("%+v after %d", class, before)
		}
		count, before = count+class.Count, class.To
	}
	if count != together.total {
		t.Errorf("%d of %d values", count, together.total)
	}
	together.Reset()
	if together.total != 0 || slices.ContainsFunc(together.counts, func(n int64) bool { return n != 0 }) {
		t.Error("values are left after a reset")
	}
	for range together.All {
		t.Error("a class is left after a reset")
	}
}

func TestAValueAllocatesNothing(t *testing.T) {
	h := New(longest, 3)
	if n := testing.AllocsPerRun(100, func() { h.Record(longest, 2) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
