//gosec:disable G115 -- the numbers are small
package engine

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h2"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/schedule"
)

// Protocol is named as in ALPN (RFC 7301).
type Protocol string

// HTTP/1 goes over TCP or TLS, as the URL says. H2C is HTTP/2 without TLS (prior knowledge). H3 goes over QUIC.
const (
	HTTP10 Protocol = "http/1.0"
	HTTP11 Protocol = "http/1.1"
	H2     Protocol = "h2"
	H2C    Protocol = "h2c"
	H3     Protocol = "h3"
)

func (p Protocol) isHTTP2() bool { return p == H2 || p == H2C }

// isTLSOverTCP tells whether connections have a TLS handshake after TCP's, with the engine's own record layer.
func (p *plan) isTLSOverTCP() bool { return p.tls != nil && p.Protocol != H3 }

// hasStreams tells whether a connection has several requests at a time.
func (p Protocol) hasStreams() bool { return p == H3 || p.isHTTP2() }

// Arrivals of a rate are evenly spread (also if empty), or a Poisson process.
type Arrivals string

const (
	ConstantArrivals Arrivals = "constant"
	PoissonArrivals  Arrivals = "poisson"
)

// Header is one request header. A slice of them keeps its order on the wire.
type Header struct{ Name, Value string }

// ReceiveWindow are windows in bytes: how much a server may send before the client allows more, once it has read half. 0: defaultWindow.
type ReceiveWindow struct {
	Stream     int64 `js:"stream"`     // Stream is that of each stream
	Connection int64 `js:"connection"` // Connection is that of all streams of a connection
}

// Options describe one load phase, which has either Requests or Duration. The js tags are the names of the options in scripts.
type Options struct {
	// URL is the address. Mix are requests of its server in place of the URL's own: each thread keeps every one within one request of its share.
	URL         string    `js:"url"`
	Mix         []Request `js:"mix"`
	Protocol    Protocol  `js:"protocol"`
	Connections int       `js:"connections"`
	Streams     int       `js:"streams"` // Streams are concurrent requests per connection (HTTP/2 and 3), up to the server's limit
	// Together: the streams of a connection start together, and again once all have ended, as the files of a page. The load's latencies are
	// then those of pages, from the first request to the last response; a page with an error has none.
	Together bool `js:"together"`
	// Window are the receive windows of HTTP/2 and 3.
	Window ReceiveWindow `js:"window"`
	// Requests is an exact number. In the closed model kept connections share them evenly; otherwise whichever is free makes the next.
	Requests int64         `js:"requests"`
	Duration time.Duration `js:"duration"`
	// Rate is the requests per second that start whether or not earlier ones are answered. 0: a connection's response starts its next one.
	Rate      float64  `js:"rate"`
	Arrivals  Arrivals `js:"arrivals"`
	KeepAlive bool     `js:"keepAlive"`
	// Warmup comes before the window, and lasts longer where connections have had no response yet (see awaitsAll).
	Warmup time.Duration `js:"warmup"`
	// WarmupLimit: while the server still gets faster, the warm-up goes on for so long at most (see stretch); zero: it does not.
	WarmupLimit time.Duration `js:"warmupLimit"`
	// WarmupGain is how much faster, as a share, a server may still get from one stretch of the warm-up to the next when that ends; less
	// than leastGain is that.
	WarmupGain float64 `js:"warmupGain"`
	// WarmupConfirmed: a server at its limit has to be steady for two stretches. A compiler works in steps, between which it seems to be warm.
	WarmupConfirmed bool          `js:"warmupConfirmed"`
	Timeout         time.Duration `js:"timeout"` // Timeout bounds an attempt, its connect included
	Threads         int           `js:"threads"` // Threads are event loops that share the connections, each on a thread of its own
	// Spin: an idle loop polls, so that the server does not pay for waking it. Each thread then needs a core.
	Spin    bool       `js:"spin"`
	Method  string     `js:"method"`
	Headers []Header   `js:"headers"`
	Body    []byte     `js:"body"`
	TLS     TLSOptions `js:"tls"`
	// NetNS is the path of the network namespace for all sockets; empty: the process's. Host names are resolved outside.
	NetNS   string           `js:"netns,filled"`
	Buckets []time.Duration  `js:"buckets"` // Buckets are the ascending upper ends of Result.Buckets
	Segment schedule.Segment // this process's part of a rate, where several processes make one load
	StartAt time.Time        // when the load begins, at most a minute ahead; zero: at once
	seed    uint64           // seed of the arrivals and the order of the mix.
	// patience, if greater than zero, is how long connections may get no answer, instead of reachPatience and noAnswerLimit.
	patience time.Duration
}

// The limits refuse typing errors before they use up memory. They do not say what the engine can do.
const (
	maxThreads     = 256
	maxConnections = 1_000_000
	maxStreams     = 1_000_000
	maxRate        = 10_000_000
	maxBuckets     = 1000
	maxWindow      = 1<<31 - 1 // RFC 9113, section 6.9.1
	defaultWindow  = 1<<30 - 1 // as h2load's: no server ever waits for one
	spareFiles     = 64        // spareFiles are left to everything else in the process: epoll descriptors, outputs, logs.
)

// plan is Options made ready for the loops: checked, resolved and encoded once.
type plan struct {
	Options
	target   sockaddr
	sources  sources    // sources are the local addresses of the connections.
	network  *namespace // nil for the process's own
	requests []request
	pages    []string // pages are the names of those with figures of their own
	h2       h2.Blocks
	uploads  bool        // HTTP/3 has a body to send in pieces.
	order    []uint32    // a cycle of indexes of requests
	tls      *tls.Config // nil without TLS
	divided  bool        // each connection has its share of the requests
	// isOfGoroutines: over QUIC loops are goroutines. On threads of their own each event would cost two switches between threads. At a rate
	// loops have threads all the same, since Go's timers can be late by a millisecond.
	isOfGoroutines bool
	noDelay        bool // TCP_NODELAY: for requests that take more than one segment, or that follow another one
}

// newPlan checks, resolves and encodes the options of a load. Its errors name the option. The caller closes the plan's network.
func newPlan(ctx context.Context, o Options) (*plan, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Window.Stream, o.Window.Connection = cmp.Or(o.Window.Stream, defaultWindow), cmp.Or(o.Window.Connection, defaultWindow)
	p := &plan{
		Options: o, divided: o.Requests > 0 && o.KeepAlive && o.Rate == 0,
		isOfGoroutines: o.Protocol == H3 && o.Rate == 0,
	}
	first, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	mix := o.mixed(first)
	for i, r := range mix {
		if err := r.check(o.Protocol); err != nil {
			if len(o.Mix) > 0 {
				err = fmt.Errorf("mix[%d].%w", i, err)
			}
			return nil, err
		}
	}
	switch {
	case o.Protocol == H3:
		p.requests, p.uploads = encodeH3Requests(first.Scheme, mix)
	case o.Protocol.isHTTP2():
		p.requests, p.h2, err = encodeH2Requests(first.Scheme, mix, h2.Windows(o.Window))
	default:
		for _, r := range mix {
			p.requests = append(p.requests, request{bytes: encodeRequest(o, r)})
		}
	}
	if err != nil {
		return nil, err
	}
	p.noDelay = o.KeepAlive
	var pages []int
	p.pages, pages = pagesOf(mix)
	weights := make([]int, len(mix))
	for i, r := range mix {
		request := &p.requests[i]
		request.isHead, request.status, request.page = r.Method == http.MethodHead, uint16(r.Status), uint32(pages[i])
		p.noDelay = p.noDelay || len(r.Body) > 0
		weights[i] = r.Weight
	}
	p.order = orderOf(weights, o.seed+uint64(o.Segment.Number(0))<<32)
	p.requests = inOrder(p.requests, p.order)
	switch isTLS := first.Scheme == "https"; {
	case isTLS && o.Protocol == H2C:
		return nil, errors.New("protocol: h2c is HTTP/2 without TLS; use h2 with an https:// address")
	case !isTLS && o.Protocol == H2:
		return nil, errors.New("protocol: h2 is HTTP/2 over TLS; use h2c with an http:// address")
	case !isTLS && o.Protocol == H3:
		return nil, errors.New("protocol: h3 is HTTP/3 over QUIC, which has TLS; give an https:// address")
	case isTLS:
		if p.tls, err = o.TLS.config(o.Protocol, first.Hostname()); err != nil {
			return nil, err
		}
		p.noDelay = true
	case !o.TLS.isZero():
		return nil, errors.New("tls: is for https:// addresses")
	}
	if p.network, err = openNamespace(o.NetNS); err != nil {
		return nil, err
	}
	if p.target, err = resolve(ctx, first, p.network); err == nil {
		p.sources, err = sourcesFor(o.Connections, &p.target, p.network)
	}
	if err != nil {
		p.network.close()
		return nil, err
	}
	return p, nil
}

// check refuses options that are out of bounds or contradict each other. Its errors begin with the option's name and say what to do.
func (o Options) check() error {
	switch {
	case o.URL == "":
		return errors.New("url: give the address to load, as in http://127.0.0.1:8080/")
	case len(o.Mix) > MaxMix:
		return fmt.Errorf("mix: at most %d requests, got %d", MaxMix, len(o.Mix))
	case o.Protocol != HTTP10 && o.Protocol != HTTP11 && !o.Protocol.hasStreams():
		return fmt.Errorf("protocol: %q is not supported; use http/1.1, http/1.0, h2, h2c or h3", o.Protocol)
	case o.Threads < 1 || o.Threads > maxThreads:
		return fmt.Errorf("threads: must be 1 to %d, got %d", maxThreads, o.Threads)
	case o.Connections < 1 || o.Connections > maxConnections:
		return fmt.Errorf("connections: must be 1 to %d, got %d", maxConnections, o.Connections)
	case o.Connections < o.Threads:
		return fmt.Errorf("connections: %d are too few for %d threads; each thread needs one", o.Connections, o.Threads)
	case o.Streams < 1 || o.Streams > maxStreams:
		return fmt.Errorf("streams: must be 1 to %d, got %d", maxStreams, o.Streams)
	case o.Streams > 1 && !o.Protocol.hasStreams():
		return fmt.Errorf("streams: HTTP/1 has one request at a time on a connection; leave streams out or set it to 1")
	case o.Streams > 1 && !o.KeepAlive:
		return fmt.Errorf("streams: a connection for each request has one stream; leave streams out or set keepAlive to true")
	case o.Together && (o.Streams == 1 || o.Rate > 0):
		return errors.New("together: streams of a connection start together; give it several streams, and no rate")
	case !(o.Rate >= 0 && o.Rate <= maxRate):
		return fmt.Errorf("rate: must be more than 0 and at most %d requests/s, got %g", maxRate, o.Rate)
	case o.Arrivals != "" && o.Arrivals != ConstantArrivals && o.Arrivals != PoissonArrivals:
		return fmt.Errorf("arrivals: must be constant or poisson, got %q", o.Arrivals)
	case o.Arrivals != "" && o.Rate == 0:
		return errors.New("arrivals: are those of a rate; give one, or leave arrivals out")
	case (o.Rate > 0 || o.Protocol == H3) && !linux.HasExactWait():
		return errors.New("rate, protocol: a rate, and h3, need Linux 5.11 or later, for waits shorter than a millisecond")
	case len(o.Buckets) > maxBuckets:
		return fmt.Errorf("buckets: at most %d, got %d", maxBuckets, len(o.Buckets))
	case (o.Requests > 0) == (o.Duration > 0):
		return errors.New("requests, duration: give one of the two, greater than zero")
	case o.Timeout <= 0:
		return fmt.Errorf("timeout: must be greater than zero, got %s", o.Timeout)
	}
	if cores := len(linux.Cores()); o.Spin && cores > 0 && o.Threads > cores {
		return fmt.Errorf("spin: %d threads need a core each, and k6 may use %d; leave spin out", o.Threads, cores)
	}
	for i, end := range o.Buckets {
		if end <= 0 || i > 0 && end <= o.Buckets[i-1] {
			return fmt.Errorf("buckets: upper ends must be greater than zero and ascend, got %s at place %d", end, i+1)
		}
	}
	if err := o.Window.check(o.Protocol); err != nil {
		return err
	}
	return checkFiles(o.Connections)
}

// check refuses windows that the protocol does not have.
func (w ReceiveWindow) check(protocol Protocol) error {
	switch {
	case w == ReceiveWindow{}:
		return nil
	case !protocol.hasStreams():
		return errors.New("window: HTTP/1 has no receive windows; leave window out, or take h2, h2c or h3")
	case protocol.isHTTP2() && w.Connection > 0 && w.Connection < h2.LeastConnectionWindow:
		return fmt.Errorf("window: connection must be at least %d, with which every connection of HTTP/2 begins, got %d; set stream instead", h2.LeastConnectionWindow, w.Connection)
	}
	for _, bytes := range []int64{w.Stream, w.Connection} {
		if bytes < 0 || bytes > maxWindow {
			return fmt.Errorf("window: must be 1 to %d bytes, got %d", maxWindow, bytes)
		}
	}
	return nil
}

// check refuses a request that cannot be sent as it is. Its errors name the field.
func (r Request) check(protocol Protocol) error {
	switch {
	case !httpguts.ValidHeaderFieldName(r.Method) || r.Method == http.MethodConnect:
		return fmt.Errorf("method: %q is not a method that asks for a resource", r.Method)
	case !strings.HasPrefix(r.Target, "/"):
		return fmt.Errorf("target: %q must begin with /", r.Target)
	case strings.ContainsFunc(r.Target, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return fmt.Errorf("target: %q has a space or control character in it; write it as %%20 or the like", r.Target)
	case r.Weight < 1 || r.Weight > MaxWeight:
		return fmt.Errorf("weight: must be 1 to %d, got %d", MaxWeight, r.Weight)
	case r.Status != 0 && (r.Status < 200 || r.Status > 599):
		return fmt.Errorf("status: must be 200 to 599, got %d", r.Status)
	}
	hosts := 0
	for _, h := range r.Headers {
		if !httpguts.ValidHeaderFieldName(h.Name) {
			return fmt.Errorf("headers: %q is not a header name", h.Name)
		}
		if strings.ContainsAny(h.Value, "\r\n\x00") {
			return fmt.Errorf("headers: the value of %s has a line break or NUL in it", h.Name)
		}
		switch strings.ToLower(h.Name) {
		case "host":
			if hosts++; hosts > 1 {
				return errors.New("headers: Host is given twice; a request has one")
			}
		case "connection", "content-length", "transfer-encoding":
			return fmt.Errorf("headers: %s is set by the engine (from keepAlive and body)", h.Name)
		case "te", "upgrade", "keep-alive", "proxy-connection":
			if protocol.hasStreams() {
				return fmt.Errorf("headers: %s is not allowed in HTTP/2 and 3", h.Name)
			}
		}
	}
	return nil
}

// checkFiles refuses more connections than the process may open files: otherwise they would fail during the load.
func checkFiles(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && uint64(connections+spareFiles) > limit.Cur {
		return fmt.Errorf("connections: %d need a file limit of %d, it is %d; raise it with: ulimit -n %d",
			connections, connections+spareFiles, limit.Cur, connections+spareFiles)
	}
	return nil
}
