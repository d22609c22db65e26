package engine

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// h2Request is one request as header blocks. What all requests of a run share goes into the server's dynamic table with
// the first request of a connection, so that the blocks do not depend on the order in which requests are made.
type h2Request struct {
	// opening is for a connection's first request, steady for those after it. plain does without the dynamic table, for
	// a server that does not want one of our size.
	opening, steady, plain []byte
}

// encodeH2Requests makes the header blocks of every URL's request. Its errors name the option.
func encodeH2Requests(o Options, urls []*url.URL) ([]h2Request, error) {
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
	paths := []hpack.HeaderField{}
	for _, u := range urls {
		paths = append(paths, hpack.HeaderField{Name: ":path", Value: u.RequestURI()})
	}
	if len(urls) == 1 {
		shared = append([]hpack.HeaderField{paths[0]}, shared...)
	}

	indexing, plain := newFieldEncoder(), newFieldEncoder()
	plain.encoder.SetMaxDynamicTableSize(0)
	// That is said at the start of what is encoded next, which is thrown away: a connection says it when it comes to it.
	plain.encode(hpack.HeaderField{Name: ":method", Value: o.Method})
	size := uint32(0)
	for _, f := range shared {
		size += f.Size()
	}
	var requests []h2Request
	start := []hpack.HeaderField{{Name: ":method", Value: o.Method}, {Name: ":scheme", Value: urls[0].Scheme}}
	opening := indexing.encode(shared...)
	steady := indexing.encode(shared...)
	for _, path := range paths {
		own := append([]hpack.HeaderField(nil), start...)
		if len(urls) > 1 {
			own = append(own, path)
		}
		prefix := plain.encode(own...)
		r := h2Request{opening: join(prefix, opening), steady: join(prefix, steady), plain: join(prefix, plain.encode(shared...))}
		if size > hpackTableBytes {
			// They would push each other out of the table.
			r.opening, r.steady = r.plain, r.plain
		}
		// They are sent in one frame, with a table size update before them.
		if longest := max(len(r.opening), len(r.plain)) + 1; longest > maxFrameBytes {
			return nil, fmt.Errorf("headers: take %d bytes, with HTTP/2 they may take %d", longest, maxFrameBytes)
		}
		requests = append(requests, r)
	}
	return requests, nil
}

func join(a, b []byte) []byte { return append(append(make([]byte, 0, len(a)+len(b)), a...), b...) }

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
