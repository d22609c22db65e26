package engine

import (
	"bytes"
	"strconv"
)

const (
	// The most that status line, headers and trailers of one response may take, 1xx responses before it included.
	maxHeadBytes = 64 << 10
	// The most that a chunk's size line may take, extensions included.
	maxChunkLineBytes = 4 << 10
	// Heads longer than this are not remembered.
	maxCachedHeadBytes = 4 << 10
	// A body of more than this is no body, and a chunk of more than these bits is none.
	maxLengthDigits, maxChunkBits = 18, 60
)

type parserState uint8

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

// head is what a response's status line and headers mean for its framing.
type head struct {
	status int
	// length is the Content-Length; -1: none.
	length  int64
	chunked bool
	// coded: a Transfer-Encoding that does not end in chunked; the body ends with the connection.
	coded bool
	// closes: the connection is not reused after this response.
	closes bool
	http10 bool
}

// headCache remembers the last head and what it meant. A server's responses differ in their Date once a second, so
// nearly all of them are recognised by one comparison of bytes instead of being parsed.
type headCache struct {
	bytes []byte
	head  head
}

// parser reads one HTTP/1 response after another, split at any byte, in bounded memory (RFC 9112).
type parser struct {
	head
	isHead bool
	state  parserState
	// line holds the beginning of a line whose end has not come in yet.
	line []byte
	// remaining bytes of the body or the chunk.
	remaining              int64
	headerBytes, bodyBytes int64
}

// reset makes the parser ready for the next response.
func (p *parser) reset() {
	*p = parser{isHead: p.isHead, line: p.line[:0], head: head{length: -1}}
}

// endsAtClose tells whether a response whose end is the connection's is being read.
func (p *parser) endsAtClose() bool { return p.state == inBodyUntilClose }

// feed takes bytes. It returns how many it used and whether the response is complete; bytes after its end are not used. fault, here
// and below, says what is wrong with the response; empty: nothing.
func (p *parser) feed(data []byte, cache *headCache) (used int, done bool, fault string) {
	headStart := -1
	for used < len(data) && !done && fault == "" {
		rest := data[used:]
		switch p.state {
		case inBody, inChunk:
			n := min(int64(len(rest)), p.remaining)
			used += int(n)
			p.bodyBytes += n
			if p.remaining -= n; p.remaining == 0 {
				done = p.state == inBody
				p.state = atChunkEnd
			}
			continue
		case inBodyUntilClose:
			p.bodyBytes += int64(len(rest))
			return len(data), false, ""
		case atStatusLine:
			if len(p.line) == 0 {
				if k := len(cache.bytes); k > 0 && len(rest) >= k && string(rest[:k]) == string(cache.bytes) {
					p.head = cache.head
					p.headerBytes += int64(k)
					used += k
					done = p.beginBody()
					continue
				}
				headStart = used
			}
		}

		line, n, complete := p.takeLine(rest)
		used += n
		if fault = p.countLine(n, len(line)); fault != "" || !complete {
			return used, false, fault
		}
		inHead := p.state == atStatusLine || p.state == atHeader
		done, fault = p.takeState(line)
		p.line = p.line[:0]
		headEnds := inHead && (done || p.state != atStatusLine && p.state != atHeader)
		if headEnds && headStart >= 0 && used-headStart <= maxCachedHeadBytes {
			cache.bytes = append(cache.bytes[:0], data[headStart:used]...)
			cache.head = p.head
		}
	}
	return used, done, fault
}

// takeLine returns the line that ends in data, without its line break, or keeps its beginning for the next call. A bare
// LF ends a line too (RFC 9112, section 2.2).
func (p *parser) takeLine(data []byte) (line []byte, used int, complete bool) {
	line, rest, complete := bytes.Cut(data, []byte("\n"))
	if len(p.line) > 0 || !complete {
		p.line = append(p.line, line...)
		line = p.line
	}
	return bytes.TrimSuffix(line, []byte("\r")), len(data) - len(rest), complete
}

// countLine accounts for n more bytes of a line that is lineBytes long by now, and bounds it.
func (p *parser) countLine(n, lineBytes int) string {
	if p.state == atChunkSize || p.state == atChunkEnd {
		if lineBytes > maxChunkLineBytes {
			return "a chunk's size line is too long"
		}
	} else if p.headerBytes += int64(n); p.headerBytes > maxHeadBytes {
		return "headers are longer than 64 KiB"
	}
	return ""
}

// takeState acts on a whole line.
func (p *parser) takeState(line []byte) (done bool, fault string) {
	switch p.state {
	case atStatusLine:
		p.state = atHeader
		return false, p.statusLine(line)
	case atHeader:
		if len(line) > 0 {
			return false, p.header(line)
		}
		if p.status < 200 {
			if p.status == 101 {
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

// statusLine reads "HTTP/1.x NNN reason".
func (p *parser) statusLine(line []byte) string {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' ||
		len(line) > 12 && line[12] != ' ' {
		return "the status line is not HTTP/1.x"
	}
	status := decimal(line[9:12])
	if status < 0 {
		return "the status code is not a number"
	}
	if status < 100 || status > 599 {
		return "the status code is not 100 to 599"
	}
	http10 := line[7] == '0'
	p.head = head{status: int(status), length: -1, http10: http10, closes: http10}
	return ""
}

// header acts on the few headers that say where the response ends.
func (p *parser) header(line []byte) string {
	if line[0] == ' ' || line[0] == '\t' {
		// A folded value (obsolete, RFC 9112, section 5.2) never belongs to a header that counts here.
		return ""
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return "a header line has no name"
	}
	if before := line[colon-1]; before == ' ' || before == '\t' {
		// RFC 9112, section 5.1: readers that differ on it would see different lengths.
		return "a header's name is followed by a space"
	}
	value := line[colon+1:]
	switch name := line[:colon]; {
	case isNamed(name, "content-length"):
		return setLength(&p.length, decimal(trimSpace(value)))
	case isNamed(name, "transfer-encoding"):
		last := trimSpace(value[bytes.LastIndexByte(value, ',')+1:])
		p.chunked = bytes.EqualFold(last, []byte("chunked"))
		p.coded = !p.chunked
	case isNamed(name, "connection"):
		p.connection(value)
	}
	return ""
}

// isNamed tells whether a header has this name, which is given in lower case. Most differ in their lengths.
func isNamed(name []byte, lower string) bool {
	return len(name) == len(lower) && bytes.EqualFold(name, []byte(lower))
}

// setLength takes a Content-Length, -1 where it is no number, beside the one that came before, -1 where none did.
func setLength(length *int64, to int64) string {
	if to < 0 {
		return "Content-Length is not a number"
	}
	if *length >= 0 && *length != to {
		return "two Content-Lengths differ"
	}
	*length = to
	return ""
}

func (p *parser) connection(value []byte) {
	for len(value) > 0 {
		var token []byte
		token, value, _ = bytes.Cut(value, []byte(","))
		switch token = trimSpace(token); {
		case bytes.EqualFold(token, []byte("close")):
			p.closes = true
		case bytes.EqualFold(token, []byte("keep-alive")) && p.http10:
			p.closes = false
		}
	}
}

// beginBody goes on after the head and tells whether the response is complete with it (RFC 9112, section 6.3).
func (p *parser) beginBody() (done bool) {
	switch {
	case p.isHead || p.status == 204 || p.status == 304:
		return true
	case p.chunked:
		p.state = atChunkSize
	case p.coded || p.length < 0:
		p.state = inBodyUntilClose
		p.closes = true
	case p.length == 0:
		return true
	default:
		p.state, p.remaining = inBody, p.length
	}
	return false
}

// chunkSize reads a chunk's size line: hexadecimal digits, and extensions, which say nothing here.
func chunkSize(line []byte) (size int64, fault string) {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(trimSpace(digits)), 16, maxChunkBits)
	if err != nil {
		return 0, "a chunk's size is not a number"
	}
	return int64(n), ""
}

// decimal is the number that the digits make; -1 where they make none, or are more than maxLengthDigits.
func decimal(digits []byte) int64 {
	if len(digits) > maxLengthDigits {
		return -1
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return -1
	}
	return int64(n)
}

func trimSpace(s []byte) []byte { return bytes.Trim(s, " \t") }
