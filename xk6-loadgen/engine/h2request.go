package engine

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// h2Headers are the header fields that all requests of a run share, as blocks. They go into the server's dynamic table with the
// first request of a connection, so that the blocks do not depend on the order in which requests are made.
type h2Headers struct {
	// opening is for a connection's first request, steady for those after it. plain does without the dynamic table, for
	// a server that does not want one of our size.
	opening, steady, plain []byte
	// longest is how many bytes a request's frame has at most.
	longest int
}

// encodeH2Requests makes what the header block of every URL's request begins with, and what all of them share. Its errors name
// the option.
func encodeH2Requests(o Options, urls []*url.URL) (requests [][]byte, headers h2Headers, err error) {
	var shared []hpack.HeaderField
	authority := withoutZone(urls[0].Host)
	for _, h := range o.Headers {
		if name := strings.ToLower(h.Name); name == "host" {
			authority = h.Value
		} else {
			shared = append(shared, hpack.HeaderField{Name: name, Value: h.Value})
		}
	}
	if o.saysLength() {
		shared = append(shared, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(o.Body))})
	}
	shared = append([]hpack.HeaderField{{Name: ":authority", Value: authority}}, shared...)
	path := func(u *url.URL) hpack.HeaderField { return hpack.HeaderField{Name: ":path", Value: u.RequestURI()} }
	if len(urls) == 1 {
		shared = append([]hpack.HeaderField{path(urls[0])}, shared...)
	}

	indexing, plain := newFieldEncoder(), newFieldEncoder()
	plain.encoder.SetMaxDynamicTableSize(0)
	// That is said at the start of what is encoded next, which is thrown away: a connection says it when it comes to it.
	plain.encode(hpack.HeaderField{Name: ":method", Value: o.Method})
	size := uint32(0)
	for _, f := range shared {
		size += f.Size()
	}
	headers = h2Headers{opening: indexing.encode(shared...), steady: indexing.encode(shared...), plain: plain.encode(shared...)}
	if size > hpackTableBytes {
		// They would push each other out of the table.
		headers.opening, headers.steady = headers.plain, headers.plain
	}
	start := []hpack.HeaderField{{Name: ":method", Value: o.Method}, {Name: ":scheme", Value: urls[0].Scheme}}
	for _, u := range urls {
		own := start
		if len(urls) > 1 {
			own = append(start[:2:2], path(u))
		}
		request := plain.encode(own...)
		// They are sent in one frame, with a table size update before them.
		longest := 1 + len(request) + max(len(headers.opening), len(headers.plain))
		if longest > maxFrameBytes {
			return nil, h2Headers{}, fmt.Errorf("headers: take %d bytes, with HTTP/2 they may take %d", longest, maxFrameBytes)
		}
		headers.longest = max(headers.longest, frameHeaderBytes+longest)
		requests = append(requests, request)
	}
	return requests, headers, nil
}

// fieldEncoder is HPACK's encoder over a buffer of its own.
type fieldEncoder struct {
	buffer  bytes.Buffer
	encoder *hpack.Encoder
}

func newFieldEncoder() *fieldEncoder {
	e := &fieldEncoder{}
	e.encoder = hpack.NewEncoder(&e.buffer)
	return e
}

func (e *fieldEncoder) encode(fields ...hpack.HeaderField) []byte {
	e.buffer.Reset()
	for _, f := range fields {
		e.encoder.WriteField(f) //nolint:errcheck // into memory
	}
	return bytes.Clone(e.buffer.Bytes())
}
