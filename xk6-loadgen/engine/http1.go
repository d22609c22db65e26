//gosec:disable G115 -- the numbers are small
package engine

import (
	"bytes"
	"strconv"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

// http1 is HTTP/1.0 and 1.1 (RFC 9112): one attempt at a time, without pipelining.
type http1 struct {
	conn   *conn
	parser parser
	busy   bool
	attempt
}

// next takes an attempt, and sends it or opens a connection for it.
func (s *http1) next() {
	c := s.conn
	// A connection that is being opened continues in connected.
	if s.busy || c.backingOff || c.state != closed && c.state != established {
		return
	}
	next, taken := c.loop.model.take(c)
	if !taken {
		if c.hasNoneLeft() {
			c.close()
		}
		return
	}
	s.busy = true
	s.attempt, s.parser.isHead = next, next.expected.isHead
	if c.state == established {
		s.connected()
	} else {
		c.connect()
	}
}

// connected sends the attempt that the connection was opened for. After a reopening there is none: an empty send tells whether it is up.
func (s *http1) connected() {
	c := s.conn
	if !s.busy {
		if _, ok := c.transmit(nil); ok && c.state == established {
			s.next()
		}
		return
	}
	s.start = c.loop.model.latencyFrom(s.begun, s.due)
	generation := c.generation
	c.send(s.request.bytes)
	if c.generation == generation && c.state == established {
		c.loop.model.noteSent(s.due)
	}
}

// received parses bytes in the loop's buffer. They all belong to the one response under way.
func (s *http1) received(p []byte) {
	s.conn.firstByte()
	if !s.busy {
		s.conn.close() // Bytes without a request: the connection cannot be trusted, but no attempt is to blame
		s.conn.loop.starts.push(s.conn)
		return
	}
	used, done, fault := s.parser.feed(p, &s.conn.loop.caches.head)
	switch {
	case fault != "" && p[0] == byte(recordAlert) && s.conn.secure == nil:
		s.conn.fail(ErrProtocol, CauseOther, speaksTLS)
	case fault != "":
		s.conn.fail(ErrProtocol, CauseOther, fault)
	case done && used < len(p):
		s.conn.fail(ErrProtocol, CauseOther, "more bytes than the response's length")
	case done:
		s.complete()
	}
}

// discardable leaves the last byte of a body: bytes after it must not pass for the next response.
func (s *http1) discardable() int64 {
	if s.busy && s.parser.state == inBody {
		return min(s.parser.remaining-1, 1<<30)
	}
	return 0
}

// discarded counts bytes of a body that the kernel has dropped.
func (s *http1) discarded(n int64) {
	s.parser.bodyBytes += n
	s.parser.remaining -= n
}

// complete ends the attempt with its response. The connection then takes the next one, closes, or lingers.
func (s *http1) complete() {
	c := s.conn
	c.loop.response(&s.attempt, s.attempt.start, int(s.parser.status), s.parser.headerBytes, s.parser.headerBytes, s.parser.bodyBytes)
	c.countResponse()
	s.busy = false
	closes := s.parser.closes || c.peerClosed
	s.parser.reset()
	switch {
	case c.sending() || c.writeBroken:
		c.close() // The response came before the whole request was sent: the rest would pass for another request
		c.loop.starts.push(c)
	case closes:
		c.linger()
	case !c.loop.plan.KeepAlive:
		c.close()
		s.next()
	default:
		s.next()
	}
}

// closedByPeer ends a response that is as long as the connection (RFC 9112, section 6.3). Any other one was cut off.
func (s *http1) closedByPeer() {
	switch {
	case !s.busy:
		s.conn.close()
		s.conn.loop.starts.push(s.conn)
	case s.parser.state == inBodyUntilClose:
		s.complete()
		if s.conn.state == lingering {
			s.conn.close()
			s.next()
		}
	default:
		s.conn.fail(ErrRead, CauseShort, closedEarly)
	}
}

func (s *http1) abort(kind ErrorKind, cause ErrorCause, example string) {
	s.parser.reset()
	if s.busy {
		s.busy = false
		s.conn.loop.failure(s.conn, kind, cause, example, &s.attempt)
	}
}

// Each request leaves at once, and HTTP/1 has no message that ends a connection.
func (s *http1) flush()                         {}
func (s *http1) appendGoAway(dst []byte) []byte { return dst }

// expire closes the connection, the only way to give up a request. Connects are conn.checkTimeouts's.
func (s *http1) expire(before int64) {
	if s.busy && s.begun < before && s.conn.state == established {
		s.conn.fail(ErrTimeout, CauseTimedOut, noResponse)
	}
}

func (s *http1) underWay() int64 {
	if s.busy {
		return 1
	}
	return 0
}

func (s *http1) eachDue(call func(due int64)) {
	if s.busy {
		call(s.due)
	}
}

const (
	// maxHeadBytes is for status line, headers and trailers of a response, with 1xx responses before it. It keeps
	// a broken server from filling the memory.
	maxHeadBytes       = 64 << 10
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
	status  uint16
	chunked bool
	coded   bool // a Transfer-Encoding does not end in chunked, so the body ends with the connection
	closes  bool // the connection is not reused
	http10  bool
	length  int64 // the Content-Length; -1: none
}

// headCache has the last head's bytes and meaning. A server's heads change once a second, so one comparison reads nearly all of them.
type headCache struct {
	bytes []byte
	head  head
}

// parser reads one HTTP/1 response after another, split at any byte, in bounded memory (RFC 9112).
type parser struct {
	head
	isHead                 bool
	state                  parserState
	line                   []byte // the beginning of an incomplete line
	remaining              int64  // remaining bytes of the body or the chunk
	headerBytes, bodyBytes int64
}

// reset prepares for the next response, and keeps line's memory.
func (p *parser) reset() {
	*p = parser{isHead: p.isHead, line: p.line[:0], head: head{length: -1}}
}

// feed takes bytes up to the response's end. A fault, here and below, says what is wrong with the response.
func (p *parser) feed(data []byte, cache *headCache) (used int, done bool, fault string) {
	headStart := -1
	for used < len(data) {
		switch p.state {
		case inBody, inChunk:
			n := min(int64(len(data)-used), p.remaining)
			used += int(n)
			p.bodyBytes += n
			if p.remaining -= n; p.remaining > 0 {
				return used, false, ""
			}
			if p.state == inBody {
				return used, true, ""
			}
			p.state = atChunkEnd
			continue
		case inBodyUntilClose:
			p.bodyBytes += int64(len(data) - used)
			return len(data), false, ""
		case atStatusLine:
			if len(p.line) == 0 {
				if k := len(cache.bytes); k > 0 && len(data)-used >= k && string(data[used:used+k]) == string(cache.bytes) {
					p.head = cache.head
					p.headerBytes += int64(k)
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
func (p *parser) takeLine(data []byte) (line []byte, used int, complete bool) {
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

// takeState handles a line in the present state. done tells that the response is complete.
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

// statusLine reads the version and the status (RFC 9112, section 4). The reason, and the space before it, may be missing.
func (p *parser) statusLine(line []byte) string {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' ||
		len(line) > 12 && line[12] != ' ' {
		return "the status line is not HTTP/1.x"
	}
	status := headers.Number(line[9:12])
	if status < 100 || status > 599 {
		return "the status code is not 100 to 599"
	}
	http10 := line[7] == '0'
	p.head = head{status: uint16(status), length: -1, http10: http10, closes: http10}
	return ""
}

// header reads what says how long the response is and whether the connection goes on. All else is passed over.
func (p *parser) header(line []byte) string {
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

// beginBody tells whether the response is complete with its head (RFC 9112, section 6.3).
func (p *parser) beginBody() (done bool) {
	switch {
	case p.isHead || p.status == 204 || p.status == 304:
		return true
	case p.chunked:
		p.state = atChunkSize
		p.closes = p.closes || p.http10 // HTTP/1.0 has no Transfer-Encoding, so its framing is in doubt (RFC 9112, section 6.1)
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
