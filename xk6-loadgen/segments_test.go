package loadgen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/engine"
)

func generatorsOf(t *testing.T, ends ...string) (all []lib.Options) {
	t.Helper()
	sequence, err := lib.NewExecutionSegmentSequenceFromString("0," + strings.Join(ends, ","))
	must(t, err)
	for _, segment := range sequence {
		all = append(all, lib.Options{ExecutionSegment: segment, ExecutionSegmentSequence: &sequence})
	}
	return all
}

func equally(n int) (ends []string) {
	for i := 1; i < n; i++ {
		ends = append(ends, fmt.Sprintf("%d/%d", i, n))
	}
	return append(ends, "1")
}

func TestSharesSumToTheWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tables := [][]string{{"1/2", "3/4", "1"}, {"0.1", "1"}, {"30%", "31%", "1"}, {"1/3", "1/2", "17/20", "1"}}
	for n := 1; n <= 16; n++ {
		tables = append(tables, equally(n))
	}
	for _, ends := range tables {
		generators := generatorsOf(t, ends...)
		for range 20 {
			whole := engine.Options{Connections: 200 + random.IntN(10_000), Requests: 200 + random.Int64N(1_000_000), Threads: 1 + random.IntN(2)}
			connections, requests := 0, int64(0)
			for _, generator := range generators {
				o := whole
				must(t, divide(generator, &o, 1))
				connections, requests = connections+o.Connections, requests+o.Requests
			}
			if connections != whole.Connections || requests != whole.Requests {
				t.Errorf("%v: %d of %d connections, %d of %d requests", ends, connections, whole.Connections, requests, whole.Requests)
			}
		}
		// The runner counts on that (instanceArguments in lib/runner/generators.ts).
		for i, generator := range generators {
			tuple, err := lib.NewExecutionTuple(generator.ExecutionSegment, generator.ExecutionSegmentSequence)
			must(t, err)
			if place, _, _ := tuple.GetStripedOffsets(); slices.Equal(ends, equally(len(ends))) && place != int64(i) {
				t.Errorf("%v: generator %d has request %d first", ends, i+1, place)
			}
		}
	}
}

func TestWithoutSegmentsTheLoadIsWhole(t *testing.T) {
	o := engine.Options{Connections: 3, Requests: 7, Threads: 1}
	if err := divide(lib.Options{}, &o, 2); err != nil || o.Connections != 3 || o.Requests != 7 {
		t.Errorf("%+v: %v", o, err)
	}
}

func TestAPartIsMadeWhereItIsAskedFor(t *testing.T) {
	url := page(t)
	second := generatorsOf(t, equally(3)...)[1]
	for option, want := range map[string]int64{"": 100, "segmented: false,": 100, "segmented: true,": 33} {
		for _, code := range []string{
			`loadgen.run({ ` + option + ` url: '` + url + `/', connections: 10, requests: 100 })`,
			`loadgen.alternate({ ` + option + ` sides: [{ url: '` + url + `/', connections: 10, requests: 100 }] })[0]`,
		} {
			value, _, err := scriptWith(t, t.Context(), second, code)
			must(t, err)
			if got := value.Export().(map[string]any)["requests"]; got != want {
				t.Errorf("%s: %v requests, want %d", code, got, want)
			}
		}
	}
}

func TestWhatCannotBeDividedIsRefusedByAll(t *testing.T) {
	url := page(t)
	for load, want := range map[string]string{
		`connections: 3, requests: 100`:             "connections: 3 cannot be divided among 4 generators: give at least 4",
		`connections: 7, requests: 100, threads: 2`: "connections: 7 cannot be divided among 4 generators with 2 threads each: give at least 8",
		`connections: 9, requests: 3`:               "requests: 3 cannot be divided among 4 generators: give at least 4",
	} {
		for _, generator := range generatorsOf(t, equally(4)...) {
			if _, _, err := scriptWith(t, t.Context(), generator, `loadgen.run({ segmented: true, url: '`+url+`/', `+load+` })`); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", load, err, want)
			}
		}
	}
	// Of unequal ones the least is none too many.
	for _, generator := range generatorsOf(t, "9/10", "1") {
		o := engine.Options{Connections: 1, Threads: 1}
		if err := divide(generator, &o, 1); err == nil || !strings.Contains(err.Error(), "2 generators: give at least 2") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	half, err := lib.NewExecutionSegmentFromString("1/2:1")
	must(t, err)
	side := `{ url: '` + url + `/', requests: 10, connections: 4 }`
	for code, want := range map[string]string{
		`loadgen.run({ segmented: true, url: '` + url + `/', requests: 1 })`:    "--execution-segment alone does not say what the others make",
		`loadgen.run({ segmented: 1, url: '` + url + `/', requests: 1 })`:       "segmented: must be true or false, got 1",
		`loadgen.alternate({ sides: [{ url: 'http://x/', segmented: true }] })`: `sides[0]: there is no option "segmented"`,
	} {
		if _, _, err := scriptWith(t, t.Context(), lib.Options{ExecutionSegment: half}, code); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", code, err, want)
		}
	}
	if _, _, err := scriptWith(t, t.Context(), generatorsOf(t, equally(2)...)[0], `loadgen.alternate({ segmented: true, sides: [`+side+`,`+side+`] })`); err == nil || !strings.Contains(err.Error(), "do not take their turns together") {
		t.Error(err)
	}
}

func TestTheBeginIsInMilliseconds(t *testing.T) {
	url := page(t)
	at := time.Now().Add(time.Second).UnixMilli()
	value, _, err := script(t, t.Context(), fmt.Sprintf(`loadgen.run({ startAt: %d, url: '%s/', requests: 1 })`, at, url))
	must(t, err)
	if begun, err := time.Parse(time.RFC3339Nano, value.Export().(map[string]any)["startedAt"].(string)); err != nil || begun.UnixMilli() < at {
		t.Errorf("begun at %s: %v", begun, err)
	}
	if _, _, err := script(t, t.Context(), fmt.Sprintf(`loadgen.alternate({ startAt: %d, sides: [{ url: '%s/', requests: 1 }] })`, at, url)); err == nil || !strings.Contains(err.Error(), "s too late") {
		t.Error(err)
	}
	for value, want := range map[string]string{"'soon'": "startAt: must be a whole number of at least 1, got 'soon'", "1763760000": "s too late", "4e12": "s ahead, and may be 1m0s"} {
		if _, _, err := script(t, t.Context(), `loadgen.run({ startAt: `+value+`, url: '`+url+`/', requests: 1 })`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}
