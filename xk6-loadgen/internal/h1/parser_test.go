package h1

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

type parsed struct {
	status       int
	body, header int64
	closes       bool
}

// parseAll feeds the stream in the given pieces, then its end. extra is the number of bytes after the last response.
func parseAll(pieces []string, isHead bool) (list []parsed, fault string, unfinished bool) {
	p := &Parser{IsHead: isHead}
	p.Reset()
	cache := &HeadCache{}
	add := func() {
		list = append(list, parsed{int(p.Status), p.BodyBytes, p.HeaderBytes, p.Closes})
		p.Reset()
	}
	started := false
	for _, piece := range pieces {
		data := []byte(piece)
		for len(data) > 0 {
			used, done, fault := p.Feed(data, cache)
			if fault != "" {
				return list, fault, false
			}
			started = true
			data = data[used:]
			if done {
				add()
				started = false
			}
		}
	}
	if p.IsUntilClose() {
		add()
		started = false
	}
	return list, "", started
}

var responses = []struct {
	name, stream string
	head         bool
	want         []parsed
}{
	{"content-length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, []parsed{{200, 5, 38, false}}},
	{"no body", "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", false, []parsed{{200, 0, 37, false}}},
	{"no reason", "HTTP/1.1 404\r\nContent-Length: 1\r\n\r\nx", false, []parsed{{404, 1, 35, false}}},
	{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", false, []parsed{{200, 2, 35, false}}},
	{"two in a row", strings.Repeat("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 2), false, []parsed{{200, 1, 38, false}, {200, 1, 38, false}}},
	{"close", "HTTP/1.1 200 OK\r\nConnection: Keep-Alive, Close\r\nContent-Length: 1\r\n\r\nx", false, []parsed{{200, 1, 69, true}}},
	{"1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false, []parsed{{200, 1, 38, true}}},
	{"1.0 keeps alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", false, []parsed{{200, 1, 62, false}}},
	{"until close", "HTTP/1.1 200 OK\r\n\r\nabc", false, []parsed{{200, 3, 19, true}}},
	{"coded until close", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nabc", false, []parsed{{200, 3, 53, true}}},
	{"204", "HTTP/1.1 204 No Content\r\n\r\n", false, []parsed{{204, 0, 27, false}}},
	{"304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 612\r\n\r\n", false, []parsed{{304, 0, 50, false}}},
	{"head", "HTTP/1.1 200 OK\r\nContent-Length: 612\r\n\r\n", true, []parsed{{200, 0, 40, false}}},
	{"1xx first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", false, []parsed{{200, 1, 25 + 37 + 38, false}}},
	{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;name=\"v\"\r\n0123456789\r\n0\r\n\r\n", false, []parsed{{200, 15, 49, false}}},
	{"chunked beats length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", false, []parsed{{200, 1, 74, false}}},
	{"1.0 with chunks closes", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", false, []parsed{{200, 1, 92, true}}},
	{"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\n\r\n", false, []parsed{{200, 0, 47 + 12, false}}},
	{"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", false, []parsed{{200, 1, 57, false}}},
	{"folded header", "HTTP/1.1 200 OK\r\nX-Long: a\r\n  b\r\nContent-Length: 1\r\n\r\nx", false, []parsed{{200, 1, 54, false}}},
}

func TestParserReadsResponsesSplitAnywhere(t *testing.T) {
	for _, test := range responses {
		t.Run(test.name, func(t *testing.T) {
			check := func(how string, pieces ...string) {
				t.Helper()
				got, fault, unfinished := parseAll(pieces, test.head)
				if fault != "" || unfinished || len(got) != len(test.want) {
					t.Fatalf("%s: %v, fault %q, unfinished %v", how, got, fault, unfinished)
				}
				for i := range got {
					if got[i] != test.want[i] {
						t.Fatalf("%s: response %d is %+v, want %+v", how, i, got[i], test.want[i])
					}
				}
			}
			check("whole", test.stream)
			check("byte by byte", strings.Split(test.stream, "")...)
			for i := 1; i < len(test.stream); i++ {
				check("split at "+test.stream[:i], test.stream[:i], test.stream[i:])
			}
		})
	}
}

func TestParserRefuses(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\n"
	for name, test := range map[string]struct {
		stream string
		want   string
	}{
		"another protocol":       {"SSH-2.0-OpenSSH_9.2\r\n", "the status line is not HTTP/1.x"},
		"http/2":                 {"HTTP/2.0 200 OK\r\n", "the status line is not HTTP/1.x"},
		"an empty line":          {"\r\n", "the status line is not HTTP/1.x"},
		"no space after status":  {"HTTP/1.1 2000\r\n", "the status line is not HTTP/1.x"},
		"letters for a status":   {"HTTP/1.1 2x0 OK\r\n", "the status code is not 100 to 599"},
		"status 999":             {"HTTP/1.1 999 Odd\r\n", "the status code is not 100 to 599"},
		"status 099":             {"HTTP/1.1 099 Odd\r\n", "the status code is not 100 to 599"},
		"switching protocols":    {"HTTP/1.1 101 Switching\r\n\r\n", "switched to a protocol that was not asked for (101)"},
		"no header name":         {head + ": x\r\n", "a header line has no name"},
		"no colon":               {head + "nonsense\r\n", "a header line has no name"},
		"space before the colon": {head + "Content-Length : 2\r\n", "a header's name is followed by a space"},
		"tab before a colon":     {head + "X-Other\t: 2\r\n", "a header's name is followed by a space"},
		"negative length":        {head + "Content-Length: -1\r\n", "Content-Length is not a number"},
		"length list":            {head + "Content-Length: 1, 1\r\n", "Content-Length is not a number"},
		"empty length":           {head + "Content-Length: \r\n", "Content-Length is not a number"},
		"huge length":            {head + "Content-Length: 9999999999999999999\r\n", "Content-Length is not a number"},
		"different lengths":      {head + "Content-Length: 1\r\nContent-Length: 2\r\n", "two Content-Lengths differ"},
		"bad chunk size":         {head + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "a chunk's size is not a number"},
		"huge chunk size":        {head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "a chunk's size is not a number"},
		"chunk longer than said": {head + "Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n",
			"a chunk is longer than its size"},
		"endless header":  {head + "X: " + strings.Repeat("a", headers.MaxBytes), headers.TooLong},
		"endless headers": {head + strings.Repeat("X: y\r\n", headers.MaxBytes/6+1), headers.TooLong},
		"endless 1xx":     {strings.Repeat("HTTP/1.1 100 Go\r\n\r\n", headers.MaxBytes/19+1), headers.TooLong},
		"endless chunk line": {head + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a", maxChunkLineBytes+1),
			"a chunk's size line is too long"},
		"endless trailers": {head + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", headers.MaxBytes/6+1),
			headers.TooLong},
	} {
		t.Run(name, func(t *testing.T) {
			if _, fault, _ := parseAll([]string{test.stream}, false); fault != test.want {
				t.Errorf("whole: fault %q, want %q", fault, test.want)
			}
			if _, fault, _ := parseAll(strings.Split(test.stream, ""), false); fault != test.want {
				t.Errorf("byte by byte: fault %q, want %q", fault, test.want)
			}
		})
	}
}

// FuzzParser holds the parser against itself, split differently, and against net/http where that accepts the response.
func FuzzParser(f *testing.F) {
	for _, test := range responses {
		f.Add(test.stream, 7)
	}
	f.Fuzz(func(t *testing.T, stream string, at int) {
		whole, fault, _ := parseAll([]string{stream}, false)
		split := 0
		if len(stream) > 0 {
			split = (at%len(stream) + len(stream)) % len(stream)
		}
		parts, otherFault, _ := parseAll([]string{stream[:split], stream[split:]}, false)
		if fault != otherFault || !slices.Equal(whole, parts) {
			t.Fatalf("split at %d: %v %q, whole: %v %q", split, parts, otherFault, whole, fault)
		}
		if fault != "" || len(whole) == 0 || strings.HasPrefix(stream, "HTTP/1.1 1") || strings.HasPrefix(stream, "HTTP/1.0 1") {
			return
		}
		response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(stream)), nil)
		if err != nil {
			return
		}
		if !response.ProtoAtLeast(1, 1) && strings.Contains(strings.ToLower(stream), "transfer-encoding") {
			return // net/http ignores this header in HTTP/1.0; the parser follows it and closes the connection
		}
		body, err := io.Copy(io.Discard, response.Body)
		if err == nil && response.StatusCode == whole[0].status && len(response.TransferEncoding) == 0 && response.ContentLength >= 0 && body != whole[0].body {
			t.Fatalf("%d bytes of body, net/http reads %d", whole[0].body, body)
		}
	})
}

func TestAResponseAllocatesNothing(t *testing.T) {
	var p Parser
	var cache HeadCache
	p.Reset()
	responses := [][]byte{
		[]byte("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello"),
		[]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, response := range responses {
			if used, done, fault := p.Feed(response, &cache); used < len(response) || !done || p.BodyBytes != 5 {
				t.Fatalf("%d bytes of %q, %t: %s", used, response, done, fault)
			}
			p.Reset()
		}
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
