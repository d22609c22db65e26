package loadgen

import (
	"errors"
	"fmt"
	"math"
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

// defaults as a script gets them when it leaves the option out.
func defaults() engine.Options {
	return engine.Options{
		Protocol: engine.HTTP11, Connections: 1, Streams: 1, Threads: 1, KeepAlive: true, Timeout: time.Minute, Method: http.MethodGet,
	}
}

// parseParams turns the script's object into params. Its errors name the option.
func parseParams(rt *sobek.Runtime, value sobek.Value) (params, error) {
	return parseLoad(rt, value, slices.Concat(known, knownCall))
}

func parseLoad(rt *sobek.Runtime, value sobek.Value, known []string) (params, error) {
	p := params{options: defaults(), tags: map[string]string{}}
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
		if path := strings.IndexByte(origin[scheme+3:], '/'); path >= 0 {
			origin = origin[:scheme+3+path]
		}
	}
	o.URLs = nil
	for number, line := range strings.Split(strings.TrimSpace(p.pages), "\n") {
		path, weight, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(weight)
		if weight == "" {
			n, err = 1, nil
		}
		if err != nil || !strings.HasPrefix(path, "/") {
			return fmt.Errorf("pages: line %d must be a path and its weight, as in /index.html 3, got %q", number+1, line)
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
		return fmt.Errorf("the options must be an object, got %s", value)
	}
	for _, key := range object.Keys() {
		if !slices.Contains(known, key) {
			return unknown(key, known)
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
	knownTurns = append([]string{"sides", "slice", "seed"}, knownCall...)
	knownSide  = append(slices.Clone(known), "processes")
)

// parseTurns reads the options of alternate: those of each side, and how the sides take turns. Its errors name the side.
func parseTurns(rt *sobek.Runtime, value sobek.Value) (sides []params, turns engine.Turns, segmented bool, err error) {
	turns.Slice = 10 * time.Millisecond
	err = eachOption(value, knownTurns, func(key string, v sobek.Value) (err error) {
		switch key {
		case "sides":
			if _, ok := v.Export().([]any); !ok {
				return fmt.Errorf("sides: must be a list of options, got %s", v)
			}
			object := v.ToObject(rt)
			for i, index := range object.Keys() {
				p, err := parseLoad(rt, object.Get(index), knownSide)
				if err != nil {
					return fmt.Errorf("sides[%d]: %w", i, err)
				}
				sides = append(sides, p)
			}
		case "slice":
			turns.Slice, err = duration(key, v)
		case "seed":
			var n int
			n, err = count(key, v)
			turns.Seed = uint64(n)
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
		url, err = text(key, v)
		o.URLs = append([]string{url}, o.URLs...)
	case "urls":
		var urls []string
		if urls, err = texts(rt, key, v); err == nil && len(urls) == 0 {
			err = fmt.Errorf("urls: give at least one")
		}
		o.URLs = append(o.URLs, urls...)
	case "pages":
		p.pages, err = text(key, v)
	case "protocol":
		var name string
		name, err = text(key, v)
		o.Protocol = engine.Protocol(name)
	case "connections":
		o.Connections, err = count(key, v)
	case "threads":
		o.Threads, err = count(key, v)
	case "streams":
		o.Streams, err = count(key, v)
	case "rate":
		o.Rate, err = rate(key, v)
	case "arrivals":
		var name string
		name, err = text(key, v)
		o.Arrivals = engine.Arrivals(name)
	case "tls":
		o.TLS, err = tlsOptions(rt, v)
	case "buckets":
		var ends []string
		if ends, err = texts(rt, key, v); err == nil && len(ends) == 0 {
			err = fmt.Errorf("buckets: give at least one upper end")
		}
		for _, end := range ends {
			var d time.Duration
			if d, err = duration(key, rt.ToValue(end)); err != nil {
				return err
			}
			o.Buckets = append(o.Buckets, d)
		}
	case "requests":
		var n int
		n, err = count(key, v)
		o.Requests = int64(n)
	case "duration":
		o.Duration, err = duration(key, v)
	case "warmup":
		o.Warmup, err = duration(key, v)
	case "timeout":
		o.Timeout, err = duration(key, v)
	case "keepAlive":
		o.KeepAlive, err = boolean(key, v)
	case "spin":
		o.Spin, err = boolean(key, v)
	case "method":
		o.Method, err = text(key, v)
	case "netns":
		if o.NetNS, err = text(key, v); err == nil && o.NetNS == "" {
			err = fmt.Errorf("%s: is empty; leave it out for k6's own network", key)
		}
	case "body":
		var body string
		body, err = text(key, v)
		o.Body = []byte(body)
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
		p.processes, err = counts(rt, key, v)
	default:
		err = setCall(key, v, &p.segmented, &o.StartAt)
	}
	return err
}

func unknown(key string, known []string) error {
	return fmt.Errorf("there is no option %q; there are: %s", key, strings.Join(known, ", "))
}

// tlsOptions reads the object of the option tls.
func tlsOptions(rt *sobek.Runtime, v sobek.Value) (o engine.TLSOptions, err error) {
	if _, ok := v.Export().(map[string]any); !ok {
		return o, fmt.Errorf("tls: must be an object, got %s", v)
	}
	object := v.ToObject(rt)
	for _, key := range object.Keys() {
		name, value := "tls."+key, object.Get(key)
		if !slices.Contains(knownTLS, key) {
			return o, fmt.Errorf("tls: there is no option %q; there are: %s", key, strings.Join(knownTLS, ", "))
		}
		if isNullish(value) {
			continue
		}
		switch key {
		case "insecureSkipVerify":
			o.InsecureSkipVerify, err = boolean(name, value)
		case "minVersion":
			o.MinVersion, err = text(name, value)
		case "maxVersion":
			o.MaxVersion, err = text(name, value)
		case "ciphers":
			o.Ciphers, err = texts(rt, name, value)
		case "curves":
			o.Curves, err = texts(rt, name, value)
		case "serverName":
			o.ServerName, err = text(name, value)
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

func boolean(key string, v sobek.Value) (bool, error) {
	b, ok := v.Export().(bool)
	if !ok {
		return false, fmt.Errorf("%s: must be true or false, got %s", key, v)
	}
	return b, nil
}

// rate reads a number of requests/s that is greater than zero.
func rate(key string, v sobek.Value) (float64, error) {
	switch n := v.Export().(type) {
	case int64:
		if n > 0 {
			return float64(n), nil
		}
	case float64:
		if n > 0 && !math.IsInf(n, 0) {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s: must be a number of requests/s greater than 0, got %s", key, v)
}

func isNullish(v sobek.Value) bool { return v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) }

func text(key string, v sobek.Value) (string, error) {
	s, ok := v.Export().(string)
	if !ok {
		return "", fmt.Errorf("%s: must be a string, got %s", key, v)
	}
	return s, nil
}

func texts(rt *sobek.Runtime, key string, v sobek.Value) ([]string, error) {
	var list []string
	if _, ok := v.Export().([]any); !ok {
		return nil, fmt.Errorf("%s: must be a list of strings, got %s", key, v)
	}
	object := v.ToObject(rt)
	for _, index := range object.Keys() {
		s, err := text(key, object.Get(index))
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// eachText goes through an object of strings in its order; numbers and booleans are taken as they print.
func eachText(rt *sobek.Runtime, key string, v sobek.Value, each func(name, value string)) error {
	if _, ok := v.Export().(map[string]any); !ok {
		return fmt.Errorf("%s: must be an object, got %s", key, v)
	}
	object := v.ToObject(rt)
	for _, name := range object.Keys() {
		value := object.Get(name)
		switch value.Export().(type) {
		case string, bool, int64, float64:
			each(name, value.String())
		default:
			return fmt.Errorf("%s: %s must be a string, got %s", key, name, value)
		}
	}
	return nil
}

// count reads a whole number of at least 1.
func count(key string, v sobek.Value) (int, error) {
	switch n := v.Export().(type) {
	case int64:
		if n >= 1 {
			return int(n), nil
		}
	case float64:
		// 1e6 is a float in the script.
		if n >= 1 && n <= 1<<53 && n == math.Trunc(n) {
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("%s: must be a whole number of at least 1, got %s", key, v)
}

// counts reads a list of whole numbers of at least 1.
func counts(rt *sobek.Runtime, key string, v sobek.Value) (list []int, err error) {
	if _, ok := v.Export().([]any); !ok {
		return nil, fmt.Errorf("%s: must be a list of whole numbers, got %s", key, v)
	}
	object := v.ToObject(rt)
	for _, index := range object.Keys() {
		n, err := count(key, object.Get(index))
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// duration reads a string with a unit, as in '500ms', '10s' or '1m30s'.
func duration(key string, v sobek.Value) (time.Duration, error) {
	s, ok := v.Export().(string)
	if !ok {
		return 0, fmt.Errorf("%s: must be a string with a unit, as in '10s' or '500ms', got %s", key, v)
	}
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s: must be a time with a unit, as in '10s' or '500ms', got '%s'", key, s)
	}
	return d, nil
}
