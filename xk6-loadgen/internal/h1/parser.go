// Package h1 reads the responses of HTTP/1.0 and 1.1 (RFC 9112). It keeps only what a load generator counts: the status, sizes, and whether
// the connection goes on. It allocates nothing for a response: a server sends the same head many times, and HeadCache knows it by its bytes.
//
//gosec:disable G115 -- the numbers are small
package h1

import (
	"bytes"
	"strconv"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

const (
	maxChunkLineBytes  = 4 << 10 // with extensions, which servers hardly use
	maxCachedHeadBytes = 4 << 10 // longer heads are parsed each time
)

// parserState is what the next byte of a response belongs to.
type parserState uint8

// A head's states come first.
const (
	atStatusLine parserState = iota
	atHeader
	inBody
	inBodyUntilClose
	atChunkSize
	inChunk
	atChunkEnd
	atTrailer
)

// head is what a status line and headers say about the response's length and the connection.
type head struct {
	Status  uint16
	chunked bool
	coded   bool // a Transfer-Encoding does not end in chunked, so the body ends with the connection
	Closes  bool // Closes tells that the connection is not reused.
	http10  bool
	length  int64 // the Content-Length; -1: none
}

// HeadCache has the last head's bytes and meaning. A server's heads change once a second, so one comparison reads nearly all of them.
type HeadCache struct {
	bytes []byte
	head  head
}

// Parser reads one HTTP/1 response after another, split at any byte, in bounded memory (RFC 9112).
type Parser struct {
	head
	IsHead                 bool // IsHead is set for the response to a HEAD request, which has no body.
	state                  parserState
	line                   []byte // the beginning of an incomplete line
	remaining              int64  // remaining bytes of the body or the chunk
	HeaderBytes, BodyBytes int64
}

// Reset prepares for the next response, and keeps line's memory.
func (p *Parser) Reset() {
	*p = Parser{IsHead: p.IsHead, line: p.line[:0], head: head{length: -1}}
}

// Uncounted is how many of the next bytes only need to be counted, by Skip: those of a body of known length, without the last one.
func (p *Parser) Uncounted() int64 {
	if p.state == inBody {
		return p.remaining - 1
	}
	return 0
}

// Skip counts bytes of a body that were not read.
func (p *Parser) Skip(n int64) {
	p.BodyBytes += n
	p.remaining -= n
}

// IsUntilClose tells whether the response is as long as the connection (RFC 9112, section 6.3).
func (p *Parser) IsUntilClose() bool { return p.state == inBodyUntilClose }

// Feed takes bytes up to the response's end. A fault, here and below, says what is wrong with the response.
func (p *Parser) Feed(data []byte, cache *HeadCache) (used int, done bool, fault string) {
	headStart := -1
	for used < len(data) {
		switch p.state {
		case inBody, inChunk:
			n := min(int64(len(data)-used), p.remaining)
			used += int(n)
			p.BodyBytes += n
			if p.remaining -= n; p.remaining > 0 {
				return used, false, ""
			}
			if p.state == inBody {
				return used, true, ""
			}
			p.state = atChunkEnd
			continue
		case inBodyUntilClose:
			p.BodyBytes += int64(len(data) - used)
			return len(data), false, ""
		case atStatusLine:
			if len(p.line) == 0 {
				if k := len(cache.bytes); k > 0 && len(data)-used >= k && string(data[used:used+k]) == string(cache.bytes) {
					p.head = cache.head
					p.HeaderBytes += int64(k)
					used += k
					if p.beginBody() {
						return used, true, ""
					}
					continue
				}
				headStart = used
			}
		}

		line, n, complete := p.takeLine(data[used:])
		used += n
		if fault = p.countLine(n, len(line)); fault != "" || !complete {
			return used, false, fault
		}
		inHead := p.state <= atHeader
		done, fault = p.takeState(line)
		p.line = p.line[:0]
		if inHead && (done || p.state > atHeader) && headStart >= 0 && used-headStart <= maxCachedHeadBytes {
			cache.bytes = append(cache.bytes[:0], data[headStart:used]...)
			cache.head = p.head
		}
		if done || fault != "" {
			return used, done, fault
		}
	}
	return used, false, ""
}

// takeLine returns the line that ends in data, or keeps its beginning. A bare LF ends a line too (RFC 9112, section 2.2).
func (p *Parser) takeLine(data []byte) (line []byte, used int, complete bool) {
	end := bytes.IndexByte(data, '\n')
	line, used = data, len(data)
	if end >= 0 {
		line, used = data[:end], end+1
	}
	if len(p.line) > 0 || end < 0 {
		p.line = append(p.line, line...)
		line = p.line
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, used, end >= 0
}

// countLine refuses lines that are too long before all of them is in memory. Chunk lines are no part of headerBytes.
func (p *Parser) countLine(n, lineBytes int) string {
	if p.state == atChunkSize || p.state == atChunkEnd {
		if lineBytes > maxChunkLineBytes {
			return "a chunk's size line is too long"
		}
	} else if p.HeaderBytes += int64(n); p.HeaderBytes > headers.MaxBytes {
		return headers.TooLong
	}
	return ""
}

// takeState handles a line in the present state. done tells that the response is complete.
func (p *Parser) takeState(line []byte) (done bool, fault string) {
	switch p.state {
	case atStatusLine:
		p.state = atHeader
		return false, p.statusLine(line)
	case atHeader:
		if len(line) > 0 {
			return false, p.header(line)
		}
		if p.Status < 200 {
			if p.Status == 101 {
				return false, "switched to a protocol that was not asked for (101)"
			}
			p.state = atStatusLine
			return false, ""
		}
		return p.beginBody(), ""
	case atChunkSize:
		size, fault := chunkSize(line)
		if p.remaining, p.state = size, inChunk; size == 0 {
			p.state = atTrailer
		}
		return false, fault
	case atChunkEnd:
		p.state = atChunkSize
		if len(line) > 0 {
			return false, "a chunk is longer than its size"
		}
		return false, ""
	default: // atTrailer
		return len(line) == 0, ""
	}
}

// statusLine reads the version and the status (RFC 9112, section 4). The reason, and the space before it, may be missing.
func (p *Parser) statusLine(line []byte) string {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' ||
		len(line) > 12 && line[12] != ' ' {
		return "the status line is not HTTP/1.x"
	}
	status := headers.Number(line[9:12])
	if status < 100 || status > 599 {
		return "the status code is not 100 to 599"
	}
	http10 := line[7] == '0'
	p.head = head{Status: uint16(status), length: -1, http10: http10, Closes: http10}
	return ""
}

// header reads what says how long the response is and whether the connection goes on. All else is passed over.
func (p *Parser) header(line []byte) string {
	if line[0] == ' ' || line[0] == '\t' {
		return "" // A folded value (obsolete, RFC 9112, section 5.2) belongs to no header that matters here
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return "a header line has no name"
	}
	if before := line[colon-1]; before == ' ' || before == '\t' { // RFC 9112, section 5.1
		return "a header's name is followed by a space"
	}
	value := line[colon+1:]
	switch name := line[:colon]; {
	case isNamed(name, "content-length"):
		return headers.SetLength(&p.length, headers.Number(trimSpace(value)))
	case isNamed(name, "transfer-encoding"):
		last := trimSpace(value[bytes.LastIndexByte(value, ',')+1:])
		p.chunked = bytes.EqualFold(last, []byte("chunked"))
		p.coded = !p.chunked
	case isNamed(name, "connection"):
		p.connection(value)
	}
	return ""
}

// isNamed compares lengths first, since most differ.
func isNamed(name []byte, lower string) bool {
	return len(name) == len(lower) && bytes.EqualFold(name, []byte(lower))
}

// connection reads the options of Connection (RFC 9110, section 7.6.1). HTTP/1.0 closes unless they say keep-alive.
func (p *Parser) connection(value []byte) {
	for len(value) > 0 {
		var token []byte
		token, value, _ = bytes.Cut(value, []byte(","))
		switch token = trimSpace(token); {
		case bytes.EqualFold(token, []byte("close")):
			p.Closes = true
		case bytes.EqualFold(token, []byte("keep-alive")) && p.http10:
			p.Closes = false
		}
	}
}

// beginBody tells whether the response is complete with its head (RFC 9112, section 6.3).
func (p *Parser) beginBody() (done bool) {
	switch {
	case p.IsHead || p.Status == 204 || p.Status == 304:
		return true
	case p.chunked:
		p.state = atChunkSize
		p.Closes = p.Closes || p.http10 // HTTP/1.0 has no Transfer-Encoding, so its framing is in doubt (RFC 9112, section 6.1)
	case p.coded || p.length < 0:
		p.state = inBodyUntilClose
		p.Closes = true
	case p.length == 0:
		return true
	default:
		p.state, p.remaining = inBody, p.length
	}
	return false
}

// chunkSize ignores a chunk's extensions.
func chunkSize(line []byte) (size int64, fault string) {
	line, _, _ = bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(trimSpace(line)), 16, headers.LengthBits)
	if err != nil {
		return 0, "a chunk's size is not a number"
	}
	return int64(n), ""
}

func trimSpace(s []byte) []byte { return bytes.Trim(s, " \t") }
