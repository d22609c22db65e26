package responder

import "bytes"

// request is what matters of an HTTP/1 request.
type request struct {
	isHead, closes bool
	bodyBytes      int64
}

const (
	// maxHeadBytes bounds what is kept of a request that has not come in wholly.
	maxHeadBytes = 64 << 10
	// No request body is longer than this: its length has to fit a number.
	maxBodyDigits = 18
)

var headEnd = []byte("\r\n\r\n")

// parseRequest reads a request's head, which ends with an empty line (RFC 9112, sections 3 and 5). It is not ok when the
// head is none, and when its body's length is not said as Content-Length.
func parseRequest(head []byte) (r request, ok bool) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	method, line, found := bytes.Cut(line, []byte(" "))
	target, version, found2 := bytes.Cut(line, []byte(" "))
	if !found || !found2 || !isToken(method) || len(target) == 0 {
		return r, false
	}
	r.isHead = string(method) == "HEAD"
	switch string(version) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		r.closes = true
	default:
		return r, false
	}
	hasLength := false
	for {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) == 0 {
			return r, true
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found || !isToken(name) {
			return r, false
		}
		value = bytes.Trim(value, " \t")
		switch {
		case isWord(name, "connection"):
			for len(value) > 0 {
				var option []byte
				option, value, _ = bytes.Cut(value, []byte(","))
				switch option = bytes.Trim(option, " \t"); {
				case isWord(option, "close"):
					r.closes = true
				case isWord(option, "keep-alive") && string(version) == "HTTP/1.0":
					r.closes = false
				}
			}
		case isWord(name, "content-length"):
			length, isNumber := parseLength(value)
			if !isNumber || hasLength && length != r.bodyBytes {
				return r, false
			}
			hasLength, r.bodyBytes = true, length
		case isWord(name, "transfer-encoding"):
			return r, false
		}
	}
}

func parseLength(digits []byte) (n int64, ok bool) {
	if len(digits) == 0 || len(digits) > maxBodyDigits {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// isWord compares with a word in small letters. (bytes.EqualFold folds more than ASCII.)
func isWord(p []byte, word string) bool {
	if len(p) != len(word) {
		return false
	}
	for i, c := range p {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// isToken tells whether p is a token of RFC 9110, section 5.6.2.
func isToken(p []byte) bool {
	for _, c := range p {
		if !isTokenByte(c) {
			return false
		}
	}
	return len(p) > 0
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
}
