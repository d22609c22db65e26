package responder

import "bytes"

const (
	// A send takes up to this much of what all responses have in common.
	blockBytes = 256 << 10
	// contentType is what servers say of a page; the generator has to read it too.
	contentType = "text/html"
)

// filler is what bodies are made of. It is never written to.
var filler = bytes.Repeat([]byte{'x'}, blockBytes)

// answers are one response's bytes, over and over: any number of requests is answered from here, without a copy for anyone.
type answers struct {
	// size of one response.
	size int64
	// block begins with a response: it has as many of them as fit, or the beginning of a long one, the rest of which is
	// filler.
	block []byte
}

func newAnswers(head string, bodyBytes int64) *answers {
	a := &answers{size: int64(len(head)) + bodyBytes}
	for len(a.block) == 0 || int64(len(a.block))+a.size <= blockBytes {
		a.block = append(a.block, head...)
		a.block = append(a.block, filler[:min(bodyBytes, blockBytes)]...)
	}
	return a
}

// from is what follows a place in a response, up to n bytes: to the response's end or over its end into the next ones.
func (a *answers) from(at, n int64) []byte {
	p := filler
	if at < int64(len(a.block)) {
		p = a.block[at:]
	} else {
		p = p[:min(blockBytes, a.size-at)]
	}
	return p[:min(int64(len(p)), n)]
}
