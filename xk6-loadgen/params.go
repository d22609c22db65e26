package loadgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/engine"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/schedule"
)

// loadOptions are those of one load. Scripts set fields with a js tag.
type loadOptions struct {
	engine.Options
	Tags tagList `js:"tags"`
}

// sideOptions are the options of a side of alternate.
type sideOptions struct {
	loadOptions
	CPUOf []int `js:"cpuOf"` // CPUOf are the ids of the server's processes
}

// callOptions hold for all loads of a call.
type callOptions struct {
	Samples   bool      `js:"samples"`   // samples go out
	K6Metrics bool      `js:"k6Metrics"` // with samples: those of k6's own metrics, too
	Segmented bool      `js:"segmented"` // the options describe the load of several k6 together
	StartAt   time.Time `js:"startAt"`
}

func newCallOptions() callOptions { return callOptions{Samples: true, K6Metrics: true} }

type tagList []engine.Header

// newLoadOptions are the defaults, which README.md lists.
func newLoadOptions() loadOptions {
	return loadOptions{Options: engine.Options{
		Protocol: engine.HTTP11, Connections: 1, Streams: 1, Threads: 1, KeepAlive: true, Timeout: time.Minute, Method: http.MethodGet,
	}}
}

// parseRun reads the argument of run, which has the options of the load and of the call in one object.
func parseRun(value sobek.Value) (load loadOptions, call callOptions, err error) {
	options := struct {
		loadOptions
		callOptions
	}{newLoadOptions(), newCallOptions()}
	err = read(value, &options)
	options.Options.StartAt = options.callOptions.StartAt
	return options.loadOptions, options.callOptions, err
}

// parseAlternate reads the argument of alternate. A side's errors begin with its place.
func parseAlternate(value sobek.Value) (sides []sideOptions, turns engine.Turns, call callOptions, err error) {
	options := struct {
		Sides []sobek.Value `js:"sides"`
		Slice time.Duration `js:"slice"`
		First uint64        `js:"first"`
		Seed  uint64        `js:"seed"`
		Warm  bool          `js:"warmTogether"`
		callOptions
	}{callOptions: newCallOptions()}
	err = read(value, &options)
	for i, given := range options.Sides {
		side := sideOptions{loadOptions: newLoadOptions()}
		if err := read(given, &side); err != nil {
			return nil, turns, call, fmt.Errorf("sides[%d]: %w", i, err)
		}
		sides = append(sides, side)
	}
	turns = engine.Turns{
		Slice: options.Slice, First: int(min(options.First, uint64(len(sides)+1))), Seed: options.Seed, StartAt: options.StartAt,
		WarmTogether: options.Warm,
	}
	return sides, turns, options.callOptions, err
}

// mix reads requests from a list of objects, or from a text with one in JSON on each line, since long lists are slow in a script.
func mix(v sobek.Value) (mix []engine.Request, err error) {
	lines := []byte(nil)
	if text, isText := v.Export().(string); isText {
		lines = []byte(text)
	} else if _, err = as[[]any](v, "a list of requests, or a text with one in JSON on each line"); err != nil {
		return nil, err
	} else {
		list := v.(*sobek.Object)
		for _, index := range list.Keys() {
			object, err := objectOf(list.Get(index))
			if err != nil {
				return nil, fmt.Errorf("%s %w", index, err)
			}
			line, err := object.MarshalJSON()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", index, err)
			}
			lines = append(append(lines, line...), '\n')
		}
	}
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var request struct {
			Target, Method, Body string
			Headers              headers
			BodyBase64           []byte
			Weight, Status       int
		}
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&request); err != nil {
			return nil, fmt.Errorf("request %d: %w", len(mix)+1, err)
		}
		body := request.BodyBase64
		if request.Body != "" {
			body = []byte(request.Body)
		}
		mix = append(mix, engine.Request{
			Target: request.Target, Method: request.Method, Headers: request.Headers, Body: body, Weight: request.Weight, Status: request.Status,
		})
	}
	if len(mix) == 0 {
		return nil, errors.New("is empty; leave it out if there is none")
	}
	return mix, nil
}

// headers keep their order.
type headers []engine.Header

// UnmarshalJSON reads an object key by key: a Go map would lose their order.
func (h *headers) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return errors.New("headers: must be an object of texts")
	}
	for decoder.More() {
		name, _ := decoder.Token()
		var value string
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("headers: %s: %w", name, err)
		}
		*h = append(*h, engine.Header{Name: name.(string), Value: value})
	}
	return nil
}

// read sets the fields of a struct from a script's object, by their js tags. k6's own conversion would ignore misspelt options.
func read(value sobek.Value, to any) error {
	if isNullish(value) {
		return errors.New("give an object with options, at least url and duration or requests")
	}
	object, err := objectOf(value)
	if err != nil {
		return fmt.Errorf("the options %w", err)
	}
	return readObject(object, reflect.ValueOf(to).Elem())
}

// readObject sets the fields named by the object's keys. An unknown key is refused, null leaves the default.
func readObject(object *sobek.Object, to reflect.Value) error {
	fields, names := map[string]reflect.StructField{}, []string(nil)
	for _, field := range reflect.VisibleFields(to.Type()) {
		if name, _, _ := strings.Cut(field.Tag.Get("js"), ","); name != "" {
			fields[name], names = field, append(names, name)
		}
	}
	for _, name := range object.Keys() {
		field, known := fields[name]
		if !known {
			return fmt.Errorf("there is no option %q; there are: %s", name, strings.Join(names, ", "))
		}
		v := object.Get(name)
		if isNullish(v) {
			continue
		}
		err := setField(to.FieldByIndex(field.Index), v)
		if err == nil && strings.HasSuffix(field.Tag.Get("js"), ",filled") && strings.TrimSpace(v.String()) == "" {
			err = errors.New("is empty; leave it out if there is none")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// setField's errors go on after the option's name.
func setField(field reflect.Value, v sobek.Value) (err error) {
	switch to := field.Addr().Interface().(type) {
	case *time.Duration:
		*to, err = duration(v)
		return err
	case *time.Time:
		milliseconds, err := count(v)
		*to = time.UnixMilli(milliseconds)
		return err
	case *[]byte:
		text, err := as[string](v, "a string")
		*to = []byte(text)
		return err
	case *sobek.Value:
		*to = v
		return nil
	case *[]engine.Request:
		*to, err = mix(v)
		return err
	case *[]engine.Header:
		*to, err = texts(v)
		return err
	case *tagList:
		*to, err = texts(v)
		for _, tag := range *to {
			if slices.Contains(reserved, tag.Name) {
				return fmt.Errorf("%s is set by the module or k6; choose another name", tag.Name)
			}
		}
		return err
	}
	switch field.Kind() {
	case reflect.Bool:
		is, err := as[bool](v, "true or false")
		field.SetBool(is)
		return err
	case reflect.String:
		text, err := as[string](v, "a string")
		field.SetString(text)
		return err
	case reflect.Float64:
		n := number(v)
		if !(n > 0) || math.IsInf(n, 0) {
			return fmt.Errorf("must be a number of requests/s greater than 0, got %s", shown(v))
		}
		field.SetFloat(n)
		return nil
	case reflect.Slice:
		if _, err := as[[]any](v, "a list"); err != nil {
			return err
		}
		object := v.(*sobek.Object)
		for _, index := range object.Keys() {
			field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
			if err := setField(field.Index(field.Len()-1), object.Get(index)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		object, err := objectOf(v)
		if err == nil {
			err = readObject(object, field)
		}
		return err
	}
	n, err := count(v)
	field.Set(reflect.ValueOf(n).Convert(field.Type()))
	return err
}

func isNullish(v sobek.Value) bool { return v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) }

// as is a script's value as a Go type. The error says what it must be, and what it is.
func as[T any](v sobek.Value, what string) (T, error) {
	t, ok := v.Export().(T)
	if !ok {
		return t, fmt.Errorf("must be %s, got %s", what, shown(v))
	}
	return t, nil
}

// duration reads a text with a unit. A bare number is refused: its unit would be a guess.
func duration(v sobek.Value) (time.Duration, error) {
	text, _ := v.Export().(string)
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("must be a time with a unit, as in '10s' or '500ms', got %s", shown(v))
	}
	return d, nil
}

// number is NaN for all but numbers: a script's ToFloat would also convert texts.
func number(v sobek.Value) float64 {
	switch v.Export().(type) {
	case int64, float64:
		return v.ToFloat()
	}
	return math.NaN()
}

// count reads a whole number up to 2^53, beyond which JavaScript's numbers are not exact.
func count(v sobek.Value) (int64, error) {
	n := number(v)
	if !(n >= 1 && n <= 1<<53) || n != math.Trunc(n) {
		return 0, fmt.Errorf("must be a whole number of at least 1, got %s", shown(v))
	}
	return int64(n), nil
}

func objectOf(v sobek.Value) (*sobek.Object, error) {
	if _, err := as[map[string]any](v, "an object"); err != nil {
		return nil, err
	}
	return v.(*sobek.Object), nil
}

// texts reads an object of headers or tags in the order of its keys.
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

// reserved tags distinguish the module's own series, or are fields in k6's outputs: series that differ only in fields lose points.
var reserved = []string{"class", "direction", "instance", "iter", "kind", "le", "part", "scope", "stat", "url", "vu"}

// shown is a value as an error quotes it.
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

// divide reduces a load to this k6's execution segment, as k6 divides VUs (connections, requests) and iterations (the requests of a rate).
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
	if least := leastDivisible(tuple, int64(o.Threads)); int64(o.Connections) < least {
		return fmt.Errorf("connections: %d cannot be divided among %d generators%s: give at least %d", o.Connections, generators, threads, least)
	}
	if least := leastDivisible(tuple, 1); o.Requests > 0 && o.Requests < least {
		return fmt.Errorf("requests: %d cannot be divided among %d generators: give at least %d", o.Requests, generators, least)
	}
	o.Connections, o.Requests = int(tuple.ScaleInt64(int64(o.Connections))), tuple.ScaleInt64(o.Requests)
	o.Segment = schedule.NewSegment(tuple.GetStripedOffsets())
	return nil
}

// leastDivisible is the least number of which every segment gets at least `each`.
func leastDivisible(tuple *lib.ExecutionTuple, each int64) int64 {
	return int64(sort.Search(1<<40, func(n int) bool {
		for i := range tuple.Sequence.ExecutionSegmentSequence {
			if tuple.Sequence.ScaleInt64(i, int64(n)) < each {
				return false
			}
		}
		return true
	}))
}
