// Package histogram counts durations in the classes of HdrHistogram (Gil Tene): each power of two has as many. It merges and resets only
// the classes in use, which hdrhistogram-go does not.
//
//gosec:disable G115 -- the numbers are small
package histogram

import (
	"math"
	"math/bits"
)

// Scale says how fine classes are: values below 2^(Scale+1) have a class each; each power of two above has 2^Scale classes.
type Scale int

// Histogram counts values from 0 to the longest one that New was given. Its memory does not grow.
type Histogram struct {
	scale           Scale
	counts          []int64
	total           int64
	lowest, highest int // lowest and highest are the classes in use; highest < lowest if there are none.
}

// New makes a histogram for values up to longest, whose classes are no wider than 1/10^digits of their values.
func New(longest int64, digits int) *Histogram {
	distinct := uint64(2 * math.Pow10(digits))
	h := &Histogram{scale: Scale(bits.Len64(distinct-1) - 1)}
	h.counts = make([]int64, h.scale.Class(longest)+1)
	h.forget()
	return h
}

func (h *Histogram) forget() {
	h.total, h.lowest, h.highest = 0, len(h.counts), -1
}

// Class is the index of a value's class, from 0 on.
func (s Scale) Class(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-int(s)-1)
	return shift<<s + int(v>>shift)
}

// Ends are the least and the greatest value of a class.
func (s Scale) Ends(class int) (from, to int64) {
	shift := max(0, class>>s-1)
	from = int64(class-shift<<s) << shift
	return from, from + 1<<shift - 1
}

// Record counts a value `count` times. It allocates nothing. A value out of bounds panics.
func (h *Histogram) Record(v, count int64) {
	i := h.scale.Class(v)
	h.counts[i] += count
	h.total += count
	h.lowest, h.highest = min(h.lowest, i), max(h.highest, i)
}

// Reset clears the classes in use, a few of the many in the histogram of one second.
func (h *Histogram) Reset() {
	if h.total > 0 {
		clear(h.counts[h.lowest : h.highest+1])
	}
	h.forget()
}

// Merge adds the values of a histogram with the same arguments of New.
func (h *Histogram) Merge(other *Histogram) {
	if other.total == 0 {
		return
	}
	into := h.counts[other.lowest : other.highest+1]
	for i, count := range other.counts[other.lowest : other.highest+1] {
		into[i] += count
	}
	h.total += other.total
	h.lowest, h.highest = min(h.lowest, other.lowest), max(h.highest, other.highest)
}

// Class has Count values from From to To.
type Class struct{ From, To, Count int64 }

// All yields the classes that have values, ascending.
func (h *Histogram) All(yield func(Class) bool) {
	for i := h.lowest; i <= h.highest; i++ {
		if h.counts[i] == 0 {
			continue
		}
		if from, to := h.scale.Ends(i); !yield(Class{from, to, h.counts[i]}) {
			return
		}
	}
}

// Percentiles returns the greatest values of classes; ranks are rounded and at least 1, as in HdrHistogram. The percentages must ascend.
func (h *Histogram) Percentiles(percents ...float64) []int64 {
	values := make([]int64, len(percents))
	next, seen := 0, int64(0)
	for i := h.lowest; i <= h.highest && next < len(percents); i++ {
		seen += h.counts[i]
		for next < len(percents) && seen >= max(1, int64(percents[next]/100*float64(h.total)+0.5)) {
			_, values[next] = h.scale.Ends(i)
			next++
		}
	}
	return values
}
