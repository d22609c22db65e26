package engine

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Max(1e-9, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestDistributionAgainstTheSortedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() int64{
		"microseconds":    func() int64 { return 20_000 + random.Int64N(60_000) },
		"skewed":          func() int64 { return int64(1e5 * math.Exp(2*random.NormFloat64())) },
		"near each other": func() int64 { return 3_000_000_000 + random.Int64N(1000) },
		"minutes":         func() int64 { return int64(time.Minute) + random.Int64N(int64(time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			const n = 20_000
			values, whole, parts := make([]int64, n), newRecorder(), [2]*recorder{newRecorder(), newRecorder()}
			for i := range values {
				values[i] = draw()
				whole.record(values[i])
				parts[i%2].record(values[i])
			}
			parts[0].merge(parts[1])
			slices.Sort(values)
			mean, squares := 0.0, 0.0
			for _, v := range values {
				mean += float64(v) / n
			}
			for _, v := range values {
				squares += (float64(v) - mean) * (float64(v) - mean)
			}
			sd := math.Sqrt(squares / (n - 1))
			within := 0.0
			for _, v := range values {
				if math.Abs(float64(v)-mean) <= sd {
					within++
				}
			}
			for which, r := range map[string]*recorder{"recorded": whole, "merged": parts[0]} {
				d := r.distribution()
				at := 0
				for _, bar := range d.Histogram {
					from := at
					for at < n && float64(values[at])/1e6 <= bar.Value {
						at++
					}
					if int64(at-from) != bar.Count {
						t.Fatalf("%s: a bar up to %f ms of %d, and there are %d values", which, bar.Value, bar.Count, at-from)
					}
				}
				if at != n {
					t.Errorf("%s: %d of %d values are in the histogram", which, at, n)
				}
				near(t, which+" min", d.Min*1e6, float64(values[0]), 1e-12)
				near(t, which+" max", d.Max*1e6, float64(values[n-1]), 1e-12)
				near(t, which+" mean", d.Mean*1e6, mean, 1e-9)
				near(t, which+" sd", d.SD*1e6, sd, 1e-6)
				if name != "near each other" {
					near(t, which+" within", d.WithinSD, within/n, 0.01)
				}
				for p, got := range map[float64]float64{50: d.P50, 75: d.P75, 90: d.P90, 95: d.P95, 99: d.P99, 99.9: d.P999} {
					near(t, which+" percentile", got*1e6, float64(values[int(math.Ceil(p*n/100-1e-6))-1]), 0.001)
				}
			}
		})
	}
}

func TestDistributionsOverNothingAndOne(t *testing.T) {
	r := newRecorder()
	if d := r.distribution(); !reflect.DeepEqual(d, LatencyDistribution{}) {
		t.Errorf("over nothing: %+v", d)
	}
	if describe(nil) != (Distribution{}) {
		t.Error("describe(nil) is not zero")
	}
	r.record(1_500_000)
	want := Distribution{Min: 1.5, Mean: 1.5, WithinSD: 1, Max: 1.5}
	if d := r.distribution(); d.Distribution != want || d.P50 != 1.5 || d.P999 != 1.5 {
		t.Errorf("over one: %+v", d)
	}
	r.record(int64(3 * time.Hour))
	if d := r.distribution(); d.Max != 3_600_000 {
		t.Errorf("a value beyond the histogram became %f ms", d.Max)
	}
}

func TestDescribe(t *testing.T) {
	d := describe([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	near(t, "mean", d.Mean, 5, 1e-12)
	near(t, "sd", d.SD, math.Sqrt(32.0/7), 1e-12)
	near(t, "within", d.WithinSD, 6.0/8, 1e-12)
	if d.Min != 2 || d.Max != 9 {
		t.Errorf("%+v", d)
	}
}

func TestBucketsHoldEveryResponseOnce(t *testing.T) {
	r := newRecorder()
	values := []time.Duration{1, 900, time.Microsecond, 99 * time.Microsecond, 101 * time.Microsecond, ms, 2 * time.Second, time.Hour}
	for _, v := range values {
		r.record(int64(v))
	}
	total, last := int64(0), time.Duration(0)
	for _, b := range r.buckets() {
		if b.End <= last {
			t.Errorf("bucket %s comes after %s", b.End, last)
		}
		last = b.End
		total += b.Count
	}
	if total != int64(len(values)) {
		t.Errorf("%d in buckets, %d recorded", total, len(values))
	}
	if first := r.buckets()[0]; first.End != time.Microsecond || first.Count != 3 {
		t.Errorf("first bucket %+v", first)
	}
}
