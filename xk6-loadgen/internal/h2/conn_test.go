package h2

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/headers"
)

func request(t testing.TB) (Headers, *Blocks) {
	encoded, blocks, err := Encode([][]hpack.HeaderField{
		{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "a"}, {Name: ":path", Value: "/"}, {Name: "x", Value: "y"}},
		{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "a"}, {Name: ":path", Value: "/b"}, {Name: "x", Value: "y"}},
	}, Windows{Stream: 1000, Connection: LeastConnectionWindow})
	if err != nil {
		t.Fatal(err)
	}
	return encoded[1], &blocks
}

// ending is how a stream ended: the caller's number for it, and the figures of its response.
type ending struct {
	kind                  Kind
	of                    int
	status                int32
	header, decoded, body int64
}

// play has a connection with `most` streams at a time receive what a server sends, in pieces of at most n bytes, up to a fault. It returns how
// the streams ended, how many were opened, those that are open, and the bytes that the connection sent.
func play(t testing.TB, received, body []byte, n int) (endings []ending, opened int, open map[int]bool, sent []byte) {
	const most, all = 5, 20
	h, blocks := request(t)
	var c Conn[int]
	shared := &Shared{}
	c.Begin(shared, blocks, most)
	open = map[int]bool{}
	isGoingAway := false
	fill := func() {
		for c.Open < c.Limit && !isGoingAway && opened < all {
			c.Request(h, body).Of = opened
			open[opened] = true
			opened++
		}
		c.Upload()
	}
	end := func(kind Kind, st *Stream[int]) {
		if !open[st.Of] {
			t.Fatalf("%+v ended twice, at last by %d", st, kind)
		}
		delete(open, st.Of)
		endings = append(endings, ending{kind, st.Of, st.Status, st.HeaderBytes, st.DecodedBytes, st.BodyBytes})
	}
	for fill(); len(received) > 0; {
		piece := received[:min(n, len(received))]
		received = received[len(piece):]
		for len(piece) > 0 {
			var event Kind
			event, piece = c.Next(piece)
			switch event {
			case None, Settings:
			case Answered:
				if !open[c.Stream.Of] || c.Stream.Status < 200 {
					t.Fatalf("%+v", c.Stream)
				}
			case Fault:
				return append(endings, ending{kind: Fault}), opened, open, shared.Out
			case GoAway:
				isGoingAway = true
				c.GiveUp(false, func(st *Stream[int]) bool {
					if st.ID > c.Last {
						end(GoAway, st)
					}
					return st.ID > c.Last
				})
			default:
				end(event, c.Stream)
			}
			if c.Open != len(open) {
				t.Fatalf("%d streams are open, want %d", c.Open, len(open))
			}
			fill()
		}
	}
	return endings, opened, open, shared.Out
}

// FuzzConn feeds a connection with what a server may send. However it is cut into pieces, it has to mean the same, each stream has to end once,
// and what the client sends has to be HTTP/2.
func FuzzConn(f *testing.F) {
	var b bytes.Buffer
	framer := http2.NewFramer(&b, nil)
	framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10}, http2.Setting{ID: http2.SettingHeaderTableSize})
	framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, PadLength: 5})
	framer.WriteContinuation(1, true, []byte{0x5c, 1, '3'})
	framer.WriteDataPadded(1, true, []byte("abc"), make([]byte, 20))
	framer.WriteRSTStream(3, http2.ErrCodeRefusedStream)
	framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: []byte{0x89}, EndHeaders: true, EndStream: true})
	framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 7, BlockFragment: []byte{0x5c, 1, '3'}, EndHeaders: true, EndStream: true})
	framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2})
	framer.WriteWindowUpdate(0, 100_000)
	framer.WritePing(false, [8]byte{1})
	framer.WriteGoAway(9, http2.ErrCodeNo, nil)
	for _, posts := range []bool{false, true} {
		f.Add(b.Bytes(), posts, 1)
		f.Add(b.Bytes(), posts, 13)
		f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), posts, 3)
		f.Add([]byte{headers.TLSAlert, 3, 3, 0, 2, 2, 40}, posts, 9)
	}
	f.Fuzz(func(t *testing.T, stream []byte, posts bool, n int) {
		if len(stream) > 1<<16 {
			return
		}
		var body []byte
		if posts {
			body = bytes.Repeat([]byte("x"), 40_000)
		}
		whole, opened, open, sent := play(t, stream, body, len(stream)+1)
		ended := len(whole)
		if ended > 0 && whole[ended-1].kind == Fault {
			ended-- // of the connection
		}
		if ended+len(open) != opened {
			t.Errorf("%d streams were opened, %d ended, %d are open", opened, ended, len(open))
		}
		checkSent(t, sent, opened)
		// How much of a body is sent, and so whether its windows overflow, depends on the pieces.
		if pieces, _, _, _ := play(t, stream, body, max(1, n&0xff)); !posts && !slices.Equal(whole, pieces) {
			t.Errorf("whole: %+v, in pieces: %+v", whole, pieces)
		}
	})
}

// checkSent reads what a client has sent, with another implementation.
func checkSent(t *testing.T, sent []byte, opened int) {
	rest, isClient := bytes.CutPrefix(sent, []byte(http2.ClientPreface))
	if !isClient {
		t.Fatalf("the preface is %q", sent[:min(24, len(sent))])
	}
	framer := http2.NewFramer(nil, bytes.NewReader(rest))
	framer.SetMaxReadFrameSize(maxFrameBytes)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	last, requests := uint32(0), 0
	for {
		frame, err := framer.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("sent what is no HTTP/2: %v", err)
		}
		if head, isHead := frame.(*http2.MetaHeadersFrame); isHead {
			requests++
			if head.StreamID <= last || head.StreamID%2 == 0 || head.PseudoValue("path") != "/b" || head.RegularFields()[0].Name != "x" {
				t.Fatalf("sent %v after stream %d", head, last)
			}
			last = head.StreamID
		}
	}
	if requests != opened {
		t.Errorf("%d requests were sent, %d opened", requests, opened)
	}
}

func TestAnExchangeAllocatesNothing(t *testing.T) {
	h, blocks := request(t)
	var c Conn[int]
	shared := &Shared{}
	c.Begin(shared, blocks, 1)
	c.Next(appendFrameHeader(nil, 0, http2.FrameSettings, 0, 0))
	half := make([]byte, 500) // of the stream's window, which is given back then
	var answer []byte
	if n := testing.AllocsPerRun(100, func() {
		id := c.Request(h, nil).ID
		shared.Out = shared.Out[:0]
		answer = append(appendFrameHeader(answer[:0], 1, http2.FrameHeaders, http2.FlagHeadersEndHeaders, id), 0x88)
		answer = append(appendFrameHeader(answer, len(half), http2.FrameData, 0, id), half...)
		answer = append(appendFrameHeader(answer, 5, http2.FrameData, http2.FlagDataEndStream, id), "hello"...)
		first, rest := c.Next(answer)
		second, rest := c.Next(rest)
		if first != Answered || second != Ended || len(rest) > 0 || c.Stream.BodyBytes != 505 || len(shared.Out) == 0 {
			t.Fatalf("%d, %d, %q is left, %q to send: %s", first, second, rest, shared.Out, c.Text)
		}
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
