//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package h2

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/net/http2/hpack"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

// Headers are a request's header block without the headers that all requests share, which go after its first Before bytes.
type Headers struct {
	Bytes  []byte
	Before uint32
}

// Blocks are the blocks that all requests of a load share. The first request puts them into the server's dynamic table.
type Blocks struct {
	// opening is for a connection's first request, steady for later ones, plain for a server that wants no table of our size.
	opening, steady, plain []byte
	LongestBytes           int    // LongestBytes are the most of a request's HEADERS frame.
	LastStreamID           uint32 // LastStreamID is the greatest stream identifier of a connection.

	preface []byte // preface goes before the first request.
	windows Windows
}

// Encode encodes each request's own headers, and those that all have in common as shared blocks: a frame is then put together by appends. A
// request's fields begin with its pseudo-headers. An error says that headers are too long for a frame. windows are those of each connection.
func Encode(mix [][]hpack.HeaderField, windows Windows) (encoded []Headers, blocks Blocks, err error) {
	uses := map[hpack.HeaderField]int{}
	for _, fields := range mix {
		for _, f := range fields {
			uses[f]++
		}
	}
	// Method and scheme are a byte each in any case.
	isShared := func(f hpack.HeaderField) bool {
		return uses[f] == len(mix) && f.Name != ":method" && f.Name != ":scheme"
	}
	var buffer bytes.Buffer
	indexing, plain := hpack.NewEncoder(&buffer), hpack.NewEncoder(&buffer)
	encode := func(encoder *hpack.Encoder, fields []hpack.HeaderField) []byte {
		buffer.Reset()
		for _, f := range fields {
			encoder.WriteField(f) //nolint:errcheck // into memory
		}
		return bytes.Clone(buffer.Bytes())
	}
	plain.SetMaxDynamicTableSize(0)
	encode(plain, mix[0][:1]) // The encoder announces the size in the next block, which is thrown away
	var shared []hpack.HeaderField
	size := uint32(0)
	for _, f := range mix[0] {
		if isShared(f) {
			shared = append(shared, f)
			size += f.Size()
		}
	}
	blocks = Blocks{
		opening: encode(indexing, shared), steady: encode(indexing, shared), plain: encode(plain, shared), LastStreamID: LastStreamID,
		preface: windows.preface(), windows: windows,
	}
	if size > headers.TableBytes {
		blocks.opening, blocks.steady = blocks.plain, blocks.plain
	}
	for _, fields := range mix {
		fields = slices.DeleteFunc(fields, isShared)
		regular := slices.IndexFunc(fields, func(f hpack.HeaderField) bool { return f.Name[0] != ':' })
		if regular < 0 {
			regular = len(fields)
		}
		before, after := encode(plain, fields[:regular]), encode(plain, fields[regular:])
		h := Headers{append(before, after...), uint32(len(before))}
		// All of it goes into one frame, after a table size update.
		longest := len(noTable) + len(h.Bytes) + max(len(blocks.opening), len(blocks.plain))
		if longest > maxFrameBytes {
			return nil, Blocks{}, fmt.Errorf("headers: take %d bytes, with HTTP/2 they may take %d", longest, maxFrameBytes)
		}
		blocks.LongestBytes = max(blocks.LongestBytes, frameHeaderBytes+longest)
		encoded = append(encoded, h)
	}
	return encoded, blocks, nil
}
