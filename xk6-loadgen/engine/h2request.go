package engine

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
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
	shared := []hpack.HeaderField{{Name: ":authority", Value: withoutZone(urls[0].Host)}}
	for _, h := range o.Headers {
		if name := strings.ToLower(h.Name); name == "host" {
			shared[0].Value = h.Value
		} else {
			shared = append(shared, hpack.HeaderField{Name: name, Value: h.Value})
		}
	}
	if o.saysLength() {
		shared = append(shared, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(o.Body))})
	}
	path := func(u *url.URL) hpack.HeaderField { return hpack.HeaderField{Name: ":path", Value: u.RequestURI()} }
	if len(urls) == 1 {
		shared = slices.Insert(shared, 0, path(urls[0]))
	}

	var buffer bytes.Buffer
	indexing, plain := hpack.NewEncoder(&buffer), hpack.NewEncoder(&buffer)
	encode := func(encoder *hpack.Encoder, fields ...hpack.HeaderField) []byte {
		buffer.Reset()
		for _, f := range fields {
			encoder.WriteField(f) //nolint:errcheck // into memory
		}
		return bytes.Clone(buffer.Bytes())
	}
	plain.SetMaxDynamicTableSize(0)
	// That is said at the start of what is encoded next, which is thrown away: a connection says it when it comes to it.
	encode(plain, hpack.HeaderField{Name: ":method", Value: o.Method})
	size := uint32(0)
	for _, f := range shared {
		size += f.Size()
	}
	headers = h2Headers{opening: encode(indexing, shared...), steady: encode(indexing, shared...), plain: encode(plain, shared...)}
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
		request := encode(plain, own...)
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
