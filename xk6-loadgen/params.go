package loadgen

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"

	"bakeoff.invalid/xk6-loadgen/engine"
)

// params are the options of one load. They are read one by one: k6's bridge would rename fields and ignore misspelt ones.
type params struct {
	options engine.Options
	tags    []engine.Header
	// pages of the one URL's server, instead of it.
	pages string
	// tls is nil where the script has none.
	tls *sobek.Object
	// cpuOf are the processes of a side's server, with alternate only.
	cpuOf []int
	// segmented: these are the options of several k6 together.
	segmented bool
}

// option is one that a script may give; set takes its value, or says what that must be.
type option struct {
	name string
	set  func(v sobek.Value) error
}

// into sets what read makes of a value.
func into[T any](to *T, read func(sobek.Value) (T, error)) func(sobek.Value) error {
	return func(v sobek.Value) (err error) {
		*to, err = read(v)
		return err
	}
}

// known are the options of every load.
func (p *params) known() []option {
	o := &p.options
	return []option{
		{"url", func(v sobek.Value) error {
			url, err := text[string](v)
			o.URLs = slices.Insert(o.URLs, 0, url)
			return err
		}},
		{"urls", func(v sobek.Value) error {
			urls, err := list("strings", 1, text[string])(v)
			o.URLs = append(o.URLs, urls...)
			return err
		}},
		{"pages", into(&p.pages, filled("give a path on each line, and its weight"))},
		{"protocol", into(&o.Protocol, text)},
		{"connections", into(&o.Connections, count)},
		{"streams", into(&o.Streams, count)},
		{"requests", into(&o.Requests, count)},
		{"duration", into(&o.Duration, duration)},
		{"rate", into(&o.Rate, rate)},
		{"arrivals", into(&o.Arrivals, text)},
		{"keepAlive", into(&o.KeepAlive, boolean)},
		{"warmup", into(&o.Warmup, duration)},
		{"timeout", into(&o.Timeout, duration)},
		{"threads", into(&o.Threads, count)},
		{"spin", into(&o.Spin, boolean)},
		{"method", into(&o.Method, text)},
		// In the order in which the script has them.
		{"headers", into(&o.Headers, texts)},
		{"body", into(&o.Body, text)},
		{"tls", into(&p.tls, objectOf)},
		{"netns", into(&o.NetNS, filled("leave it out for k6's own network"))},
		{"buckets", into(&o.Buckets, list("strings", 1, duration))},
		{"tags", into(&p.tags, tags)},
	}
}

// knownTLS are the options of the option tls.
func knownTLS(o *engine.TLSOptions) []option {
	return []option{
		{"insecureSkipVerify", into(&o.InsecureSkipVerify, boolean)},
		{"minVersion", into(&o.MinVersion, text)},
		{"maxVersion", into(&o.MaxVersion, text)},
		{"ciphers", into(&o.Ciphers, list("strings", 0, text[string]))},
		{"curves", into(&o.Curves, list("strings", 0, text[string]))},
		{"serverName", into(&o.ServerName, text)},
	}
}

// newParams have the defaults.
func newParams() *params {
	return &params{options: engine.Options{
		Protocol: engine.HTTP11, Connections: 1, Streams: 1, Threads: 1, KeepAlive: true, Timeout: time.Minute, Method: http.MethodGet,
	}}
}

// read takes what the script's object has, of the options that are known and these. Its errors name the option.
func (p *params) read(value sobek.Value, more ...option) error {
	if err := setOptions(value, append(p.known(), more...)); err != nil {
		return err
	}
	if p.tls != nil {
		if err := setKnown(p.tls, "tls: ", "tls.", knownTLS(&p.options.TLS)); err != nil {
			return err
		}
	}
	return p.setPages()
}

// setPages reads the option pages: a path on each line, and its weight. It is a text since a script makes long lists slowly.
func (p *params) setPages() error {
	if p.pages == "" {
		return nil
	}
	o := &p.options
	if len(o.URLs) != 1 {
		return errors.New("pages: are those of one url; give it, and no urls")
	}
	origin := o.URLs[0]
	if scheme := strings.Index(origin, "://"); scheme >= 0 {
		if path := strings.IndexAny(origin[scheme+3:], "/?#"); path >= 0 {
			origin = origin[:scheme+3+path]
		}
	}
	o.URLs = nil
	lines := strings.Split(strings.TrimSpace(p.pages), "\n")
	if len(lines) > engine.MaxURLs {
		return fmt.Errorf("pages: at most %d, got %d", engine.MaxURLs, len(lines))
	}
	for number, line := range lines {
		path, weight, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(cmp.Or(weight, "1"))
		if err != nil || n < 1 || n > engine.MaxWeight || !strings.HasPrefix(path, "/") {
			return fmt.Errorf("pages: line %d must be a path and its weight, 1 to %d, as in /index.html 3, got %q", number+1, engine.MaxWeight, line)
		}
		o.URLs, o.Weights = append(o.URLs, origin+path), append(o.Weights, n)
	}
	return nil
}

// setOptions takes what the script's object has.
func setOptions(value sobek.Value, options []option) error {
	if isNullish(value) {
		return errors.New("give an object with options, at least url and duration or requests")
	}
	object, err := objectOf(value)
	if err != nil {
		return fmt.Errorf("the options %w", err)
	}
	return setKnown(object, "", "", options)
}

// setKnown takes the object's values that are not null. where begins errors about unknown keys, prefix the names of known ones.
func setKnown(object *sobek.Object, where, prefix string, options []option) error {
	for _, key := range object.Keys() {
		place := slices.IndexFunc(options, func(o option) bool { return o.name == key })
		if place < 0 {
			var names []string
			for _, o := range options {
				names = append(names, o.name)
			}
			return fmt.Errorf("%sthere is no option %q; there are: %s", where, key, strings.Join(names, ", "))
		}
		if v := object.Get(key); !isNullish(v) {
			if err := options[place].set(v); err != nil {
				return fmt.Errorf("%s%s: %w", prefix, key, err)
			}
		}
	}
	return nil
}

// ofCall are the options that a call of either function has for all of its loads.
func ofCall(segmented *bool, startAt *time.Time) []option {
	return []option{
		{"segmented", into(segmented, boolean)},
		{"startAt", func(v sobek.Value) error {
			milliseconds, err := count[int64](v)
			*startAt = time.UnixMilli(milliseconds)
			return err
		}},
	}
}

// parseTurns reads the options of alternate: those of each side, and how the sides take turns. Its errors name the side.
func parseTurns(value sobek.Value) (sides []*params, turns engine.Turns, err error) {
	var given []sobek.Value
	var segmented bool
	if err := setOptions(value, append([]option{
		{"sides", into(&given, list("options", 0, func(v sobek.Value) (sobek.Value, error) { return v, nil }))},
		{"slice", into(&turns.Slice, duration)},
		{"seed", into(&turns.Seed, count)},
	}, ofCall(&segmented, &turns.StartAt)...)); err != nil {
		return nil, turns, err
	}
	for i, v := range given {
		side := newParams()
		side.segmented = segmented
		if err := side.read(v, option{"cpuOf", into(&side.cpuOf, list("whole numbers", 0, count[int]))}); err != nil {
			return nil, turns, fmt.Errorf("sides[%d]: %w", i, err)
		}
		sides = append(sides, side)
	}
	return sides, turns, nil
}

func isNullish(v sobek.Value) bool { return v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) }

// The readers of values: their errors go on after the option's name.

// as is a value of this type, which `what` names.
func as[T any](v sobek.Value, what string) (T, error) {
	t, ok := v.Export().(T)
	if !ok {
		return t, fmt.Errorf("must be %s, got %s", what, shown(v))
	}
	return t, nil
}

func boolean(v sobek.Value) (bool, error) { return as[bool](v, "true or false") }

func text[T ~string | ~[]byte](v sobek.Value) (T, error) {
	s, err := as[string](v, "a string")
	return T(s), err
}

// filled reads a string that is not empty; a remedy is for one that is.
func filled(remedy string) func(sobek.Value) (string, error) {
	return func(v sobek.Value) (string, error) {
		s, err := text[string](v)
		if err == nil && strings.TrimSpace(s) == "" {
			err = errors.New("is empty; " + remedy)
		}
		return s, err
	}
}

// duration reads a string with a unit, as in '500ms', '10s' or '1m30s'.
func duration(v sobek.Value) (time.Duration, error) {
	s, err := as[string](v, "a string with a unit, as in '10s' or '500ms'")
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("must be a time with a unit, as in '10s' or '500ms', got '%s'", s)
	}
	return d, nil
}

// number is NaN of what is none.
func number(v sobek.Value) float64 {
	switch v.Export().(type) {
	case int64, float64:
		return v.ToFloat()
	}
	return math.NaN()
}

// count reads a whole number of at least 1.
func count[T ~int | ~int64 | ~uint64](v sobek.Value) (T, error) {
	n := number(v)
	if !(n >= 1 && n <= 1<<53) || n != math.Trunc(n) {
		return 0, fmt.Errorf("must be a whole number of at least 1, got %s", shown(v))
	}
	return T(n), nil
}

// rate reads a number of requests/s that is greater than zero.
func rate(v sobek.Value) (float64, error) {
	n := number(v)
	if !(n > 0) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("must be a number of requests/s greater than 0, got %s", shown(v))
	}
	return n, nil
}

func objectOf(v sobek.Value) (*sobek.Object, error) {
	if _, err := as[map[string]any](v, "an object"); err != nil {
		return nil, err
	}
	return v.(*sobek.Object), nil
}

// texts reads an object of strings in its order; numbers and booleans are taken as they print.
func texts(v sobek.Value) (texts []engine.Header, err error) {
	object, err := objectOf(v)
	if err != nil {
		return nil, err
	}
	for _, name := range object.Keys() {
		value := object.Get(name)
		switch value.Export().(type) {
		case string, bool, int64, float64:
			texts = append(texts, engine.Header{Name: name, Value: value.String()})
		default:
			return nil, fmt.Errorf("%s must be a string, got %s", name, shown(value))
		}
	}
	return texts, nil
}

// reserved tags distinguish the module's own series, or become fields in k6's outputs, where series that differ in nothing else lose points.
var reserved = []string{"class", "direction", "instance", "iter", "kind", "le", "part", "scope", "stat", "url", "vu"}

func tags(v sobek.Value) ([]engine.Header, error) {
	tags, err := texts(v)
	for _, tag := range tags {
		if slices.Contains(reserved, tag.Name) {
			return nil, fmt.Errorf("%s is set by the module or k6; choose another name", tag.Name)
		}
	}
	return tags, err
}

// list reads a list of what its words say, at least so many (0 or 1), each as `read` does.
func list[T any](words string, least int, read func(sobek.Value) (T, error)) func(sobek.Value) ([]T, error) {
	return func(v sobek.Value) (all []T, err error) {
		if _, err := as[[]any](v, "a list of "+words); err != nil {
			return nil, err
		}
		object := v.(*sobek.Object)
		for _, index := range object.Keys() {
			one, err := read(object.Get(index))
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		if len(all) < least {
			return nil, errors.New("give at least one")
		}
		return all, nil
	}
}

// shown is a value as a script writes it.
func shown(v sobek.Value) string {
	switch value := v.Export().(type) {
	case string:
		return "'" + value + "'"
	case *big.Int:
		return value.String() + "n"
	case []any:
		return "a list"
	}
	return v.String()
}

// mostDivided bounds the search for a number that can be divided.
const mostDivided = 1 << 40

// divide leaves the part of a load that this k6 makes by its execution segment: connections and requests as k6 divides VUs, and the
// requests of a rate as k6 divides iterations. Each k6 refuses a load that leaves one of them nothing. sides: the loads of the call.
func divide(options lib.Options, o *engine.Options, sides int) error {
	segment, sequence := options.ExecutionSegment, options.ExecutionSegmentSequence
	if segment.FloatLength() < 1 && (sequence == nil || len(*sequence) == 0) {
		return errors.New("segmented: --execution-segment alone does not say what the others make: give --execution-segment-sequence, too")
	}
	tuple, err := lib.NewExecutionTuple(segment, sequence)
	if err != nil {
		return fmt.Errorf("segmented: %w", err)
	}
	generators := len(tuple.Sequence.ExecutionSegmentSequence)
	if generators == 1 {
		return nil
	}
	if sides > 1 {
		return errors.New("segmented: several generators do not take their turns together: give one side")
	}
	threads := ""
	if o.Threads > 1 {
		threads = fmt.Sprintf(" with %d threads each", o.Threads)
	}
	if least := leastOf(tuple, int64(o.Threads)); int64(o.Connections) < least {
		return fmt.Errorf("connections: %d cannot be divided among %d generators%s: give at least %d", o.Connections, generators, threads, least)
	}
	if least := leastOf(tuple, 1); o.Requests > 0 && o.Requests < least {
		return fmt.Errorf("requests: %d cannot be divided among %d generators: give at least %d", o.Requests, generators, least)
	}
	o.Connections, o.Requests = int(tuple.ScaleInt64(int64(o.Connections))), tuple.ScaleInt64(o.Requests)
	o.Stripe = engine.NewStripe(tuple.GetStripedOffsets())
	return nil
}

// leastOf is the least number of which every segment has at least so many.
func leastOf(tuple *lib.ExecutionTuple, share int64) int64 {
	return int64(sort.Search(mostDivided, func(n int) bool {
		for i := range tuple.Sequence.ExecutionSegmentSequence {
			if tuple.Sequence.ScaleInt64(i, int64(n)) < share {
				return false
			}
		}
		return true
	}))
}
