package loadgen

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"bakeoff.invalid/xk6-loadgen/engine"
)

// params are the options of one call, typed. They are read by hand: k6's bridge would rename fields and ignore keys that
// it does not know, and a misspelt option must not silently become its default.
type params struct {
	options engine.Options
	tags    map[string]string
	// pages are those of the one URL's server that are asked for instead of it.
	pages string
	// processes are a side's process groups, with alternate only.
	processes []int
	// segmented: these are the options of several k6 together, with run only; with alternate the call's.
	segmented bool
}

// reserved tags tell the module's own series apart, or are turned into fields by k6's outputs: a series that differs in
// nothing else would lose points.
var reserved = []string{"class", "direction", "instance", "iter", "kind", "le", "part", "scope", "stat", "url", "vu"}

var known = []string{
	"url", "urls", "pages", "protocol", "connections", "streams", "requests", "duration", "rate", "arrivals", "keepAlive", "warmup", "timeout",
	"threads", "spin", "method", "headers", "body", "tls", "netns", "buckets", "tags",
}

var knownTLS = []string{"insecureSkipVerify", "minVersion", "maxVersion", "ciphers", "curves", "serverName"}

// parseLoad turns the script's object into params, in which what it leaves out has its default. Its errors name the option.
func parseLoad(rt *sobek.Runtime, value sobek.Value, known []string) (params, error) {
	p := params{tags: map[string]string{}, options: engine.Options{
		Protocol: engine.HTTP11, Connections: 1, Streams: 1, Threads: 1, KeepAlive: true, Timeout: time.Minute, Method: http.MethodGet,
	}}
	if err := eachOption(value, known, func(key string, v sobek.Value) error { return p.set(rt, key, v) }); err != nil {
		return p, err
	}
	return p, p.setPages()
}

// setPages reads the option pages, which is a text since a list of so many would be slow to make in a script: a path on each
// line, and its weight.
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
		n, err := strconv.Atoi(weight)
		if weight == "" {
			n, err = 1, nil
		}
		if err != nil || n < 1 || n > engine.MaxWeight || !strings.HasPrefix(path, "/") {
			return fmt.Errorf("pages: line %d must be a path and its weight, 1 to %d, as in /index.html 3, got %q", number+1, engine.MaxWeight, line)
		}
		o.URLs, o.Weights = append(o.URLs, origin+path), append(o.Weights, n)
	}
	return nil
}

// eachOption hands over what the script's object has; what it leaves null is left out.
func eachOption(value sobek.Value, known []string, set func(key string, v sobek.Value) error) error {
	if isNullish(value) {
		return errors.New("give an object with options, at least url and duration or requests")
	}
	object, ok := value.(*sobek.Object)
	if !ok {
		return fmt.Errorf("the options must be an object, got %s", shown(value))
	}
	return eachKnown(object, "", known, set)
}

// eachKnown is eachOption for an object that is there; where begins what is said of a key that is not known.
func eachKnown(object *sobek.Object, where string, known []string, set func(key string, v sobek.Value) error) error {
	for _, key := range object.Keys() {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%sthere is no option %q; there are: %s", where, key, strings.Join(known, ", "))
		}
		if v := object.Get(key); !isNullish(v) {
			if err := set(key, v); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	knownRun   = slices.Concat(known, knownCall)
	knownTurns = append([]string{"sides", "slice", "seed"}, knownCall...)
	knownSide  = append(slices.Clone(known), "processes")
)

// parseTurns reads the options of alternate: those of each side, and how the sides take turns. Its errors name the side.
func parseTurns(rt *sobek.Runtime, value sobek.Value) (sides []params, turns engine.Turns, segmented bool, err error) {
	turns.Slice = 10 * time.Millisecond
	err = eachOption(value, knownTurns, func(key string, v sobek.Value) (err error) {
		switch key {
		case "sides":
			err = list(rt, key, "options", v, &sides, func(_ string, v sobek.Value, side *params) (err error) {
				if *side, err = parseLoad(rt, v, knownSide); err != nil {
					err = fmt.Errorf("sides[%d]: %w", len(sides), err)
				}
				return err
			})
		case "slice":
			err = duration(key, v, &turns.Slice)
		case "seed":
			err = count(key, v, &turns.Seed)
		default:
			err = setCall(key, v, &segmented, &turns.StartAt)
		}
		return err
	})
	return sides, turns, segmented, err
}

func (p *params) set(rt *sobek.Runtime, key string, v sobek.Value) (err error) {
	o := &p.options
	switch key {
	case "url":
		var url string
		err = text(key, v, &url)
		o.URLs = append([]string{url}, o.URLs...)
	case "urls":
		given := len(o.URLs)
		if err = list(rt, key, "strings", v, &o.URLs, text[string]); err == nil && len(o.URLs) == given {
			err = fmt.Errorf("urls: give at least one")
		}
	case "pages":
		if err = text(key, v, &p.pages); err == nil && strings.TrimSpace(p.pages) == "" {
			err = errors.New("pages: is empty; give a path on each line, and its weight")
		}
	case "protocol":
		err = text(key, v, &o.Protocol)
	case "connections":
		err = count(key, v, &o.Connections)
	case "threads":
		err = count(key, v, &o.Threads)
	case "streams":
		err = count(key, v, &o.Streams)
	case "rate":
		err = rate(key, v, &o.Rate)
	case "arrivals":
		err = text(key, v, &o.Arrivals)
	case "tls":
		err = tlsOptions(rt, v, &o.TLS)
	case "buckets":
		if err = list(rt, key, "strings", v, &o.Buckets, duration); err == nil && len(o.Buckets) == 0 {
			err = fmt.Errorf("buckets: give at least one upper end")
		}
	case "requests":
		err = count(key, v, &o.Requests)
	case "duration":
		err = duration(key, v, &o.Duration)
	case "warmup":
		err = duration(key, v, &o.Warmup)
	case "timeout":
		err = duration(key, v, &o.Timeout)
	case "keepAlive":
		err = boolean(key, v, &o.KeepAlive)
	case "spin":
		err = boolean(key, v, &o.Spin)
	case "method":
		err = text(key, v, &o.Method)
	case "netns":
		if err = text(key, v, &o.NetNS); err == nil && o.NetNS == "" {
			err = fmt.Errorf("%s: is empty; leave it out for k6's own network", key)
		}
	case "body":
		err = text(key, v, &o.Body)
	case "headers":
		err = eachText(rt, key, v, func(name, value string) {
			// In the order in which the script has them.
			o.Headers = append(o.Headers, engine.Header{Name: name, Value: value})
		})
	case "tags":
		err = eachText(rt, key, v, func(name, value string) { p.tags[name] = value })
		for name := range p.tags {
			if slices.Contains(reserved, name) {
				return fmt.Errorf("tags: %s is set by the module or k6; choose another name", name)
			}
		}
	case "processes":
		err = list(rt, key, "whole numbers", v, &p.processes, count[int])
	default:
		err = setCall(key, v, &p.segmented, &o.StartAt)
	}
	return err
}

// tlsOptions reads the object of the option tls.
func tlsOptions(rt *sobek.Runtime, v sobek.Value, o *engine.TLSOptions) error {
	object, err := objectOf(rt, "tls", v)
	if err != nil {
		return err
	}
	return eachKnown(object, "tls: ", knownTLS, func(key string, v sobek.Value) error {
		switch name := "tls." + key; key {
		case "insecureSkipVerify":
			return boolean(name, v, &o.InsecureSkipVerify)
		case "minVersion":
			return text(name, v, &o.MinVersion)
		case "maxVersion":
			return text(name, v, &o.MaxVersion)
		case "ciphers":
			return list(rt, name, "strings", v, &o.Ciphers, text[string])
		case "curves":
			return list(rt, name, "strings", v, &o.Curves, text[string])
		default:
			return text(name, v, &o.ServerName)
		}
	})
}

func isNullish(v sobek.Value) bool { return v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) }

func objectOf(rt *sobek.Runtime, key string, v sobek.Value) (*sobek.Object, error) {
	if _, ok := v.Export().(map[string]any); !ok {
		return nil, fmt.Errorf("%s: must be an object, got %s", key, shown(v))
	}
	return v.ToObject(rt), nil
}

// eachText goes through an object of strings in its order; numbers and booleans are taken as they print.
func eachText(rt *sobek.Runtime, key string, v sobek.Value, each func(name, value string)) error {
	object, err := objectOf(rt, key, v)
	if err != nil {
		return err
	}
	for _, name := range object.Keys() {
		value := object.Get(name)
		switch value.Export().(type) {
		case string, bool, int64, float64:
			each(name, value.String())
		default:
			return fmt.Errorf("%s: %s must be a string, got %s", key, name, shown(value))
		}
	}
	return nil
}

// list reads a list of what its words say, adding what `read` makes of each.
func list[T any](rt *sobek.Runtime, key, words string, v sobek.Value, to *[]T, read func(string, sobek.Value, *T) error) error {
	if _, ok := v.Export().([]any); !ok {
		return fmt.Errorf("%s: must be a list of %s, got %s", key, words, shown(v))
	}
	object := v.ToObject(rt)
	for _, index := range object.Keys() {
		var one T
		if err := read(key, object.Get(index), &one); err != nil {
			return err
		}
		*to = append(*to, one)
	}
	return nil
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

func boolean(key string, v sobek.Value, to *bool) error {
	b, ok := v.Export().(bool)
	if !ok {
		return fmt.Errorf("%s: must be true or false, got %s", key, shown(v))
	}
	*to = b
	return nil
}

// rate reads a number of requests/s that is greater than zero.
func rate(key string, v sobek.Value, to *float64) error {
	switch n := v.Export().(type) {
	case int64:
		*to = float64(n)
	case float64:
		*to = n
	}
	if !(*to > 0) || math.IsInf(*to, 0) {
		return fmt.Errorf("%s: must be a number of requests/s greater than 0, got %s", key, shown(v))
	}
	return nil
}

func text[T ~string | ~[]byte](key string, v sobek.Value, to *T) error {
	s, ok := v.Export().(string)
	if !ok {
		return fmt.Errorf("%s: must be a string, got %s", key, shown(v))
	}
	*to = T(s)
	return nil
}

// count reads a whole number of at least 1.
func count[T ~int | ~int64 | ~uint64](key string, v sobek.Value, to *T) error {
	switch n := v.Export().(type) {
	case int64:
		if n >= 1 {
			*to = T(n)
			return nil
		}
	case float64:
		// 1e6 is a float in the script.
		if n >= 1 && n <= 1<<53 && n == math.Trunc(n) {
			*to = T(n)
			return nil
		}
	}
	return fmt.Errorf("%s: must be a whole number of at least 1, got %s", key, shown(v))
}

// duration reads a string with a unit, as in '500ms', '10s' or '1m30s'.
func duration(key string, v sobek.Value, to *time.Duration) error {
	s, ok := v.Export().(string)
	if !ok {
		return fmt.Errorf("%s: must be a string with a unit, as in '10s' or '500ms', got %s", key, shown(v))
	}
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return fmt.Errorf("%s: must be a time with a unit, as in '10s' or '500ms', got '%s'", key, s)
	}
	*to = d
	return nil
}
